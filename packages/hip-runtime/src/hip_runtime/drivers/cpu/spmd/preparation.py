"""Bitcode made ready to be cut: everything that synchronises inlined into the kernel, simplified, everything named."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from hip_runtime.drivers.cpu.frame import I1, I32, I64, PTR, VOID
from hip_runtime.drivers.cpu.spmd import operations

_SHUFFLED: dict[str, ir.Type] = {"i32": I32, "i64": I64, "float": ir.FloatType(), "double": ir.DoubleType()}

_SIGNATURES: dict[str, ir.FunctionType] = {
    operations.BARRIER: ir.FunctionType(VOID, [PTR]),
    operations.BARRIER_COUNT: ir.FunctionType(I32, [PTR, I1]),
    operations.GRID_BARRIER: ir.FunctionType(VOID, [PTR]),
    operations.WAVE_BARRIER: ir.FunctionType(VOID, [PTR]),
    operations.ACTIVE_LANES: ir.FunctionType(I64, [PTR]),
    operations.BALLOT: ir.FunctionType(I64, [PTR, I1]),
    **{operations.SHUFFLE + name: ir.FunctionType(kind, [PTR, kind, I32]) for name, kind in _SHUFFLED.items()},
}


def build_declarations(names: list[str]) -> ir.Module:
    """A module that declares the functions *names* with what LLVM may and may not assume of them."""
    module = ir.Module(name="spmd.declarations")
    for name in names:
        signature = _SIGNATURES.get(name)
        if signature is None:
            result = I32
            if name.startswith(operations.SHARED) or name == operations.DYNAMIC_SHARED:
                result = PTR
            elif name == operations.DYNAMIC_SHARED_BYTES:
                result = I64
            signature = ir.FunctionType(result, [PTR])
        function = ir.Function(module, signature, name)
        function.attributes.add("nounwind")
        function.attributes.add("convergent" if name in operations.SYNCHRONISING else "readnone")
    return module


def prepare(module: Any, kernel: str, synchronising: set[str], machine: Any) -> None:
    """Inline the functions *synchronising* into *kernel* and simplify *module*, of which only the kernel stays."""
    for function in module.functions:
        if function.is_declaration:
            continue
        if function.name != kernel:
            function.linkage = "internal"
            if function.name in synchronising:
                function.add_function_attribute("alwaysinline")
                function.add_function_attribute("convergent")
    module.get_function(kernel).add_function_attribute("convergent")
    first = llvm.create_new_module_pass_manager()
    first.add_always_inliner_pass()
    first.add_global_dead_code_eliminate_pass()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_unrolling = False
    options.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, options)
    first.run(module, builder)
    builder.getModulePassManager().run(module, builder)
    last = llvm.create_new_module_pass_manager()
    last.add_simplify_cfg_pass()
    last.add_instruction_namer_pass()
    last.run(module, builder)
    _name_globals(module)


def _name_globals(module: Any) -> None:
    """Give every global a name that other modules can refer to it by."""
    for number, value in enumerate([*module.functions, *module.global_variables]):
        if not value.name:
            value.name = f"spmd.unnamed.{number}"
        if not value.is_declaration and value.linkage.name in ("internal", "private"):
            value.linkage = "external"
