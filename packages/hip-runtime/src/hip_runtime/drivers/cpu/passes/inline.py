"""Prepares bitcode for region formation: inlines what synchronises into the kernel, simplifies, names everything."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.passes.float_extremes import is_extreme
from hip_runtime.drivers.cpu.passes.inline_marks import can_mark_functions, mark_for_inlining, name_globals
from hip_runtime.errors import UnsupportedError


def prepare(
    module: Any, kernel: str, synchronising: set[str], machine: Any, context: LlvmContext, unroll: bool = False
) -> None:
    """Inline the functions *synchronising* into *kernel*, and simplify *module* in *context*, making all internal but
    the kernel and those of `float_extremes`, which have to keep their parameters.

    *unroll* fully unrolls loops with small trip counts, as far as LLVM finds that profitable.
    """
    others = synchronising - {kernel}
    for function in module.functions:
        if function.is_declaration or function.name == kernel or is_extreme(function.name):
            continue
        function.linkage = "internal"
        if function.name in others and can_mark_functions():
            function.add_function_attribute("alwaysinline")
    _simplify(module, machine, bool(others) and not can_mark_functions(), unroll)
    left = _find_left(module, others)
    if left and not can_mark_functions():  # without marks, LLVM leaves some whatever the threshold
        mark_for_inlining(module, left, context)
        _simplify(module, machine, inline_everything=False, unroll=unroll)
        left = _find_left(module, others)
    _check_inlined(kernel, left)
    name_globals(module)


def prepare_in_order(module: Any, kernel: str, machine: Any, context: LlvmContext) -> None:
    """Inline all functions that can be into *kernel*, without changing the order in which it accesses memory.

    Calls of functions that could not be inlined stay.
    """
    mark_for_inlining(module, {function.name for function in module.functions} - {kernel}, context)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_namer_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    name_globals(module)


def read_callees(module: PrintedModule, kernel: str, context: ir.Context) -> dict[str, Function]:
    """The functions of *module*, except *kernel*, that can be read, by name; structs become types of *context*."""
    found = {}
    for name in module.functions:
        if name != kernel:
            with suppress(UnsupportedError):
                found[name] = read_function(module, name, context)
    return found


def unroll_marked(module: Any, machine: Any) -> None:
    """Unroll the loops of the prepared *module* that are marked, and simplify what they become."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    _unroll(module, options)
    passes = llvm.create_new_module_pass_manager()
    _add_simplification(passes)
    passes.add_simplify_cfg_pass()
    passes.add_instruction_namer_pass()
    passes.run(module, llvm.create_pass_builder(machine, options))


def inline_functions(module: Any, names: Collection[str], machine: Any, context: LlvmContext) -> None:
    """Inline the functions *names* of the prepared *module* into their callers, and so into the kernel, where
    possible."""
    mark_for_inlining(module, names, context)
    _simplify(module, machine, inline_everything=False, unroll=False)
    name_globals(module)


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
    last = llvm.create_new_module_pass_manager()
    if unroll:
        _unroll(module, options)
        _add_simplification(last)
    last.add_simplify_cfg_pass()
    last.add_instruction_namer_pass()
    last.run(module, builder)


def _add_simplification(passes: Any) -> None:
    """What finds that indices of unrolled iterations are not negative."""
    passes.add_sccp_pass()
    passes.add_instruction_combine_pass()


def _unroll(module: Any, options: Any) -> None:
    """Fully unroll loops whose small trip count LLVM knows, and make values of private arrays that are only accessed at
    constant indices then. There is no target machine, as for some LLVM would partially unroll other loops, too."""
    passes = llvm.create_new_module_pass_manager()
    for _ in range(_MOST_NESTED):  # it does not look at inner loops again whose trip count the outer one decides
        passes.add_loop_unroll_pass()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
    passes.run(module, llvm.create_pass_builder(None, options))


_MOST_NESTED = 3
"""Loops in one another, each of which decides how often the next one runs: as many as factors of matrices have."""

_EVERYTHING = 10_000_000
"""An inlining threshold above the cost of any function, with room for LLVM to multiply it in 32 bits."""


def _find_left(module: Any, names: Collection[str]) -> list[str]:
    """Those of the functions *names* that *module* still has."""
    return sorted(function.name for function in module.functions if function.name in names)


def _check_inlined(kernel: str, left: Collection[str]) -> None:
    if left:
        raise UnsupportedError(
            f"kernel {kernel!r} reaches a barrier or a wave operation in {', '.join(map(repr, left))}, which the CPU "
            "device has to inline and LLVM did not; make that smaller, or synchronise in the kernel itself"
        )
