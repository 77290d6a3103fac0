"""Numba's compiler: its passes, flags and results, and the locks that it holds."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from numba.core import compiler
from numba.core.base import BaseContext
from numba.core.compiler import CompileResult, Flags, sanitize_compile_result_entries
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaExperimentalFeatureWarning
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.ir_utils import get_definition, guard
from numba.core.lowering import Lower
from numba.core.target_extension import target_override
from numba.core.targetconfig import Option
from numba.core.typed_passes import AnnotateTypes, BaseNativeLowering, IRLegalization
from numba.core.utils import pysignature

from hip_devicelib.forking import Rank, compiling, hold_in_forks

__all__ = ["AnnotateTypes", "BaseNativeLowering", "CompileResult", "Flags", "IRLegalization", "Option", "SourceLower",
           "compiling_for", "definitions_of", "lowered_symbol", "only_definition_of", "pysignature", "redefine",
           "run_pipeline", "sanitize_compile_result_entries"]  # fmt: skip


class SourceLower(Lower):
    """Numba's lowering, for functions whose file need not be valid Python."""

    def _compute_def_location(self) -> Any:
        """Numba looks for the first line in the file."""
        try:
            return super()._compute_def_location()
        except SyntaxError:
            return self.func_ir.loc.with_lineno(self.func_ir.loc.line + 1)


def only_definition_of(function: Any, variable: Any) -> Any:
    """What *variable* of *function*, Numba's intermediate representation, is assigned by way of other variables; None
    if that may be several things."""
    return guard(get_definition, function, variable)


def definitions_of(function: Any, name: str) -> Sequence[Any]:
    """The value assigned to variable *name* of *function*, Numba's intermediate representation."""
    return cast(Sequence[Any], function._definitions.get(name, ()))


def redefine(function: Any, name: str, value: Any) -> None:
    """Record *value* as the only assignment to variable *name* of *function*."""
    function._definitions[name] = [value]


hold_in_forks(Rank.NUMBA, global_compiler_lock._lock)


RECURSION_LIMIT = 10_000 if sys.version_info >= (3, 11) else 3_000
"""The least depth that Numba's passes get. Before Python 3.11 each level takes some of the thread's own stack, too."""


@contextmanager
def _room_for_recursion() -> Iterator[None]:
    """Let functions call each other `RECURSION_LIMIT` deep. The caller holds the compiler's locks.

    Numba looks for the definitions of a variable (`numba.core.ssa`) with two calls for each block that dominates the
    one with the use: some 450 branches one after the other are too many for Python's own limit.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@contextmanager
def compiling_for(numba_name: str) -> Iterator[None]:
    """Hold the compiler's locks, and make *numba_name* the current target."""
    with compiling, global_compiler_lock, _room_for_recursion(), target_override(numba_name):
        yield


def run_pipeline(
    contexts: tuple[Any, BaseContext],
    function: Any,
    args: tuple[Any, ...],
    return_type: Any,
    flags: compiler.Flags,
    pipeline: type[compiler.CompilerBase],
) -> Any:
    """Run Numba's passes over *function*; returns Numba's compile result. The caller holds the compiler's locks."""
    typing_context, target_context = contexts
    with warnings.catch_warnings():
        # Numba says so of each tuple of functions, also where none is called by its address.
        warnings.filterwarnings("ignore", ".*First-class function type", NumbaExperimentalFeatureWarning)
        return compiler.compile_extra(
            typing_context, target_context, function, args, return_type, flags, {}, pipeline_class=pipeline
        )


def lowered_symbol(descriptor: PythonFunctionDescriptor) -> str:
    """The LLVM name of a compiled function."""
    return str(descriptor.llvm_func_name)
