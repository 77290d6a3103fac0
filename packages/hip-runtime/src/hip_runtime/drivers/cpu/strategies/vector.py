"""The strategy that runs gangs of threads, as lanes of vectors."""

from __future__ import annotations

from hip_runtime import config
from hip_runtime.drivers.cpu.abi.worker import build_worker, kernel_type
from hip_runtime.drivers.cpu.analyses.scattered_updates import find_scattered_updates
from hip_runtime.drivers.cpu.passes.unroll_steps import has_short_loop
from hip_runtime.drivers.cpu.regions.gang_region import GangPlan
from hip_runtime.drivers.cpu.strategies.form_choice import AUTO, MIN_LANES, VECTORS
from hip_runtime.drivers.cpu.strategies.kernel_graph import read_kernel
from hip_runtime.drivers.cpu.strategies.kernel_request import KernelRequest
from hip_runtime.drivers.cpu.strategies.lane_axis import describe_axis
from hip_runtime.drivers.cpu.strategies.plan import Plan
from hip_runtime.drivers.cpu.strategies.region import write_spinning
from hip_runtime.drivers.cpu.vectorize.gang_body import GangBody
from hip_runtime.drivers.cpu.vectorize.update_tables import UpdateTables
from hip_runtime.errors import UnsupportedError


def plan_vectors(request: KernelRequest, reason: str, gangs: GangPlan) -> Plan:
    """A plan for a kernel whose threads do not wait for each other; if they turn out to spin, one with regions."""
    graph = read_kernel(request, tiles=True, any_length=True, guesses_strides=True)
    # of loops over arrays of many threads LLVM's compile time would be several times that
    if not request.private_bytes and has_short_loop(graph.function):
        graph = read_kernel(request, unroll=True, tiles=True, any_length=True, guesses_strides=True)
    if graph.spin_loops:
        return write_spinning(request, graph, reason, gangs, form=VECTORS)
    item, kernel = graph.item, request.kernel
    width = request.width_along(item.axes, item.tile)
    if width < MIN_LANES and request.requested_form == AUTO:
        raise UnsupportedError(f"gangs of {width} threads are too small")
    if not (request.reach.observed or item.waits_for_grid):
        updates = find_scattered_updates(graph.function)
        item.tables = UpdateTables(item, updates) if updates else None
    body = GangBody(
        graph.function, item, kernel_type(kernel), graph.module, request.machine.target_data, width,
        check_cost=config.cpu_form() == AUTO, exact=request.chosen_width is not None,
        strides=graph.strides,
    )  # fmt: skip
    build_worker(kernel, item, body)
    told = "; ".join(filter(None, [reason, body.describe(), describe_axis(item)]))
    return Plan(VECTORS, told, graph.module, item, multiple=body.multiple)
