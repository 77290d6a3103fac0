"""Large constants: a module refers to their bytes by a symbol, which is defined when machine code is generated.

A module is read, printed and linked many times on its way to machine code, which takes long if it has large constants.
So these are left out (see `CodeObject.data`). A large constant's symbol contains the digest of its contents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from llvmlite import ir

PREFIX = "hip.data."
"""The prefix of the symbols of large constants, which the SHA-256 of the bytes follows."""

ALIGNMENT = 64
"""Alignment of each large constant."""

LARGE = 64 << 10
"""The size in bytes from which a constant counts as large. LLVM's optimiser sees the contents of smaller ones."""


def symbol_of_data(data: bytes) -> str:
    """The symbol of the large constant *data*."""
    return PREFIX + hashlib.sha256(data).hexdigest()


def spell_bytes(data: bytes) -> ir.FormattedConstant:
    """The bytes *data* as a constant of llvmlite. llvmlite's own class formats bytes one by one, which takes seconds
    for some megabytes."""
    escaped = "\\" + data.hex("\\") if data else ""
    return ir.FormattedConstant(ir.ArrayType(ir.IntType(8), len(data)), f'c"{escaped}"')


def define_data(data: Mapping[str, bytes]) -> ir.Module:
    """A module that defines large constants, by their symbols."""
    module = ir.Module("hip.data", context=ir.Context())
    for symbol, contents in data.items():
        value = spell_bytes(contents)
        variable = ir.GlobalVariable(module, value.type, symbol)
        variable.global_constant, variable.initializer, variable.align = True, value, ALIGNMENT
    return module
