"""The worker's body for kernels whose threads wait for each other: it runs each block by the block function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.fault_codes import MAX_POINTS
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.abi.worker import Blocks, Body
from hip_runtime.drivers.cpu.analyses.type_sizes import measure_types
from hip_runtime.drivers.cpu.regions.block_function import BlockFunction
from hip_runtime.drivers.cpu.regions.formation import RegionGraph
from hip_runtime.drivers.cpu.regions.gang_region import GangPlan
from hip_runtime.errors import UnsupportedError


def run_block(
    graph: RegionGraph, item: WorkItem, kind: ir.FunctionType, source: Any, layout: Any, gang_plan: GangPlan
) -> Body:
    """A worker's body that runs the blocks of a kernel of type *kind* that was cut into *graph*.

    *source* is the parsed module of the kernel, *layout* LLVM's data layout. *gang_plan* says which regions run in
    gangs, and records which did.
    """
    if len(graph.points) > MAX_POINTS:
        raise UnsupportedError(
            f"kernel {graph.function.name!r} has {len(graph.points)} synchronising operations after inlining; the "
            f"CPU device takes at most {MAX_POINTS}"
        )

    def body(builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value], blocks: Blocks) -> None:
        size_of = measure_types(layout, item.module.context)
        row_lanes = item.order.row_lanes  # a value of the worker, which the block function has one of its own for
        made = BlockFunction(graph, item, kind, source, size_of, gang_plan)
        function = made.build()
        item.order.row_lanes = row_lanes
        if made.pausing is None:
            with blocks.each():
                if item.order.tile > 1:
                    item.layout.store(builder, item.order.row_lanes, place, "length")
                builder.call(function, [place, *arguments])
            return
        item.order.takes_turns = gang_plan.takes_turns = True
        made.pausing.write(
            builder, [place, *arguments], blocks, lambda: builder.call(function, [place, *arguments])
        )  # fmt: skip

    return body
