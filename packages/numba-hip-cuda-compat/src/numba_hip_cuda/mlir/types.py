"""What ``numba_cuda_mlir.types`` has beside Numba's types."""

from __future__ import annotations

from typing import TypeVar

from numba.core import types

Kind = TypeVar("Kind", bound=types.Type)

ptr = types.CPointer(types.void)
"""A pointer to anything."""


def grid_constant(kind: Kind) -> Kind:
    """*kind* as a parameter that no thread changes, which says nothing new to a compiler for AMD GPUs."""
    return kind


def alignas(kind: Kind, align: int) -> Kind:
    """*kind* as a parameter at a multiple of *align* bytes: parameters have the places that HIP's rules give them."""
    del align
    return kind
