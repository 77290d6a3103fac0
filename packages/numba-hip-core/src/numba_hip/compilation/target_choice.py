"""Which compile target the options of a kernel ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.errors import TypingError
from numba.core.ir import Loc

from hip_devicelib.codeobject import CPU_TARGET
from numba_hip.compilation.options import CompileOptions
from numba_hip.compilation.target_registry import compile_target
from numba_hip.targets.compile_target import CompileTarget


def find_target(py_func: Callable[..., Any], options: CompileOptions, target: str) -> CompileTarget:
    """The compile target that *options* ask for. Raises `TypingError`, at the line of the kernel, for options that the
    target does not support."""
    if target != CPU_TARGET:
        from numba_hip.targets.amd.option_checks import find_problem

        problem = find_problem(options, target)
        if problem is not None:
            code = py_func.__code__
            raise TypingError(f"{problem} (kernel {py_func.__name__})", loc=Loc(code.co_filename, code.co_firstlineno))
    return compile_target(target, options.variant)
