"""Bodies of workers that first compute what a launch decides, see `passes.launch_prologue`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.abi.worker import Blocks, Body
from hip_runtime.drivers.cpu.analyses.type_sizes import measure_types
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.drivers.cpu.ir.symbol_declarations import SymbolDeclarations
from hip_runtime.drivers.cpu.llvmir import I32, PTR, allocate
from hip_runtime.drivers.cpu.passes.launch_prologue import LaunchPrologue
from hip_runtime.drivers.cpu.vectorize.gang_function import GangFunction
from hip_runtime.drivers.cpu.vectorize.gang_options import GangOptions

_NAME = "spmd.launch"


def run_prologue(prologue: LaunchPrologue, item: WorkItem, source: Any, layout: Any, body: Body) -> Body:
    """*body* behind *prologue*, whose numbers it takes behind the kernel's arguments. *source* is the parsed module of
    the kernel, *layout* LLVM's data layout."""
    computes = prologue.function
    if computes is None:
        return body

    def run(builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value], blocks: Blocks) -> None:
        symbols = SymbolDeclarations(item.module, source)
        size_of = measure_types(layout, item.module.context)
        remarks.begin(_NAME, width=1, rows=1)
        for value in computes.instructions():
            if value.opcode not in ("load", "store"):  # of the table and of the numbers, which are not the user's
                remarks.remark(_NAME, False, value, remarks.AHEAD, masked=False, depth=0)
        kinds = [PTR, *(argument.type for argument in arguments), *[PTR for _ in prologue.types]]
        with remarks.muted():
            function = GangFunction(
                computes, item, kinds, symbols, size_of, 1, GangOptions(_NAME, exits_on_data=False, is_alone=True)
            ).build()
        places = [allocate(builder, kind, "decided") for kind in prologue.types]
        builder.call(function, [place, *arguments, *places, I32(1)])
        numbers = [builder.load(at, typ=kind) for at, kind in zip(places, prologue.types, strict=True)]
        body(builder, place, [*arguments, *numbers], blocks)

    return run
