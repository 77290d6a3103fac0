"""Functions that recognise the arguments of a launch and pack them, in one go.

Most launches of a program are like the last one. What such a launch has to find out, that its arguments have the types
that code was loaded for, and their bytes, is a few comparisons and attributes for each argument. In a loop over the
arguments these take several times as long as written out, so they are written out: one function for kernels that take
a number and two arrays, one for those that take three arrays. Members of tuples are tested as arguments are, and
numbers that follow one another are packed together. Launches that it does not recognise go the long way.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count, groupby, islice
from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from hip_runtime import DeviceArray
from numba_hip.arguments.argument_types import describe
from numba_hip.arguments.packing import DENSE, NOT_PACKED, PACKED, Packer, TuplePacker

Bind = Callable[[Sequence[Any]], "bytes | None"]
"""The packed arguments, or ``None`` where their types are others, or one of them does not fit its type."""

CLASS_TYPED = frozenset(
    {float, bool, complex, np.bool_, np.float16, np.float32, np.float64, np.complex64, np.complex128, np.int8,
     np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, type(None)}
)  # fmt: skip
"""Classes of scalars, and of None, whose Numba type does not depend on the value."""

_MOST_NESTED = 8
"""Tuples in one another that are recognised; what is deeper goes the long way, which has an error for the deepest."""

INT64 = range(-(2**63), 2**63)
"""Python's integers of which the class alone tells the type."""

_CONDITIONS = {
    "number": "v{0}.__class__ is k{0}",
    "integer": "v{0}.__class__ is k{0} and v{0} in INT64",
    "array": "v{0}.__class__ is DeviceArray and (u{0} := v{0}.upper) is not None and u{0}.code == k{0}",
}


class _Leaf(NamedTuple):
    """What stands for one scalar or array."""

    kind: str
    """What it has to be: a key of `_CONDITIONS`."""
    place: int
    """Its number among all values, those of the tuples included."""
    code: Any
    pack: Packer


class _Tuple(NamedTuple):
    """What stands for a tuple: its place, its class, and the places of its members."""

    place: int
    kind: type
    members: Sequence[int]


def binder(codes: Sequence[Any], kinds: Sequence[types.Type], packing: Sequence[Packer]) -> Bind | None:
    """The function for arguments that stand for *codes* (`argument_codes`) and are packed as *kinds* by *packing*.
    ``None`` where an argument is neither number nor array nor a tuple of these."""
    tuples: list[_Tuple] = []
    leaves = _leaves(range(len(codes)), codes, kinds, packing, count(len(codes)), tuples)
    if leaves is None:
        return None
    known = [(f"k{leaf.place}", leaf.code) for leaf in leaves] + [(f"k{each.place}", each.kind) for each in tuples]
    found, packers = _pieces(leaves)
    tests = " and ".join(_CONDITIONS[leaf.kind].format(leaf.place) for leaf in leaves)
    text = _text(len(codes), tuples, [name for name, _ in known], tests, found, len(packers))
    made: Bind = _maker(text)([code for _, code in known], packers)
    return made


def _leaves(
    places: Sequence[int],
    codes: Sequence[Any],
    kinds: Sequence[types.Type],
    packing: Sequence[Packer],
    unused: Iterator[int],
    tuples: list[_Tuple],
) -> list[_Leaf] | None:
    """What stands for the values at *places* and for the members of those that are tuples, in the order of the buffer.
    The latter are added to *tuples*, each before what is in it, with *unused* places for their members."""
    leaves: list[_Leaf] = []
    for place, code, kind, pack in zip(places, codes, kinds, packing, strict=True):
        if isinstance(kind, types.BaseTuple):
            if not isinstance(code, tuple) or not isinstance(pack, TuplePacker):
                return None
            members = list(islice(unused, len(code) - 1))
            tuples.append(_Tuple(place, code[0], members))
            within = _leaves(members, code[1:], list(kind), pack.members, unused, tuples)
            if within is None:
                return None
            leaves += within
        elif isinstance(kind, types.Array) and not isinstance(code, type):
            leaves.append(_Leaf("array", place, code, pack))
        elif isinstance(code, type):
            # Packers of signed integers raise an error for what is none of them.
            packs_any = code is int and not (isinstance(kind, types.Integer) and kind.signed)
            leaves.append(_Leaf("integer" if packs_any else "number", place, code, pack))
        else:
            return None
    return leaves


def argument_codes(values: Sequence[Any], depth: int = _MOST_NESTED) -> list[Any] | None:
    """What tells the type of each of *values*: the class of a number, the ``code`` of a device array, and for a tuple
    its class and what stands for each member, up to so many in one another (*depth*). ``None`` where a type depends on
    more, or a value is not on the device."""
    codes: list[Any] = []
    for value in values:
        kind = value.__class__
        if kind is DeviceArray:
            codes.append((value.upper or describe(value)).code)
        elif kind in CLASS_TYPED or (kind is int and value in INT64):
            codes.append(kind)
        elif depth and isinstance(value, tuple) and (members := argument_codes(value, depth - 1)) is not None:
            codes.append((kind, *members))
        else:
            return None
    return codes


def _pieces(leaves: Sequence[_Leaf]) -> tuple[list[str], list[Packer]]:
    """Expressions of the bytes of *leaves*, and the functions that they call ``p0``, ``p1`` and so on: one for all
    numbers that follow one another."""
    found: list[str] = []
    packers: list[Any] = []
    for formatted, run in groupby(leaves, lambda leaf: _format(leaf.pack) is not None):
        if formatted:
            numbers = list(run)
            found.append(f"p{len(packers)}({', '.join(f'v{leaf.place}' for leaf in numbers)})")
            packers.append(struct.Struct("<" + "".join(_format(leaf.pack) or "" for leaf in numbers)).pack)
            continue
        for leaf in run:
            fields: dict[Packer, str] = {DENSE: "dense", PACKED: "packed"}
            if leaf.kind == "array" and leaf.pack in fields:
                found.append(f"u{leaf.place}.{fields[leaf.pack]}")
            else:
                found.append(f"p{len(packers)}(v{leaf.place})")
                packers.append(leaf.pack)
    return found, packers


def _format(pack: Packer) -> str | None:
    """The format that *pack* packs one number with, without the byte order, if it does no more than that."""
    packed = getattr(pack, "__self__", None)
    return packed.format.removeprefix("<") if isinstance(packed, struct.Struct) else None


def _text(
    size: int, tuples: Sequence[_Tuple], known: Sequence[str], tests: str, found: Sequence[str], packers: int
) -> str:
    """The text of what makes a `Bind` for *size* arguments, of the codes *known* and so many *packers*: it unpacks the
    *tuples*, makes the *tests*, and joins what was *found*."""
    unpacked: list[str] = []
    for each in tuples:
        unpacked += (
            f"if v{each.place}.__class__ is not k{each.place} or len(v{each.place}) != {len(each.members)}:",
            "    return None",
            f"[{', '.join(f'v{member}' for member in each.members)}] = v{each.place}",
        )
    packed = found[0] if len(found) == 1 else f"join(({', '.join(found)}))"
    lines = (
        f"if len(args) != {size}:",
        "    return None",
        f"[{', '.join(f'v{place}' for place in range(size))}] = args",
        *unpacked,
        f"if {tests or 'True'}:",
        "    try:",
        f"        return {packed}",
        "    except NOT_PACKED:",
        "        pass",
        "return None",
    )
    functions = ", ".join(f"p{number}" for number in range(packers))
    head = f"def make(codes, packing):\n    [{', '.join(known)}], [{functions}] = codes, packing\n    def bind(args):\n"
    return head + "".join(f"        {line}\n" for line in lines) + "    return bind\n"


@cache
def _maker(text: str) -> Callable[..., Any]:
    """What makes a `Bind` of codes and packers, as `_text` has written it."""
    names = {"DeviceArray": DeviceArray, "INT64": INT64, "NOT_PACKED": NOT_PACKED, "join": b"".join}
    exec(compile(text, "<binding of arguments>", "exec"), names)
    made: Any = names["make"]
    return made  # type: ignore[no-any-return]
