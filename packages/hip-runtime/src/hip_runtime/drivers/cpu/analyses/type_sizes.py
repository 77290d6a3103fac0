"""Sizes of types in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

SizeOf = Callable[[ir.Type], int]
"""The allocation size of a type: bytes from one array element to the next."""


_NUMBERS = ((ir.HalfType, 2), (ir.FloatType, 4), (ir.DoubleType, 8))


def number_bytes(kind: ir.Type) -> int:
    """Bytes of a number of *kind*, of which vectors hold whole ones; 0 of what is none."""
    if isinstance(kind, ir.IntType):
        return kind.width // 8 if kind.width in (8, 16, 32, 64) else 0
    return next((size for known, size in _NUMBERS if isinstance(kind, known)), 0)


def measure_types(layout: Any, context: ir.Context) -> SizeOf:
    """A function that gives the size of types by the data *layout*, with structs of *context*. Sizes are cached, as
    llvmlite parses a module for each query."""
    known: dict[str, int] = {}

    def size_of(stored: ir.Type) -> int:
        name = str(stored)
        if name not in known:
            known[name] = int(stored.get_abi_size(layout, context))
        return known[name]

    return size_of
