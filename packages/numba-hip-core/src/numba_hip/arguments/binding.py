"""Functions that recognise the arguments of a launch and pack them, in one go.

Most launches of a program are like the last one. What such a launch has to find out, that its arguments have the types
that code was loaded for, and their bytes, is a few comparisons and attributes for each argument. In a loop over the
arguments these take several times as long as written out, so they are written out: one function for kernels that take
a number and two arrays, one for those that take three arrays. Launches that it does not recognise go the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

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
    "tuple": "v{0}.__class__ is k{0} and (t{0} := p{0}(v{0})) is not None",
    "array": "v{0}.__class__ is DeviceArray and (u{0} := v{0}.upper) is not None and u{0}.code == k{0}",
}


def binder(codes: Sequence[Any], kinds: Sequence[types.Type], packing: Sequence[Packer]) -> Bind | None:
    """The function for arguments that stand for *codes* (`argument_codes`) and are packed as *kinds* by *packing*.
    ``None`` where an argument is neither number nor array nor a tuple of these."""
    parts: list[tuple[str, str]] = []
    known, packs = list(codes), list[Any](packing)
    for place, (code, kind, pack) in enumerate(zip(codes, kinds, packing, strict=True)):
        if isinstance(kind, types.BaseTuple):
            if not isinstance(code, tuple) or not isinstance(pack, TuplePacker):
                return None
            known[place], packs[place] = code[0], binder(code[1:], list(kind), pack.members)
            if packs[place] is None:
                return None
            parts.append(("tuple", "t{0}"))
        elif isinstance(kind, types.Array) and not isinstance(code, type):
            fields: dict[Packer, str] = {DENSE: "u{0}.dense", PACKED: "u{0}.packed"}
            parts.append(("array", fields.get(pack, "p{0}(v{0})")))
        elif isinstance(code, type):
            # Packers of signed integers raise an error for what is none of them.
            packs_any = code is int and not (isinstance(kind, types.Integer) and kind.signed)
            parts.append(("integer" if packs_any else "number", "p{0}(v{0})"))
        else:
            return None
    made: Bind = _maker(tuple(parts))(known, packs)
    return made


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


@cache
def _maker(parts: tuple[tuple[str, str], ...]) -> Callable[..., Any]:
    """What makes a `Bind` of codes and packers: *parts* are the kind of each argument and the expression of its
    bytes."""
    places = range(len(parts))
    values, known, packers = ("".join(f"{letter}{place}, " for place in places) for letter in "vkp")
    tests = " and ".join(_CONDITIONS[kind].format(place) for place, (kind, _) in enumerate(parts))
    found = "".join(expression.format(place) + ", " for place, (_, expression) in enumerate(parts))
    lines = (
        "def make(codes, packing):",
        f"    [{known}], [{packers}] = codes, packing",
        "    def bind(args):",
        f"        if len(args) == {len(parts)}:",
        f"            [{values}] = args",
        f"            if {tests or 'True'}:",
        "                try:",
        f"                    return join(({found}))",
        "                except NOT_PACKED:",
        "                    pass",
        "        return None",
        "    return bind",
    )
    names = {"DeviceArray": DeviceArray, "INT64": INT64, "NOT_PACKED": NOT_PACKED, "join": b"".join}
    exec(compile("\n".join(lines), "<binding of arguments>", "exec"), names)
    made: Any = names["make"]
    return made  # type: ignore[no-any-return]
