"""Sizes of types in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

SizeOf = Callable[[ir.Type], int]
"""Bytes from one value of a type to the next in memory."""


def measure_types(layout: Any, context: ir.Context) -> SizeOf:
    """Sizes by the target data *layout* of types whose structs belong to *context*. llvmlite parses a module for each
    that it is asked for."""
    known: dict[str, int] = {}

    def size_of(stored: ir.Type) -> int:
        name = str(stored)
        if name not in known:
            known[name] = int(stored.get_abi_size(layout, context))
        return known[name]

    return size_of
