"""Names of ``numba_cuda_mlir.types`` beyond Numba's types."""

from __future__ import annotations

from typing import TypeVar

from numba.core import types

Kind = TypeVar("Kind", bound=types.Type)

ptr = types.CPointer(types.void)
"""A pointer to any type."""


def grid_constant(kind: Kind) -> Kind:
    """*kind* as a read-only parameter, which makes no difference to a compiler for AMD GPUs."""
    return kind


def alignas(kind: Kind, align: int) -> Kind:
    """*kind* as a parameter aligned to *align* bytes, which has no effect: HIP's rules place parameters."""
    del align
    return kind
