"""``max`` and ``min`` of two or more numbers, with what ``fastmath`` allows.

Numba compiles them as functions of their own, which all callers share, whatever their options. Here they are part of
the caller, so that in ``fastmath`` functions each is one instruction, and a maximum over a loop is computed in vectors.
Other forms, such as those of a tuple or of booleans alone, are Numba's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, Signature, signature

from numba_hip.bfloat import Bfloat16
from numba_hip.language.registry import lowering, typing

REAL = (types.Integer, types.Float, types.Boolean, Bfloat16)
FLOATS = (ir.HalfType, ir.FloatType, ir.DoubleType)

NEEDED = ("nnan", "nsz")
"""Flags without which LLVM sees a choice between two floats, and no maximum. The comparison and the choice have no
others: LLVM gives the maximum the flags of both, and with ``ninf`` that of infinity and a number may be the number."""


def _declare(function: Callable[..., Any], is_better: Callable[[Any, Any], Any]) -> None:
    """Declare *function* of numbers: a later one replaces the one found so far where it *is_better*."""

    @typing.register_global(function)
    class Template(AbstractTemplate):
        key = function
        metadata = {"target": "hip"}  # Numba asks what is for a target before what is for all

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Signature | None:
            if kws or len(args) < 2 or not all(map(_is_real, args)) or all(map(_is_boolean, args)):
                return None
            result = self.context.unify_types(*args)
            return None if result is None else signature(result, *args)

    @lowering.lower(function, types.VarArg(types.Any))
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        kind, flags = sig.return_type, _flags(context)
        compare = context.get_function(is_better, signature(types.boolean, kind, kind))
        best, *others = (context.cast(builder, value, given, kind) for value, given in zip(args, sig.args, strict=True))
        for value in others:
            better = compare(builder, (value, best))
            if isinstance(better, ir.FCMPInstr):
                better.flags.extend(flags)
            best = builder.select(better, value, best, flags=flags if isinstance(value.type, FLOATS) else ())
        return best


def _is_real(kind: types.Type) -> bool:
    """Whether *kind* is that of numbers that have an order: complex ones have none, nor do floats of 8 bits here."""
    return isinstance(kind, REAL)


def _is_boolean(kind: types.Type) -> bool:
    return isinstance(kind, types.Boolean)


def _flags(context: Any) -> tuple[str, ...]:
    """Those of the flags `NEEDED` that ``fastmath`` of the function that is being compiled contains."""
    allowed = getattr(context.fastmath, "flags", ())
    return tuple(flag for flag in NEEDED if flag in allowed or "fast" in allowed)


_declare(max, operator.gt)
_declare(min, operator.lt)
