"""Reads and writes bytes at an address, in functions that Numba compiles."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

_BYTE = ir.IntType(8)


@intrinsic
def peek_byte(typingctx: Any, address: Any) -> Any:
    """The byte at *address*."""

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        place = builder.inttoptr(args[0], _BYTE.as_pointer())
        return builder.zext(builder.load(place), ir.IntType(64))

    return types.int64(types.int64), lower


@intrinsic
def poke_byte(typingctx: Any, address: Any, value: Any) -> Any:
    """Set the byte at *address* to *value*."""

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        place = builder.inttoptr(args[0], _BYTE.as_pointer())
        builder.store(builder.trunc(args[1], _BYTE), place)
        return context.get_dummy_value()

    return types.none(types.int64, types.int64), lower
