"""Prepares bitcode for region formation: inlines what synchronises into the kernel, simplifies, names everything."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.errors import UnsupportedError


def prepare(module: Any, kernel: str, synchronising: set[str], machine: Any, unroll: bool = False) -> None:
    """Inline the functions *synchronising* into *kernel*, and simplify *module*, making all but the kernel internal.

    *unroll* fully unrolls loops with small trip counts, as far as LLVM finds that profitable.
    """
    others = synchronising - {kernel}
    for function in module.functions:
        if function.is_declaration or function.name == kernel:
            continue
        function.linkage = "internal"
        if function.name in others and _can_mark_functions():
            function.add_function_attribute("alwaysinline")
    _simplify(module, machine, bool(others) and not _can_mark_functions(), unroll)
    _check_inlined(module, kernel, others)
    _name_globals(module)


def prepare_in_order(module: Any, kernel: str, machine: Any) -> None:
    """Inline all functions that can be into *kernel*, without changing the order in which it accesses memory.

    Calls of functions that could not be inlined stay.
    """
    for function in module.functions:
        if not function.is_declaration and function.name != kernel:
            function.linkage = "internal"
            if _can_mark_functions() and not _forbids_inlining(function):
                function.add_function_attribute("alwaysinline")
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_namer_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    _name_globals(module)


def _forbids_inlining(function: Any) -> bool:
    return bool({b"noinline", b"optnone"}.intersection(b" ".join(function.attributes).split()))


def find_functions(
    module: PrintedModule, kernel: str, context: ir.Context, suits: Callable[[Function], bool]
) -> list[str]:
    """The functions of *module*, except *kernel*, that can be read and for which *suits* holds; structs become types of
    *context*."""
    found = []
    for name in module.functions:
        if name != kernel:
            try:
                graph = read_function(module, name, context)
            except UnsupportedError:
                continue
            if suits(graph):
                found.append(name)
    return found


def inline_functions(module: Any, kernel: str, names: Collection[str], machine: Any) -> None:
    """Inline the functions *names* of the prepared *module* into their callers, and so into *kernel*, where
    possible."""
    for function in module.functions:
        if function.name in names and not _forbids_inlining(function) and _can_mark_functions():
            function.linkage = "internal"
            function.add_function_attribute("alwaysinline")
    _simplify(module, machine, inline_everything=False, unroll=False)
    _name_globals(module)


def _simplify(module: Any, machine: Any, inline_everything: bool, unroll: bool) -> None:
    """LLVM's O2 pipeline without vectorisation and, unless *unroll*, without unrolling; then name all values."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_unrolling = False
    options.loop_interleaving = False
    if inline_everything:
        options.inlining_threshold = _EVERYTHING
    builder = llvm.create_pass_builder(machine, options)
    first = llvm.create_new_module_pass_manager()
    first.add_always_inliner_pass()
    first.add_global_dead_code_eliminate_pass()
    first.run(module, builder)
    builder.getModulePassManager().run(module, builder)
    if unroll:
        _unroll(module, options)
    last = llvm.create_new_module_pass_manager()
    last.add_simplify_cfg_pass()
    last.add_instruction_namer_pass()
    last.run(module, builder)


def _unroll(module: Any, options: Any) -> None:
    """Fully unroll loops whose small trip count LLVM knows. There is no target machine, as for some LLVM would
    partially unroll other loops, too."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_loop_unroll_pass()
    passes.add_instruction_combine_pass()
    passes.run(module, llvm.create_pass_builder(None, options))


_EVERYTHING = 10_000_000
"""An inlining threshold above the cost of any function, with room for LLVM to multiply it in 32 bits."""


@cache
def _can_mark_functions() -> bool:
    """Whether llvmlite can add attributes to functions; versions up to 0.47 add them to the return value instead, where
    LLVM does not allow them. With those, everything that the kernel calls is inlined."""
    module = llvm.parse_assembly("define void @probe() {\n ret void\n}", llvm.create_context())
    module.get_function("probe").add_function_attribute("alwaysinline")
    try:
        module.verify()
    except RuntimeError:
        return False
    return True


def _check_inlined(module: Any, kernel: str, others: set[str]) -> None:
    left = sorted(function.name for function in module.functions if function.name in others)
    if left:
        raise UnsupportedError(
            f"kernel {kernel!r} reaches a barrier or a wave operation in {', '.join(map(repr, left))}, which the CPU "
            "device has to inline and LLVM did not; make that smaller, or synchronise in the kernel itself"
        )


def _name_globals(module: Any) -> None:
    """Give every global a name and external linkage, so that other modules can refer to it."""
    for number, value in enumerate([*module.functions, *module.global_variables]):
        if not value.name:
            value.name = f"spmd.unnamed.{number}"
        if not value.is_declaration and value.linkage.name in ("internal", "private"):
            value.linkage = "external"
