"""Along which axis of a block neighbours run together, as lanes of vectors.

A GPU has the threads of a wave along x, and so have kernels that were written for one: neighbours along x access
neighbouring elements. ``i, j = hip.grid(2)`` and ``a[i, j]`` is as common, though, and there neighbours along y do.
Threads that do not exchange values within waves cannot tell the order in which a CPU runs them, so lanes may be
neighbours along any axis, with the other loops over threads, and over blocks, around that.
"""

from __future__ import annotations

from hip_devicelib import spmd
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.abi.work_item import ALONG_X, AXES, Axes, WorkItem
from hip_runtime.drivers.cpu.analyses.cost_model import estimate_lane
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.strategies.forms import MIN_LANES, choose_width
from hip_runtime.drivers.cpu.vectorize.early_exit import assume_early_exits

_WORTHWHILE = 0.5
"""Cycles per thread that another axis than x has to save: about half of an access that becomes contiguous."""


def order_axes(first: int) -> Axes:
    """All axes, that of the lanes *first*; along z, memory is mostly read in C order, with x as the outermost axis."""
    return {0: ALONG_X, 1: (1, 0, 2), 2: (2, 1, 0)}[first]


def choose_axes(function: Function, block: Dim3, size_of: SizeOf, requested: str, width: int | None) -> Axes:
    """The order of the axes of *block* in which a kernel with the graph *function* should run: *requested* if it names
    the first one, else the cheapest for gangs of *width* threads, or the default number."""
    if requested != "auto":
        return order_axes(AXES.index(requested))
    called = {value.callee for value in function.instructions()}
    candidates = [
        axis for axis in range(len(AXES))
        if spmd.thread_idx(AXES[axis]) in called and block[axis] >= (2 if axis == 0 else MIN_LANES)
    ]  # fmt: skip
    if not any(candidates) or spmd.LANE in called:
        return ALONG_X
    costs = {axis: _estimate(function, AXES[axis], size_of, choose_width(block[axis], width)) for axis in candidates}
    best = min(costs, key=costs.__getitem__)
    described = ", ".join(f"{AXES[axis]} {cost:.2f}" for axis, cost in costs.items())
    if 0 in costs and costs[0] - costs[best] < _WORTHWHILE:
        best = 0
    record(f"lane_axis: cycles per thread along {described}: {AXES[best]}", function)
    return order_axes(best)


def describe_axis(item: WorkItem) -> str:
    """Along which axis of the block threads are neighbours, in words; empty for x, as on a GPU."""
    return "" if item.axes == ALONG_X else f"neighbours along {AXES[item.axes[0]]}"


def _estimate(function: Function, along: str, size_of: SizeOf, width: int) -> float:
    """The cost of a thread as a lane of gangs *along* an axis."""
    shapes, _ = assume_early_exits(
        lambda assumed: VectorShapes(function, assumed, size_of, lambda alloca: 1, False, along)
    )
    return estimate_lane(shapes, size_of, width)
