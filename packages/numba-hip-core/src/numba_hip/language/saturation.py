"""Floats to integers: without their fraction, saturated, and 0 for NaN.

AMD's and NVIDIA's GPUs do this where they have an instruction, and HIP and CUDA specify it for their functions; LLVM's
plain conversion, like C's, is undefined for a number that does not fit.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, Signature, signature

from numba_hip.language.registry import lowering, typing

REALS = (types.float32, types.float64)


def to_integer(context: Any, builder: ir.IRBuilder, value: ir.Value, kind: types.Integer) -> ir.Value:
    """*value*, a half, float or double, as an integer of type *kind*."""
    return context.saturate(builder, value, context.get_value_type(kind), bool(kind.signed))


@lowering.lower_cast(types.Float, types.Integer)
def _cast(context: Any, builder: ir.IRBuilder, source: types.Float, target: types.Integer, value: ir.Value) -> ir.Value:
    return to_integer(context, builder, value, target)


def _lower_round(kind: types.Float) -> None:
    @lowering.lower(round, kind)
    def _round(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return to_integer(context, builder, context.call_math(builder, "rint", args), sig.return_type)


for _kind in REALS:
    _lower_round(_kind)


@typing.register_global(round)
class _RoundOfInteger(AbstractTemplate):
    """``round`` of an integer is that integer: Numba rounds a double, which has 53 bits."""

    key = round
    metadata = {"target": "hip"}  # Numba asks what is for a target before what is for all

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Signature | None:
        if kws or len(args) != 1 or not isinstance(args[0], types.Integer | types.Boolean):
            return None
        return signature(types.uint64 if args[0] == types.uint64 else types.int64, *args)


@lowering.lower(round, types.Integer)
@lowering.lower(round, types.Boolean)
def _round_integer(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return context.cast(builder, args[0], sig.args[0], sig.return_type)
