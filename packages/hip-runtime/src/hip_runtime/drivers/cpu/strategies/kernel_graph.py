"""A kernel read as a graph: inlined, simplified, with its loads frozen where necessary and yields in its spin loops."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi.thread_order import ALONG_X, AXES
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.bit_loops import find_bit_loops
from hip_runtime.drivers.cpu.analyses.chunk_totals import find_totals
from hip_runtime.drivers.cpu.analyses.elementwise import mark_elementwise_calls, read_elementwise
from hip_runtime.drivers.cpu.analyses.global_indices import computes_with_extent
from hip_runtime.drivers.cpu.analyses.index_bounds import IndexBound, find_index_bounds
from hip_runtime.drivers.cpu.analyses.inlined_callees import find_affordable
from hip_runtime.drivers.cpu.analyses.known_ranges import KnownRanges, constant
from hip_runtime.drivers.cpu.analyses.near_accesses import MOST_NEAR
from hip_runtime.drivers.cpu.analyses.spin_loops import find_spin_loops
from hip_runtime.drivers.cpu.analyses.stack_usage import stack_bytes
from hip_runtime.drivers.cpu.analyses.stride_arguments import assume_strides, guess_strides
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf, measure_types
from hip_runtime.drivers.cpu.analyses.update_loops import find_update_loops
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.drivers.cpu.ir.model import Argument, Function, Value
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.passes.block_indices import add_thread_indices
from hip_runtime.drivers.cpu.passes.common_values import merge_common_values
from hip_runtime.drivers.cpu.passes.complements import subtract_complements
from hip_runtime.drivers.cpu.passes.exact_quotients import divide_as_integers
from hip_runtime.drivers.cpu.passes.float_extremes import is_extreme, update_extremes
from hip_runtime.drivers.cpu.passes.freeze_loads import LOADS_ARE_LATE, freeze_loads
from hip_runtime.drivers.cpu.passes.half_products import halve_products
from hip_runtime.drivers.cpu.passes.index_divisions import write_index_divisions
from hip_runtime.drivers.cpu.passes.index_freezes import drop_index_freezes
from hip_runtime.drivers.cpu.passes.inline import inline_functions, prepare, read_callees, unroll_marked
from hip_runtime.drivers.cpu.passes.insert_yields import insert_yields
from hip_runtime.drivers.cpu.passes.joined_quotients import join_quotients
from hip_runtime.drivers.cpu.passes.known_values import replace_known
from hip_runtime.drivers.cpu.passes.merge_phis import merge_phis
from hip_runtime.drivers.cpu.passes.odd_widths import widen_odd_integers
from hip_runtime.drivers.cpu.passes.packed_choices import unpack_choices
from hip_runtime.drivers.cpu.passes.remove_unused import remove_unused
from hip_runtime.drivers.cpu.passes.short_data import shorten_data
from hip_runtime.drivers.cpu.passes.short_indices import bound_short_indices, has_short_indices
from hip_runtime.drivers.cpu.passes.turned_blocks import turn_threads
from hip_runtime.drivers.cpu.passes.unroll_steps import find_nests, find_shared_walks, find_steps, mark_unrolled
from hip_runtime.drivers.cpu.passes.wrapped_remainders import replace_wrapped_remainders
from hip_runtime.drivers.cpu.strategies.form_choice import check_callees
from hip_runtime.drivers.cpu.strategies.kernel_request import KernelRequest
from hip_runtime.drivers.cpu.strategies.lane_axis import AxisChoice, Tile, joins_row
from hip_runtime.drivers.cpu.strategies.working_blocks import define_limit
from hip_runtime.drivers.cpu.vectorize.chunk_totals import ChunkTotals
from hip_runtime.errors import UnsupportedError


@dataclass(frozen=True)
class KernelGraph:
    """The kernel's graph, the module that it was read from, and the work item of its future worker."""

    function: Function
    module: Any
    item: WorkItem
    has_frozen_loads: bool
    spin_loops: int
    """The number of loops with yields."""
    strides: Mapping[Argument, int] = field(default_factory=dict)
    """Arguments that probably are these numbers of bytes, for a version of the code."""
    bounds: Mapping[str, IndexBound] = field(default_factory=dict)
    """What the index of a thread that does anything is below, by axis."""
    rows_from: int | None = None
    """Threads of a grid from which on gangs should go through several rows of its blocks at once, if ever."""


@dataclass(frozen=True)
class Reading:
    """How a kernel is read. *unroll* unrolls loops with small trip counts; *limits_callees* limits the stack of
    functions that are not inlined; with *tiles*, gangs may reach over several blocks; with *any_length*, the length of
    blocks is not a constant, if one program can run blocks of several lengths as well as one for each;
    *guesses_strides* looks for arguments that are distances in arrays, for a version of the code;
    *joins_updates* unrolls loops of updates that may be done in a table."""

    unroll: bool = False
    limits_callees: bool = True
    tiles: bool = False
    any_length: bool = False
    guesses_strides: bool = False
    joins_updates: bool = False


def read_kernel(request: KernelRequest, reading: Reading) -> KernelGraph:
    """The graph of the kernel, as *reading* says.

    Raises `UnsupportedError` for unsupported instructions, and for functions that have to be inlined and cannot be.
    """
    graph = _read_kernel(request, reading)
    if graph is None:
        graph = _read_kernel(request, replace(reading, any_length=False))
    assert graph is not None
    return graph


def _read_kernel(request: KernelRequest, reading: Reading) -> KernelGraph | None:
    """The same; ``None`` if the length of blocks has to be a constant, and is not."""
    item, module, printed, function = _read_source(request, reading)
    tiles = reading.tiles and request.is_tileable and _may_join(request, item)
    if item.order.lengths is not None and _needs_length(request, function, tiles):
        return None
    _prepare(request, item, printed, function)
    frozen = LOADS_ARE_LATE and freeze_loads(function)
    record("freeze_loads", function)
    spin_loops = 0 if request.is_single_thread else insert_yields(function)
    record("insert_yields", function)
    waits = bool(find_spin_loops(function)) if request.is_single_thread else spin_loops > 0
    item.may_run_alone = not (waits or item.waits_for_grid)
    tiles = tiles and not waits
    size_of = measure_types(request.machine.target_data, item.module.context)
    strides = guess_strides(function, size_of) if reading.guesses_strides and not spin_loops else {}
    has_lanes = request.is_turnable and not spin_loops
    tile = _choose_lanes(request, function, item, size_of, tiles) if has_lanes else Tile()
    if tile is None:
        return None
    if spin_loops or item.order.tile > 1 or item.order.axes != ALONG_X:
        item.order.lengths = None
    if not (spin_loops or request.reach.observed):
        updates = find_totals(function)
        item.memory.totals = ChunkTotals(item, updates) if updates else None
    bounds = find_index_bounds(function, _extents(item))
    if bounds and not (request.reach.observed or item.waits_for_grid):
        item.limit = define_limit(request.kernel, item, bounds)
    return KernelGraph(function, module, item, frozen, spin_loops, strides, bounds, tile.rows_from)


def _read_source(request: KernelRequest, reading: Reading) -> tuple[WorkItem, Any, PrintedModule, Function]:
    """The work item, the module with what is inlined and unrolled, the same printed, and the kernel in it."""
    kernel, machine, unroll = request.kernel, request.machine, reading.unroll
    module = request.take_module()
    item = request.make_item(module, reading.any_length)
    module = request.declare_intrinsics(module, item)
    prepare(module, kernel.name, request.reach.synchronising, machine, request.context, unroll)
    if reading.limits_callees:
        check_callees(kernel.name, stack_bytes(module, machine.target_data, kernel.name))
    printed = _inline_callees(request, module, item, unroll)
    item.has_lines = printed.has_lines
    function = _read(request, printed, item)
    blocks = 0
    while len(function.blocks) != blocks:
        marked = _find_unrolled(function, unroll, reading.joins_updates and not blocks)
        if not marked:
            break
        blocks = len(function.blocks)  # as many are left if LLVM does not unroll what is marked
        module = request.context.read_text(mark_unrolled(module, kernel.name, marked))
        unroll_marked(module, machine)
        printed = PrintedModule(module)
        function = _read(request, printed, item)
    record("read", function)
    return item, module, printed, function


def _needs_length(request: KernelRequest, function: Function, tiles: bool) -> bool:
    """Whether the length of blocks has to be a constant of the program of *function*; with *tiles*, these may be
    joined."""
    return (
        (tiles and joins_row(function, request.block[0], request.chosen_width))
        or computes_with_extent(function, "x", may_step=bool(request.reach.waiting))
        or has_short_indices(function)
    )


def _prepare(request: KernelRequest, item: WorkItem, printed: PrintedModule, function: Function) -> None:
    """Simplify *function*, and mark in it what later steps are to know."""
    if has_short_indices(function):
        item.has_short_indices = True
        bound_short_indices(function, request.block)
        record("bound_short_indices", function)
    mark_elementwise_calls(function, printed, item.module.context)
    record("mark_elementwise_calls", function)
    size_of = measure_types(request.machine.target_data, item.module.context)
    _simplify(function, size_of, merges_values=not request.reach.waiting)


def _choose_lanes(
    request: KernelRequest, function: Function, item: WorkItem, size_of: SizeOf, tiles: bool
) -> Tile | None:  # fmt: skip
    """Have *item* and *function* run in gangs along the axis, and in the *tiles*, that are best; ``None`` if the
    threads of blocks have to be turned for that, and these have no constant length."""
    if tiles:
        for axis, extent in zip(AXES, request.block, strict=True):
            if extent == 1:
                add_thread_indices(function, axis)
        record("add_thread_indices", function)
    choice = _ask_for_axes(request, function, item, size_of, tiles)
    if choice.should_turn(request.requested_lanes):
        if item.order.lengths is not None:
            return None
        turn_threads(function)
        item.order.turn()
        add_thread_indices(function, "x")
        record("turn_threads", function)
        choice = _ask_for_axes(request, function, item, size_of, tiles)
    item.order.axes = choice.choose(request.requested_lanes)
    tile = choice.choose_tile(item.order.lane_axis)
    item.order.tile = tile.blocks
    if item.order.tile > 1:
        choice.join_blocks(item.order.lane_axis)
    return tile


def _ask_for_axes(
    request: KernelRequest, function: Function, item: WorkItem, size_of: SizeOf, tiles: bool
) -> AxisChoice:  # fmt: skip
    near = guess_strides(function, size_of, MOST_NEAR)
    estimated = assume_strides(function, near) if near else None
    return AxisChoice(function, item.order.block, size_of, request.chosen_width, tiles, estimated)


def _may_join(request: KernelRequest, item: WorkItem) -> bool:
    """Whether blocks may be joined, whatever their shape. Of the code of a line for full gangs and that for others, gdb
    stops in the first only, so small blocks whose lines are known have gangs of their own, unless these are known for a
    report alone."""
    return not item.has_lines or remarks.are_wanted() or math.prod(request.block) >= request.most_lanes


def _extents(item: WorkItem) -> dict[str, int | None]:
    known = item.known
    return {axis: known.get(spmd.block_dim(axis)) for axis in AXES}


def _read(request: KernelRequest, printed: PrintedModule, item: WorkItem) -> Function:
    """The graph of the kernel in *printed*, with its likely arguments as constants."""
    function = read_function(printed, request.kernel.name, item.module.context)
    remove_unused(function)  # as conditions are that only LLVM is told
    update_extremes(function)
    _, *passed = function.arguments  # the first one is the work item
    known: dict[Value, Value] = {}
    for position, number in request.kernel.likely_arguments:
        kind = passed[position].type
        assert isinstance(kind, ir.IntType)
        known[passed[position]] = constant(kind, number)
    if known:
        for value in function.instructions():
            value.operands = [known.get(operand, operand) for operand in value.operands]
        replace_known(function, KnownRanges())
    return function


def _simplify(function: Function, size_of: SizeOf, merges_values: bool) -> None:
    """Write what *function* computes so that it is clearer how that differs from lane to lane. Where threads wait, it
    *merges_values* not, as each that is not computed again would be kept for each thread."""
    if unpack_choices(function):
        remove_unused(function)
    record("unpack_choices", function)
    widen_odd_integers(function)
    record("widen_odd_integers", function)
    if halve_products(function):
        remove_unused(function)
    record("halve_products", function)
    drop_index_freezes(function)
    record("drop_index_freezes", function)
    merge_phis(function)
    record("merge_phis", function)
    divide_as_integers(function)
    record("divide_as_integers", function)
    if write_index_divisions(function) and divide_as_integers(function):  # what such a division left
        write_index_divisions(function)
    record("write_index_divisions", function)
    if join_quotients(function, size_of):
        remove_unused(function)
    record("join_quotients", function)
    if shorten_data(function):
        remove_unused(function)
    record("shorten_data", function)
    if merges_values:
        merge_common_values(function)
        record("merge_common_values", function)
    subtract_complements(function)
    record("subtract_complements", function)
    replace_wrapped_remainders(function)
    record("replace_wrapped_remainders", function)


def _find_unrolled(function: Function, wholly: bool, in_part: bool) -> dict[str, int | None]:
    """The blocks that end loops of *function* to be unrolled, by name: *wholly*, or *in_part*, with how many times."""
    found: dict[str, int | None] = {}
    if wholly:
        finders = find_steps, find_shared_walks, find_nests, find_bit_loops
        found = dict.fromkeys([name for find in finders for name in find(function)])
    return {**found, **(find_update_loops(function) if in_part else {})}


def multiplies_length(request: KernelRequest) -> bool:
    """Whether the kernel as it was handed in only multiplies the length of blocks, or steps by it, so that it is worth
    the while to read it without that as a constant."""
    if request.lengths is None:
        return False
    try:
        function = read_function(request.printed(), request.kernel.name, ir.Context())
    except UnsupportedError:  # inlined and simplified, it may be another matter
        return True
    return not computes_with_extent(function, "x", may_step=True)


def _inline_callees(request: KernelRequest, module: Any, item: WorkItem, unroll: bool) -> PrintedModule:
    """Inline the functions that are only correct as part of the kernel, and those of which lanes would call one after
    another what can be copied; the printed module."""
    printed = PrintedModule(module)
    if unroll not in request.inlined:
        request.inlined[unroll] = _find_inlined(request, printed, item.module.context)
    if request.inlined[unroll]:
        inline_functions(module, request.inlined[unroll], request.machine, request.context)
        printed = PrintedModule(module)
    return printed


def _find_inlined(request: KernelRequest, printed: PrintedModule, context: ir.Context) -> list[str]:
    callees = read_callees(printed, request.kernel.name, context)
    functions = {name: graph for name, graph in callees.items() if not is_extreme(name)}
    if not functions:
        return []
    apart = {name: graph for name, graph in functions.items() if read_elementwise(printed, name, context) is None}
    affordable = find_affordable(read_function(printed, request.kernel.name, context), apart)
    needed = [name for name, graph in functions.items() if _must_be_inlined(graph, request.is_single_thread)]
    return sorted({*affordable, *needed})


def _must_be_inlined(function: Function, is_single_thread: bool) -> bool:
    """Whether *function* is only correct if it is part of the kernel, as its loads have to be frozen or it spins, which
    does not matter if a block *is_single_thread*."""
    return (LOADS_ARE_LATE and freeze_loads(function)) or not (is_single_thread or not find_spin_loops(function))
