"""The bytes of a kernel's arguments in the buffer that a launch passes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numba.core import types

from hip_devicelib.codeobject import Parameter
from numba_hip.abi.array_parameters import count_parameters
from numba_hip.arguments.argument_types import describe
from numba_hip.arguments.scalars import bfloat, float8, real, whole, wrap
from numba_hip.bfloat import Bfloat16
from numba_hip.errors import KernelArgumentError

FORMATS = {
    "i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "half": "e", "float": "f", "double": "d", "ptr": "Q",
}  # fmt: skip
"""Format characters of `struct` for the LLVM types of kernel parameters."""

Packer = Callable[[Any], bytes]

NOT_PACKED = (struct.error, OverflowError)
"""What packers raise that are not exact."""

DENSE, PACKED = attrgetter("upper.dense"), attrgetter("upper.packed")
"""Packers of arrays that nothing stands before: contiguous ones, and those of any strides."""


class TuplePacker:
    """Packs tuples, whose *members* have packers of their own."""

    __slots__ = ("members",)

    def __init__(self, members: Sequence[Packer]) -> None:
        self.members = members

    def __call__(self, value: Any) -> bytes:
        return b"".join([pack(member) for pack, member in zip(self.members, value, strict=True)])


def leaf_values(value: Any, kind: types.Type, name: str) -> list[Any]:
    """The scalars that argument *name* of Numba type *kind* is passed as, in the order of the kernel's parameters.

    Raises `KernelArgumentError` for a number that does not fit *kind*.
    """
    if isinstance(kind, types.BaseTuple):  # the value of an enumeration
        return [leaf for member, of in zip(value, kind, strict=True) for leaf in leaf_values(member, of, name)]
    if isinstance(kind, types.Array):
        known = describe(value)
        return list(struct.unpack(f"<{count_parameters(kind)}q", known.packed if kind.layout == "A" else known.dense))
    if isinstance(kind, types.Record):
        return list(struct.unpack("<q", describe(value).packed))
    if isinstance(kind, types.Complex):
        number = complex(value)
        return [real(part, kind.underlying_float, name) for part in (number.real, number.imag)]
    if isinstance(kind, (types.NPDatetime, types.NPTimedelta)):
        return [int(np.asarray(value).view(np.int64))]
    if isinstance(kind, types.EnumMember):
        return leaf_values(value.value, kind.dtype, name)
    if isinstance(kind, types.Integer):
        return [whole(value, kind, name)]
    if isinstance(kind, types.CPointer):
        return [wrap(_address(value, name), types.uint64)]
    if isinstance(kind, Bfloat16):
        return [bfloat(value, name)]
    if isinstance(kind, types.Boolean):
        return [bool(value)]
    if isinstance(kind, types.NoneType):  # for which Numba has a parameter, that nothing reads
        return [0]
    return [real(value, kind, name) if isinstance(kind, types.Float) else float8(value, kind, name)]


def _address(value: Any, name: str) -> int:
    """The address that is passed as a number. Raises `KernelArgumentError` for an impossible address."""
    if not 0 <= int(value) < 2**64:
        raise KernelArgumentError(
            f"argument {name!r}: {value} is not an address: a pointer is passed as an integer from 0 to 2**64 - 1"
        )
    return int(value)


def packers(
    kinds: Sequence[types.Type], parameters: Sequence[Parameter], names: Sequence[str], *, exact: bool = False
) -> list[Packer]:
    """One function for each argument that turns its value into the bytes of its part of the buffer, padding included.

    The joined bytes are the packed argument buffer of the layout *parameters*. Packers of plain numbers are fast; if
    one raises one of the errors in `NOT_PACKED`, the *exact* packers pack the value or raise an error with its name.
    """
    return _packers_behind(0, kinds, parameters, names, exact)


def _packers_behind(
    start: int, kinds: Sequence[types.Type], parameters: Sequence[Parameter], names: Sequence[str], exact: bool
) -> list[Packer]:
    """The same for arguments behind the first *start* bytes of the buffer."""
    functions: list[Packer] = []
    position = 0
    for kind, name in zip(kinds, names, strict=True):
        count = leaf_count(kind)
        leaves = parameters[position : position + count]
        functions.append(_packer(kind, leaves, start, name, exact))
        position += count
        start = leaves[-1].offset + leaves[-1].size if leaves else start
    return functions


def leaf_count(kind: types.Type) -> int:
    """How many parameters of a kernel an argument of Numba type *kind* becomes."""
    if isinstance(kind, types.BaseTuple):
        return sum(leaf_count(member) for member in kind)
    if isinstance(kind, types.EnumMember):
        return leaf_count(kind.dtype)
    if isinstance(kind, types.Array):
        return count_parameters(kind)
    return 2 if isinstance(kind, types.Complex) else 1


def _packer(kind: types.Type, leaves: Sequence[Parameter], start: int, name: str, exact: bool) -> Packer:
    if isinstance(kind, types.BaseTuple):
        members = list(kind)
        return TuplePacker(_packers_behind(start, members, leaves, [name] * len(members), exact))
    text = "<"
    for leaf in leaves:
        text += "x" * (leaf.offset - start) + FORMATS[leaf.type]
        start = leaf.offset + leaf.size
    pack = struct.Struct(text.replace("Q", "q")).pack
    padding = text.count("x")
    if isinstance(kind, (types.Array, types.Record)):
        before = b"\0" * padding
        take: Packer = PACKED if isinstance(kind, types.Array) and kind.layout == "A" else DENSE
        return (lambda array: before + take(array)) if padding else take
    if not exact and isinstance(kind, types.Float):
        return pack
    if not exact and isinstance(kind, types.Boolean):
        return struct.Struct(text.replace("b", "?")).pack
    if not exact and isinstance(kind, types.Integer):
        return pack if kind.signed else struct.Struct(text.upper().replace("X", "x")).pack
    return lambda value: pack(*leaf_values(value, kind, name))
