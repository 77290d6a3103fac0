"""Sizes of types in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

SizeOf = Callable[[ir.Type], int]
"""The allocation size of a type: bytes from one array element to the next."""


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
