"""The strategy that runs the threads of a block one after another, in a loop that LLVM may vectorise."""

from __future__ import annotations

from hip_runtime.drivers.cpu.abi.worker import build_worker, run_threads
from hip_runtime.drivers.cpu.analyses.cfg import has_loop
from hip_runtime.drivers.cpu.analyses.launch_values import find_launch_values
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.passes.index_signs import decide_at_start
from hip_runtime.drivers.cpu.regions.gang_region import GangPlan
from hip_runtime.drivers.cpu.strategies.form_choice import LOOP, MIN_LANES
from hip_runtime.drivers.cpu.strategies.kernel_graph import Reading, read_kernel
from hip_runtime.drivers.cpu.strategies.kernel_request import KernelRequest
from hip_runtime.drivers.cpu.strategies.lane_axis import describe_axis
from hip_runtime.drivers.cpu.strategies.plan import Plan
from hip_runtime.drivers.cpu.strategies.region import write_regions, write_spinning


def plan_loop(request: KernelRequest, reason: str, gangs: GangPlan, as_scalars: bool) -> Plan:
    """A plan for a kernel that is read, as its loads may have to be frozen or its threads may spin; if so, it is
    written as regions, with *gangs*. So is one with loops whose start decides what indices mean, or with what the
    launch decides, a thread at a time. *as_scalars*: vectors were found to be slower, so LLVM should make none of the
    threads, either: where these access memory in steps, it takes gathers and scatters to be quick."""
    graph = read_kernel(request, Reading(limits_callees=False, any_length=request.widest < MIN_LANES))
    if graph.spin_loops:
        return write_spinning(request, graph, reason, gangs)
    is_changed = decide_at_start(graph.function)
    record("decide_at_start", graph.function)
    is_changed = is_changed or find_launch_values(graph.function) is not None
    if is_changed or graph.has_frozen_loads:
        graph.item.order.lengths = None
        return write_regions(request, graph, LOOP, reason, GangPlan(1) if is_changed else gangs)
    body = run_threads(request.kernel, graph.item, as_scalars, has_loop(graph.function))
    build_worker(request.kernel, graph.item, body)
    told = "; ".join(filter(None, [reason, describe_axis(graph.item)]))
    return Plan(LOOP, told, graph.module, graph.item)


def plan_unread_loop(request: KernelRequest, reason: str, as_scalars: bool) -> Plan:
    """A plan for a kernel that cannot be read, which is called as it was handed in, see `plan_loop`."""
    has_lines = request.printed().has_lines
    module = request.take_module()
    item = request.make_item(module)
    item.has_lines = has_lines
    module = request.without_last_barrier(module)
    build_worker(request.kernel, item, run_threads(request.kernel, item, as_scalars))
    return Plan(LOOP, reason, module, item)
