"""Byte permutations and funnel shifts of pairs of 32-bit words, under CUDA's and HIP's names without underscores."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError

from hip_runtime.said_names import our
from numba_hip.language.stub import Lower, Stub, device_function, number_type
from numba_hip.named_calls import call_named

I32, I64 = ir.IntType(32), ir.IntType(64)


def _check(function: str, *arguments: types.Type) -> None:
    for argument in arguments:
        if not isinstance(number_type(argument), types.Integer):
            raise TypingError(
                f"{our(function)} takes integers, of which it uses 32 bits, not a {number_type(argument)}"
            )


def _words(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> list[ir.Value]:
    return [context.cast(builder, value, kind, types.uint32) for value, kind in zip(args, sig.args, strict=True)]


@device_function("byte_perm")
def byte_perm(x: types.Type, y: types.Type, s: types.Type) -> tuple[types.Type, Lower]:
    """``byte_perm(x, y, s)``: four of the eight bytes of *x* (bytes 0 to 3) and *y* (bytes 4 to 7), a uint32.

    Byte i of the result is the one whose number is in the lowest three bits of the hexadecimal digit i of *s*."""
    _check("byte_perm", x, y, s)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        low, high, selector = (builder.zext(word, I64) for word in _words(context, builder, sig, args))
        both = builder.or_(low, builder.shl(high, I64(32)))
        result: ir.Value = I64(0)
        for number in range(4):
            digit = builder.and_(builder.lshr(selector, I64(4 * number)), I64(7))
            byte = builder.and_(builder.lshr(both, builder.shl(digit, I64(3))), I64(0xFF))
            result = builder.or_(result, builder.shl(byte, I64(8 * number)))
        return builder.trunc(result, I32)

    return types.uint32, lower


def _shift(name: str, meaning: str, intrinsic: str, clamped: bool) -> Stub:
    def define(lo: types.Type, hi: types.Type, shift: types.Type) -> tuple[types.Type, Lower]:
        _check(name, lo, hi, shift)

        def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            low, high, count = _words(context, builder, sig, args)
            shifted = call_named(builder, f"llvm.{intrinsic}.i32", I32, high, low, count)
            if not clamped:
                return shifted
            whole = low if intrinsic == "fshl" else high
            return builder.select(builder.icmp_unsigned(">=", count, I32(32)), whole, shifted)

        return types.uint32, lower

    rule = "at most 32" if clamped else "modulo 32"
    define.__doc__ = f"``{name}(lo, hi, shift)``: {meaning} of the 64 bits hi:lo, shifted by *shift*, {rule}; a uint32."
    define.__module__ = __name__
    return device_function(name)(define)


funnelshift_l = _shift("funnelshift_l", "the high word", "fshl", clamped=False)
funnelshift_lc = _shift("funnelshift_lc", "the high word", "fshl", clamped=True)
funnelshift_r = _shift("funnelshift_r", "the low word", "fshr", clamped=False)
funnelshift_rc = _shift("funnelshift_rc", "the low word", "fshr", clamped=True)
