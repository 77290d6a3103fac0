"""The strategy that runs the threads of a block region by region, from one sync point to the next."""

from __future__ import annotations

import math
from dataclasses import replace

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi.block_lengths import WIDEST
from hip_runtime.drivers.cpu.abi.intrinsics import CUT, YIELD
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.abi.worker import build_worker, kernel_type
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.analyses.thread_strides import ThreadStrides
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf, measure_types
from hip_runtime.drivers.cpu.ir.model import Constant, Instruction
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.llvmir import I32
from hip_runtime.drivers.cpu.passes.launch_prologue import take_out_launch_values
from hip_runtime.drivers.cpu.regions.block_body import run_block
from hip_runtime.drivers.cpu.regions.common_branches import cut_behind_common_branches
from hip_runtime.drivers.cpu.regions.common_joins import cut_at_common_joins
from hip_runtime.drivers.cpu.regions.context_values import plan_transfers
from hip_runtime.drivers.cpu.regions.formation import RegionGraph, cut_at_sync_points
from hip_runtime.drivers.cpu.regions.gang_region import GangPlan
from hip_runtime.drivers.cpu.regions.needless_barriers import drop_needless_barriers
from hip_runtime.drivers.cpu.regions.private_layout import interleave_kept
from hip_runtime.drivers.cpu.regions.shared_steps import find_gang_work
from hip_runtime.drivers.cpu.strategies.form_choice import LOOP, MIN_LANES, REGIONS
from hip_runtime.drivers.cpu.strategies.kernel_graph import KernelGraph, Reading, multiplies_length, read_kernel
from hip_runtime.drivers.cpu.strategies.kernel_request import KernelRequest
from hip_runtime.drivers.cpu.strategies.lane_axis import describe_axis
from hip_runtime.drivers.cpu.strategies.plan import Plan, attempt
from hip_runtime.drivers.cpu.vectorize.prologue_body import run_prologue
from hip_runtime.errors import UnsupportedError


def plan_regions(request: KernelRequest, reason: str, gangs: GangPlan) -> Plan:
    """A plan for any kernel whose synchronising functions can be inlined."""
    exchanges_in_memory = request.has_wave_operations and not gangs.waves
    unroll = not exchanges_in_memory  # unrolling exchanges through memory gains nothing
    if gangs.width > 1 and request.is_tileable:
        joined = Reading(unroll=unroll, tiles=True)
        outcome = attempt(lambda: _plan_joined(request, read_kernel(request, joined), reason, gangs))
        if isinstance(outcome, Plan):
            return outcome
        gangs = replace(gangs, widths=[], regions=0, refused=[])
    graph = read_kernel(request, Reading(unroll=unroll, any_length=multiplies_length(request)))
    if graph.spin_loops:
        return write_spinning(request, graph, reason, gangs, form=REGIONS)
    return write_regions(request, graph, REGIONS, reason, gangs)


def _plan_joined(request: KernelRequest, graph: KernelGraph, reason: str, gangs: GangPlan) -> Plan:
    """A plan with gangs that reach over several blocks, which only wait for the whole grid; `UnsupportedError` if they
    need not or cannot."""
    if graph.item.order.tile == 1:
        raise UnsupportedError("blocks are not joined")
    return write_regions(request, graph, REGIONS, reason, gangs)


def write_spinning(
    request: KernelRequest, graph: KernelGraph, reason: str, gangs: GangPlan, form: str = LOOP
) -> Plan:  # fmt: skip
    """The plan for a kernel with spin loops for which *form* was planned."""
    if gangs.waves:
        gangs = GangPlan(request.width, gangs.everywhere)
    loops = "a loop" if graph.spin_loops == 1 else f"{graph.spin_loops} loops"
    found = f"threads wait for one another in {loops}"
    return write_regions(request, graph, REGIONS, f"{reason}; {found}" if form == REGIONS else found, gangs)


def _along_axes(request: KernelRequest, graph: KernelGraph, gangs: GangPlan) -> GangPlan:
    """*gangs* as wide as the block is along the axis of the lanes."""
    if gangs.waves or gangs.width == 1:
        return gangs
    width = request.width_in(graph.item)
    return replace(gangs, width=width if width >= (2 if gangs.everywhere else MIN_LANES) else 1)


def write_regions(request: KernelRequest, graph: KernelGraph, form: str, reason: str, gangs: GangPlan) -> Plan:
    """Cut the graph into regions, and write a worker that runs one after another; *gangs* records what was done."""
    gangs = _along_axes(request, graph, gangs)
    waits = spmd.SYNCHRONISING - spmd.WAVE_WIDE if gangs.waves else spmd.SYNCHRONISING
    prologue = take_out_launch_values(graph.function)
    regions = cut_at_sync_points(graph.function, waits | {YIELD})
    record("cut_at_sync_points", regions.function)
    size_of = measure_types(request.machine.target_data, graph.item.module.context)
    if _keeps_order(graph.item, gangs):
        regions = drop_needless_barriers(regions, graph.item.order.along, graph.item.order.threads, size_of)
    if gangs.width > 1 and not gangs.numbered:
        regions = cut_behind_common_branches(regions, graph.item.order.along)
    if not (gangs.numbered or gangs.lockstep or graph.item.observed):
        regions = cut_at_common_joins(regions)
    multiple = _share_lengths(graph, regions, gangs, size_of)
    regions = interleave_kept(regions, graph.item.order.threads, size_of)
    kind = prologue.extend(kernel_type(request.kernel))
    source, layout = graph.module, request.machine.target_data
    body = run_block(regions, graph.item, kind, source, layout, gangs)
    build_worker(request.kernel, graph.item, run_prologue(prologue, graph.item, source, layout, body))
    done = [gangs.describe() if form == REGIONS else "", describe_axis(graph.item)]
    told = "; ".join([reason, *filter(None, done)])
    return Plan(
        form, told, graph.module, graph.item, tuple(regions.points), multiple,
        in_gangs=0 < gangs.regions == len(gangs.widths),
    )  # fmt: skip


def _keeps_order(item: WorkItem, gangs: GangPlan) -> bool:
    """Whether all threads of a block are in one row of gangs, and no one asks for barriers as they were written."""
    is_row = item.order.threads == item.order.limits[item.order.lane_axis]
    return is_row and gangs.width > 1 and not (gangs.numbered or gangs.lockstep or item.observed)


def _share_lengths(graph: KernelGraph, regions: RegionGraph, gangs: GangPlan, size_of: SizeOf) -> int:
    """Decide whether the code serves several lengths of blocks, and what these have to be a multiple of then: nothing
    if there is code for a part of a gang in any case, as where threads may have returned."""
    item = graph.item
    if item.order.lengths is None:
        return 1
    if _serves_lengths(regions, gangs) and not _keeps_in_registers(regions, item, gangs, size_of):
        multiple = math.gcd(item.order.block[0], item.order.lengths[0])  # no gang is wider than the shortest block
        serves_any = multiple % gangs.width != 0 or (multiple < WIDEST and any(part.masked for part in regions.regions))
        item.order.multiple = 1 if serves_any else multiple
        return item.order.multiple
    item.order.lengths = None
    length = Constant(I32, str(item.order.block[0]), item.order.block[0])
    for value in regions.function.instructions():
        value.operands = [
            length if isinstance(operand, Instruction) and operand.callee == spmd.block_dim("x") else operand
            for operand in value.operands
        ]
    return 1


def _serves_lengths(regions: RegionGraph, gangs: GangPlan) -> bool:
    """Whether code for several lengths of blocks is as fast as code for each: threads run in gangs, one after another
    in a loop. Loops over single threads are vectors to LLVM, which it writes out for a known number of threads."""
    return all(point.operation in (spmd.BARRIER, CUT) for point in regions.points) and all(
        gangs.suits(region, regions)
        for region in regions.regions
        if any(has_effect(value) for block in region.blocks for value in block.instructions[:-1])
    )


def _keeps_in_registers(regions: RegionGraph, item: WorkItem, gangs: GangPlan, size_of: SizeOf) -> bool:
    """Whether the gangs of a known number of threads would keep elements of shared arrays in registers."""
    lengths, item.order.lengths = item.order.lengths, None
    strides = ThreadStrides(item.order.along, regions.uniformity.varying, size_of)
    work = find_gang_work(regions, plan_transfers(regions, None), item, gangs, size_of, strides)
    item.order.lengths = lengths
    return bool(work.steps)
