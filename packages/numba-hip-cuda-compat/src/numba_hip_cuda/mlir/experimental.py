"""``cuda.experimental`` of `numba_cuda_mlir`: expressions and statements that are evaluated at compile time.

`numba_hip_cuda.mlir.rewriting` gives them their meaning in kernels. Outside of kernels they raise errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, NoReturn

from numba_hip.language.stub import interpreter
from numba_hip_cuda.mlir.unsupported_functions import inline_ptx

_ABSENT = object()


class ConstevalError(Exception):
    """The argument of ``consteval`` cannot be evaluated at compile time."""


class _Block:
    """``with consteval():`` outside of a compiled kernel."""

    def __enter__(self) -> None:
        if interpreter() is None:
            _refuse("a consteval() block")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Does nothing."""


def consteval(value: Any = _ABSENT) -> Any:
    """The value of an expression at compile time, as a constant. Names of parameters stand for their Numba types.

    ``for i in consteval(items)`` unrolls the loop, ``if consteval(condition)`` keeps one branch, and
    ``with consteval():`` runs a block whose variables later ``consteval`` expressions can use.
    """
    if value is _ABSENT:
        return _Block()
    if interpreter() is None:
        _refuse("consteval()")
    return value  # the simulator runs the original source


def local_array_from(iterable: Iterable[Any], dtype: Any) -> Any:
    """A local array with the values of a generator expression over a tuple or an array of constant length."""
    if interpreter() is None:
        _refuse("local_array_from()")
    import numpy as np

    return np.array(list(iterable), dtype)


def current_target_options() -> Any:
    """The options that the kernel was decorated with, for use in ``consteval``."""
    _refuse("current_target_options()")


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(
        f"{what} is evaluated when a kernel is compiled, but this code was not compiled: it is outside of a kernel, in "
        "a function that is not decorated, or in one decorated with cuda.jit(experimental_ast_transforms=False)"
    )


MARKERS = (consteval, local_array_from, current_target_options)
"""A name whose use makes the kernel's source be rewritten."""

__all__ = ["ConstevalError", "consteval", "current_target_options", "inline_ptx", "local_array_from"]
