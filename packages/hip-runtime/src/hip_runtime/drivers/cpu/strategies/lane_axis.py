"""Along which axis of a block neighbours run together, as lanes of vectors.

A GPU has the threads of a wave along x, and so have kernels that were written for one: neighbours along x access
neighbouring elements. ``i, j = hip.grid(2)`` and ``a[i, j]`` is as common, though, and there neighbours along y do.
Threads that do not exchange values within waves cannot tell the order in which a CPU runs them, so lanes may be
neighbours along any axis, with the other loops over threads, and over blocks, around that. A kernel that uses the
indices of a thread and of its block for its global index only cannot tell where a block ends, either: blocks that have
few threads along the axis, as of 256 x 1 threads, or several rows of threads, as of 16 x 16, are joined. So are blocks
of which each is for a column, with the rows as its threads: these are counted along y then (`passes.turned_blocks`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.abi.block_lengths import is_row
from hip_runtime.drivers.cpu.abi.thread_order import ALONG_X, AXES, Axes
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.alignments import align_gangs
from hip_runtime.drivers.cpu.analyses.clamps import InsideShapes
from hip_runtime.drivers.cpu.analyses.cost_model import estimate_lane
from hip_runtime.drivers.cpu.analyses.global_indices import divides_index, find_global_indices, uses_item_for_indices
from hip_runtime.drivers.cpu.analyses.near_accesses import find_near
from hip_runtime.drivers.cpu.analyses.row_streams import reads_one_row, streams_rows
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.clone import copy_blocks
from hip_runtime.drivers.cpu.ir.model import Call, Function, Instruction, Symbol
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.llvmir import I64, PTR
from hip_runtime.drivers.cpu.passes.turned_blocks import rename_indices, turn_threads
from hip_runtime.drivers.cpu.strategies.form_choice import MIN_LANES, choose_width, default_lanes
from hip_runtime.drivers.cpu.vectorize.early_exit import assume_early_exits

_WORTHWHILE = 0.5
"""Cycles per thread that another axis than x has to save: about half of an access that becomes contiguous."""

_GANGS_OF_WIDE_BLOCKS = 4
"""Gangs of a row from which on blocks of several rows are not joined: what a gang computes for its row is computed once
for as many. Jacobi's method on 1024 x 1024 numbers takes 0.52 ms of CPU time in blocks of 16 x 16 that are not joined,
0.40 in blocks of 32 x 32 and 0.20 in blocks of 64 x 4; joined, 0.13 in all of them."""

_GANGS_OF_ROWS = 16
"""Gangs of a block from which on blocks are not joined whose threads find their row by a division: gangs begin where
such rows do, and where blocks do. Fifty steps of Jacobi's method take 0.83 ms of CPU time in blocks of 256, 0.72 if
these are joined."""

_GANGS_PER_TILE = 32
"""Gangs of a row of blocks that are joined: so much memory is contiguous, in each row of threads. With one, a sum of
4096 x 4096 numbers in blocks of 256 x 1 takes 17 ms of CPU time, with 8 it takes 15, with 32 it takes 13."""


_GANGS_OF_WHOLE_ROWS = 2048
"""The most gangs of a row where memory is read from beginning to end: as many blocks as a row of the grid has, unless
that is very long. The same sum in blocks of 16 x 16, beyond caches, takes 7.7 ms instead of 12 with 32."""

_BEYOND_CACHES = 1 << 23
"""Threads of a grid whose arrays no cache holds, from which on that is better for kernels that read several rows, too:
seven points in space in blocks of 8 x 8 x 4 take 0.73 of the time for 256 x 256 x 256 float32, and 1.1 for half as
many along each axis."""


@dataclass(frozen=True)
class Tile:
    """Gangs reach over up to so many *blocks*. In grids of *rows_from* threads or more, a tile has several rows of
    blocks; ``None`` for one in any case."""

    blocks: int = 1
    rows_from: int | None = None


def joins_row(function: Function, length: int, width: int | None) -> bool:
    """Whether blocks of one row of *length* threads, in gangs of *width* or the default, are to be joined because they
    have few, or because their threads find a row by a division."""
    lanes = width or default_lanes()
    if length < lanes // 2:
        return find_global_indices(function, "x", None) is not None
    return lanes <= length < _GANGS_OF_ROWS * lanes and divides_index(function, "x")


def order_axes(first: int) -> Axes:
    """All axes, that of the lanes *first*; along z, memory is mostly read in C order, with x as the outermost axis."""
    return {0: ALONG_X, 1: (1, 0, 2), 2: (2, 1, 0)}[first]


class AxisChoice:
    """Chooses the axis of the lanes of a kernel with the graph *function* in blocks of the shape *block*.

    *estimated* is a version of it whose costs decide. *width* is the requested number of lanes. With *tiles*, gangs
    may reach over several blocks, where the kernel cannot tell that they do.
    """

    def __init__(
        self, function: Function, block: Dim3, size_of: SizeOf, width: int | None, tiles: bool,
        estimated: Function | None,
    ) -> None:  # fmt: skip
        self._function = function
        self._estimated = estimated or function
        self._block = block
        self._size_of = size_of
        self._width = width
        self._shapes: dict[int, VectorShapes] = {}
        self._called = {value.callee for value in function.instructions()}
        self._tiles = tiles and spmd.LANE not in self._called

    @property
    def _widest(self) -> int:
        return self._width or default_lanes()

    def should_turn(self, requested: str) -> bool:
        """Whether lanes should be threads of neighbouring blocks, which are rows along x and cannot be joined as they
        are; never if an axis is *requested*."""
        wanted = {spmd.thread_idx("x"), spmd.block_idx("x")}
        is_possible = requested == "auto" and self._tiles and is_row(self._block) and wanted <= self._called
        if not is_possible or self._find_indices(0) is not None or not uses_item_for_indices(self._function):
            return False
        copied = replace(self._estimated, blocks=list(copy_blocks(self._estimated.blocks).blocks.values()))
        turn_threads(copied)
        rename_indices(copied, spmd.block_idx("x"), spmd.thread_idx("x"))
        shapes = {False: self._infer_shapes(0), True: self._infer(copied, 0, self._widest)}
        near = {turned: find_near(found, self._size_of) for turned, found in shapes.items()}
        if not near[True]:
            return False
        costs = {
            turned: estimate_lane(found, self._size_of, self._width_along(0) if not turned else self._widest, ())
            for turned, found in shapes.items()
        }
        return costs[False] - costs[True] >= _WORTHWHILE

    def choose(self, requested: str) -> Axes:
        """The order of the axes in which threads should run: *requested* if it names the first one, else the cheapest
        one first."""
        if requested != "auto":
            return order_axes(AXES.index(requested))
        candidates = [axis for axis in range(len(AXES)) if self._is_candidate(axis)]
        if not any(candidates) or spmd.LANE in self._called:
            return ALONG_X
        shapes = {axis: self._infer_shapes(axis) for axis in candidates}
        rows = {axis: find_near(found, self._size_of) for axis, found in shapes.items()}
        if 0 in shapes:  # nothing but accesses of neighbours makes up for the order that kernels are written for
            shapes = {axis: found for axis, found in shapes.items() if axis == 0 or rows[axis]}
        costs = {
            axis: estimate_lane(
                found, self._size_of, self._width_along(axis),
                frozenset().union(*(accesses for other, accesses in rows.items() if other != axis)),
            )
            for axis, found in shapes.items()
        }  # fmt: skip
        best = min(costs, key=costs.__getitem__)
        described = ",".join(f"{AXES[axis]}={cost:.2f}" for axis, cost in costs.items())
        if 0 in costs and costs[0] - costs[best] < _WORTHWHILE:
            best = 0
        record(f"lane_axis({described}):{AXES[best]}", self._function)
        return order_axes(best)

    def choose_tile(self, axis: int) -> Tile:
        """Over which blocks gangs along *axis* should reach: whole rows of the grid if that is the order of memory."""
        blocks = self._count_blocks(axis)
        is_free = self._tiles and self._has_rows(axis) and spmd.GRID_BARRIER not in self._called
        if not is_free or self._find_indices(axis) is None:
            return Tile(blocks)
        shapes = self._infer_shapes(axis)
        one_row = reads_one_row(shapes)
        if not streams_rows(shapes) or not (one_row or blocks > 1):
            return Tile(blocks)
        return Tile(_GANGS_OF_WHOLE_ROWS * self._widest // self._block[axis], 0 if one_row else _BEYOND_CACHES)

    def _has_rows(self, axis: int) -> bool:
        """Whether a block has several rows of threads along *axis*."""
        return math.prod(self._block) > self._block[axis]

    def _count_blocks(self, axis: int) -> int:
        """Over how many blocks gangs along *axis* should reach, whatever the order of memory is: 1 if these are wide
        enough, or cannot be joined."""
        extent = self._block[axis]
        has_rows = self._has_rows(axis)
        wide = _GANGS_OF_WIDE_BLOCKS * self._widest if has_rows else self._widest // 2
        if divides_index(self._function, AXES[axis]):
            wide = _GANGS_OF_ROWS * self._widest
        if not self._tiles or extent >= wide or self._find_indices(axis) is None:
            return 1
        return _GANGS_PER_TILE * self._widest // extent

    def join_blocks(self, axis: int) -> None:
        """Have the kernel compute its global index along *axis* from that of the thread in several blocks."""
        sums = self._find_indices(axis) or []
        for instruction in list(self._function.instructions()):
            widened = (
                instruction.opcode == "zext" and instruction.operands[0] in sums
            )  # a grid has fewer than 2**32 threads along it
            if instruction.type == I64 and (widened or instruction in sums):
                self._become_index(instruction, axis)
        for instruction in (instruction for instruction in sums if instruction.type != I64):
            index = Instruction(I64, "call", [], f"{instruction.name}.wide")
            self._become_index(index, axis)
            (home,) = (block for block in self._function.blocks if instruction in block.instructions)
            home.instructions.insert(home.instructions.index(instruction), index)
            instruction.opcode, instruction.operands, instruction.flags = "trunc", [index], ()
        record("join_blocks", self._function)

    def _become_index(self, instruction: Instruction, axis: int) -> None:
        """Make *instruction* a call for the thread's global index along *axis*."""
        symbol = Symbol(PTR, intrinsics.global_idx(AXES[axis]))
        instruction.opcode, instruction.flags = "call", ()
        instruction.operands = [self._function.arguments[0], symbol]
        instruction.call = Call(ir.FunctionType(I64, [PTR]), argument_attributes=((),))

    def _find_indices(self, axis: int) -> list[Instruction] | None:
        return find_global_indices(self._function, AXES[axis], self._block[axis])

    def _is_candidate(self, axis: int) -> bool:
        if spmd.thread_idx(AXES[axis]) not in self._called:
            return False
        return self._block[axis] >= (2 if axis == 0 else MIN_LANES) or self._count_blocks(axis) > 1

    def _width_along(self, axis: int) -> int:
        """The number of lanes that gangs along *axis* have."""
        return choose_width(self._block[axis] * self._count_blocks(axis), self._width)

    def _infer_shapes(self, axis: int) -> VectorShapes:
        """The shapes of values in gangs along *axis*."""
        if axis in self._shapes:
            return self._shapes[axis]
        self._shapes[axis] = self._infer(self._estimated, axis, self._width_along(axis))
        return self._shapes[axis]

    def _infer(self, function: Function, axis: int, width: int) -> VectorShapes:
        """The shapes of values of *function* in gangs of *width* along *axis*."""
        aligned = align_gangs(width, AXES[axis], self._block[axis], False)
        shapes, _ = assume_early_exits(
            lambda assumed: InsideShapes(
                function, assumed, self._size_of, lambda alloca: 1, False, AXES[axis], aligned
            ),
            on_data=False,
        )
        return shapes


def describe_axis(item: WorkItem) -> str:
    """Along which axis of the block threads are neighbours, in words; empty for x, as on a GPU."""
    if item.order.is_turned and item.order.tile > 1:
        return f"neighbours are threads of up to {item.order.tile} blocks along {item.order.along}"
    if item.order.tile > 1:
        return f"neighbours along {item.order.along} in up to {item.order.tile} blocks"
    return "" if item.order.axes == ALONG_X else f"neighbours along {item.order.along}"
