"""``cuda.experimental`` of `numba_cuda_mlir`: expressions and statements that are evaluated when a kernel is compiled.

What these names do in kernels is in `numba_hip_cuda.mlir.rewriting`; elsewhere they are refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, NoReturn

from numba_hip.language.stub import interpreter
from numba_hip_cuda.mlir.unsupported_functions import inline_ptx

_ABSENT = object()


class ConstevalError(Exception):
    """What ``consteval`` is given cannot be evaluated when the kernel is compiled."""


class _Block:
    """``with consteval():`` outside of a kernel that is compiled."""

    def __enter__(self) -> None:
        if interpreter() is None:
            _refuse("a consteval() block")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is to be ended."""


def consteval(value: Any = _ABSENT) -> Any:
    """The value of an expression when the kernel is compiled: a constant of it. The names of parameters stand for their
    Numba types.

    ``for i in consteval(items)`` repeats its body for each of them, ``if consteval(condition)`` leaves one branch, and
    ``with consteval():`` runs a block, of whose variables later expressions in ``consteval`` know.
    """
    if value is _ABSENT:
        return _Block()
    if interpreter() is None:
        _refuse("consteval()")
    return value  # the simulator runs the source as it is


def local_array_from(iterable: Iterable[Any], dtype: Any) -> Any:
    """A local array of what a generator expression over a tuple or an array of constant length gives."""
    if interpreter() is None:
        _refuse("local_array_from()")
    import numpy as np

    return np.array(list(iterable), dtype)


def current_target_options() -> Any:
    """The options that the kernel was decorated with; for expressions in ``consteval`` alone."""
    _refuse("current_target_options()")


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(
        f"{what} is evaluated when a kernel is compiled, and this was not: it stands outside of a kernel, in a "
        "function that is not decorated, or in one decorated with cuda.jit(experimental_ast_transforms=False)"
    )


MARKERS = (consteval, local_array_from, current_target_options)
"""What makes the source of a kernel that uses it be rewritten."""

__all__ = ["ConstevalError", "consteval", "current_target_options", "inline_ptx", "local_array_from"]
