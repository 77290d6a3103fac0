"""The strategy that runs gangs of threads, as lanes of vectors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from hip_devicelib import spmd
from hip_runtime import config
from hip_runtime.drivers.cpu.abi.narrow_grids import NarrowGrids
from hip_runtime.drivers.cpu.abi.thread_order import AXES
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.abi.worker import build_worker, kernel_type, run_threads
from hip_runtime.drivers.cpu.analyses.bit_loops import find_bit_loops
from hip_runtime.drivers.cpu.analyses.cfg import has_loop
from hip_runtime.drivers.cpu.analyses.index_bounds import IndexBound
from hip_runtime.drivers.cpu.analyses.scattered_updates import find_scattered_updates
from hip_runtime.drivers.cpu.analyses.type_sizes import measure_types
from hip_runtime.drivers.cpu.ir.model import Argument
from hip_runtime.drivers.cpu.passes.dense_indices import assume_dense_rows
from hip_runtime.drivers.cpu.passes.launch_prologue import take_out_launch_values
from hip_runtime.drivers.cpu.passes.unroll_steps import has_short_loop
from hip_runtime.drivers.cpu.regions.gang_region import GangPlan
from hip_runtime.drivers.cpu.strategies.form_choice import AUTO, MIN_LANES, VECTORS
from hip_runtime.drivers.cpu.strategies.kernel_graph import KernelGraph, Reading, read_kernel
from hip_runtime.drivers.cpu.strategies.kernel_request import KernelRequest
from hip_runtime.drivers.cpu.strategies.lane_axis import describe_axis
from hip_runtime.drivers.cpu.strategies.plan import Plan
from hip_runtime.drivers.cpu.strategies.region import write_spinning
from hip_runtime.drivers.cpu.vectorize.gang_body import GangBody
from hip_runtime.drivers.cpu.vectorize.kept_results import KeptResults
from hip_runtime.drivers.cpu.vectorize.prologue_body import run_prologue
from hip_runtime.drivers.cpu.vectorize.update_tables import UpdateTables
from hip_runtime.errors import UnsupportedError

_MOST_PRIVATE_BYTES = 128
"""Bytes of a thread's private arrays that unrolled loops may turn into values."""

_MOST_UNROLLED = 500
"""Instructions of an unrolled kernel whose private arrays have become values. LLVM's compile time grows with them, and
so do the values that vectors of a gang hold at the same time."""

_FEW_ACTIVE, _FEW_LANES = 4, 8
"""A kernel without a loop, most of whose time is that of loads and stores, has lanes along another axis if not more
than so many are active, else gangs of so many lanes, which are mostly full: ``c[i, j] = 2 * a[i, j] + b[i, j]`` takes
0.14 of the time with three columns of float32, 0.12 with eight and 0.25 with 24. One with a loop has lanes along
another axis if not more than half of them are active: a product of matrices takes 0.4 of the time with 16 columns."""

_MANY_ROWS, _MANY_ROWS_OF_LOOPS = 4096, 256
"""Threads along the other axis from which on that is worth another compilation: some hundred launches."""


def plan_vectors(request: KernelRequest, reason: str, gangs: GangPlan) -> Plan:
    """A plan for a kernel whose threads do not wait for each other; if they turn out to spin, one with regions."""
    graph = _read_unrolled(request)
    if graph.spin_loops:
        return write_spinning(request, graph, reason, gangs, form=VECTORS)
    item, kernel = graph.item, request.kernel
    width = request.width_in(item)
    if width < (MIN_LANES if request.requested_form == AUTO else 2):
        raise UnsupportedError(f"gangs of {width} threads are too small")
    if not (request.reach.observed or item.waits_for_grid):
        updates = find_scattered_updates(graph.function)
        item.memory.tables = UpdateTables(item, updates) if updates else None
    item.memory.results = KeptResults(item)
    item.order.joins_rows_from = graph.rows_from if item.order.extents[2] > 1 else None
    source, layout = graph.module, request.machine.target_data
    prologue = take_out_launch_values(graph.function)
    dense = assume_dense_rows(graph.function, measure_types(layout, item.module.context))
    # what collects for a worker, or joins rows of blocks, is for gangs
    is_plain = item.memory.totals is None and item.memory.tables is None and item.order.joins_rows_from is None
    can_be_alone = config.cpu_form() == AUTO and is_plain and not graph.has_frozen_loads
    alone = partial(run_threads, kernel, item, as_scalars=True, has_loop=has_loop(graph.function))
    body = GangBody(
        graph.function, item, prologue.extend(kernel_type(kernel)), source, layout, width,
        check_cost=config.cpu_form() == AUTO, exact=request.chosen_width is not None,
        strides=graph.strides, dense=dense, alone=alone if can_be_alone else None,
    )  # fmt: skip
    build_worker(kernel, item, run_prologue(prologue, item, source, layout, body))
    narrow = _find_narrow(request, item, body, graph.bounds) if item.order.tile > 1 and _is_free(request) else None
    told = "; ".join(filter(None, [reason, body.describe(), describe_axis(item)]))
    return Plan(VECTORS, told, graph.module, item, multiple=body.multiple, in_gangs=True, narrow=narrow)


def _is_free(request: KernelRequest) -> bool:
    """Whether the axis and the number of lanes are left to the compiler."""
    return request.requested_lanes == "auto" and request.chosen_width is None


def _find_narrow(
    request: KernelRequest, item: WorkItem, body: GangBody, bounds: Mapping[str, IndexBound]
) -> NarrowGrids | None:
    """The grids that leave most lanes of *body* idle; ``None`` if the kernel has no other."""
    axis = item.order.lane_axis
    other = 0 if axis else 1
    if not item.order.is_turned and spmd.thread_idx(AXES[other]) not in request.reach.functions:
        return None
    if body.has_loop:
        found = NarrowGrids(axis, other, body.width, body.width // 2 + 1, _MANY_ROWS_OF_LOOPS)
    else:
        lanes = _FEW_LANES if body.width > _FEW_LANES else 0
        found = NarrowGrids(axis, other, body.width, _FEW_ACTIVE + 1, _MANY_ROWS, lanes)
    if item.order.is_turned:  # a thread may do any number of rows, but a block of few would leave lanes idle, too
        found = found._replace(rows=body.width, is_turned=True)
    bound = bounds.get(AXES[axis])
    if bound is None or bound.predicate != "slt" or not isinstance(bound.value, Argument):
        return found
    parameter = request.kernel.parameters[bound.value.index - 1]  # the first argument is the work item
    return found._replace(offset=parameter.offset, size=parameter.size)


def _read_unrolled(request: KernelRequest) -> KernelGraph:
    """The graph of the kernel with loops of a few iterations unrolled; if it has private arrays only where that makes
    values of all of them. Loops over arrays in memory that are written out for a gang would take LLVM several times as
    long to compile."""
    graph = _read(request)
    arrays = [value for value in graph.function.instructions() if value.opcode == "alloca"]
    has_few = has_short_loop(graph.function) or find_bit_loops(graph.function)
    if (arrays and request.private_bytes > _MOST_PRIVATE_BYTES) or not has_few:
        return graph
    unrolled = _read(request, unroll=True)
    opcodes = [value.opcode for value in unrolled.function.instructions()]
    return graph if arrays and ("alloca" in opcodes or len(opcodes) > _MOST_UNROLLED) else unrolled


def _read(request: KernelRequest, unroll: bool = False) -> KernelGraph:
    return read_kernel(request, Reading(unroll, tiles=True, any_length=True, guesses_strides=True, joins_updates=True))
