"""``hip.fp8``: numbers of 8 bits in kernels, and their conversions by name.

``hip.float8_e4m3fn(x)`` and its like make one: rounded to the nearest, and to the largest number where *x* is larger or
infinite, as HIP's and CUDA's types do. A number of 8 bits is a float32 wherever something is computed with it.
``float32_to_<type>_nosat`` gives what NumPy's conversion gives, an infinity or NaN; ``<type>_as_uint8`` and
``uint8_as_<type>`` are the bits.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, signature

from numba_hip.float8 import FLOAT8, Float8, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz
from numba_hip.language.bf16.bits import DOUBLE, magnitude, to_odd
from numba_hip.language.registry import lowering, typing
from numba_hip.language.stub import Operation, Stub, numeric_function

I8, I32 = ir.IntType(8), ir.IntType(32)
FLOAT = ir.FloatType()

SIGN, INFINITY, BIAS, FRACTION = 0x80000000, 0x7F800000, 127, 23
"""Of a float32."""


def widen(builder: ir.IRBuilder, bits: ir.Value, kind: Float8) -> ir.Value:
    """The float32 that a number of 8 bits is."""
    size = builder.zext(builder.and_(bits, I8(0x7F)), I32)
    sign = builder.shl(builder.zext(builder.and_(bits, I8(0x80)), I32), I32(24))
    normal = builder.add(builder.shl(size, I32(FRACTION - kind.fraction)), I32(BIAS - kind.bias << FRACTION))
    step = ir.Constant(FLOAT, 2.0 ** (1 - kind.bias - kind.fraction))
    denormal = builder.bitcast(builder.fmul(builder.uitofp(size, FLOAT), step), I32)
    small = builder.icmp_unsigned("<", size, I32(1 << kind.fraction))
    found = builder.select(small, denormal, normal)
    if kind.unsigned_zero:
        special, instead = builder.icmp_unsigned("==", bits, I8(kind.nan)), I32(INFINITY | 1 << 22)
    else:
        special = builder.icmp_unsigned(">", size, I32(kind.largest))
        fraction = builder.and_(builder.shl(size, I32(FRACTION - kind.fraction)), I32((1 << FRACTION) - 1))
        instead = builder.or_(fraction, I32(INFINITY))
    return builder.bitcast(builder.or_(builder.select(special, instead, found), sign), FLOAT)


def narrow(builder: ir.IRBuilder, value: ir.Value, kind: Float8, *, saturate: bool = True) -> ir.Value:
    """A float32 as a number of 8 bits, rounded to the nearest, ties to even; a NaN stays one."""
    bits = builder.bitcast(value, I32)
    size = builder.and_(bits, I32(~SIGN & 0xFFFFFFFF))
    dropped = FRACTION - kind.fraction
    even = builder.and_(builder.lshr(size, I32(dropped)), I32(1))
    rounded = builder.add(size, builder.add(even, I32((1 << dropped - 1) - 1)))
    normal = builder.sub(builder.lshr(rounded, I32(dropped)), I32(BIAS - kind.bias << kind.fraction))
    # next to this number a float32 has the steps of the small ones
    large = ir.Constant(FLOAT, 2.0 ** (1 - kind.bias - kind.fraction + FRACTION))
    shifted = builder.bitcast(builder.fadd(magnitude(builder, value), large), I32)
    denormal = builder.sub(shifted, builder.bitcast(large, I32))
    small = builder.icmp_unsigned("<", size, I32(BIAS + 1 - kind.bias << FRACTION))
    found = builder.select(small, denormal, normal)
    end = I32(kind.largest if saturate else kind.overflow)
    found = builder.select(builder.icmp_unsigned(">", found, I32(kind.largest)), end, found)
    found = builder.select(builder.icmp_unsigned(">", size, I32(INFINITY)), I32(kind.nan), found)
    sign = builder.and_(builder.lshr(bits, I32(24)), I32(0x80))
    if kind.unsigned_zero:
        sign = builder.select(builder.icmp_unsigned("==", found, I32(0)), I32(0), sign)
    return builder.trunc(builder.or_(found, sign), I8)


@lowering.lower_cast(Float8, types.Float)
@lowering.lower_cast(Float8, types.Complex)
@lowering.lower_cast(Float8, types.Integer)
@lowering.lower_cast(Float8, Float8)
def _to_number(context: Any, builder: ir.IRBuilder, source: Float8, target: types.Type, value: ir.Value) -> ir.Value:
    wide = context.widen_float8(builder, value, source)
    if wide is None:
        wide = widen(builder, value, source)
    return context.cast(builder, wide, types.float32, target)


@lowering.lower_cast(Float8, types.Boolean)
def _to_boolean(context: Any, builder: ir.IRBuilder, source: Float8, target: types.Type, value: ir.Value) -> ir.Value:
    nonzero = builder.and_(value, I8(0xFF if source.unsigned_zero else 0x7F))
    return builder.icmp_unsigned("!=", nonzero, I8(0))


@lowering.lower_cast(types.Float, Float8)
def _from_float(context: Any, builder: ir.IRBuilder, source: types.Float, target: Float8, value: ir.Value) -> ir.Value:
    single = to_odd(builder, value) if value.type == DOUBLE else context.cast(builder, value, source, types.float32)
    bits = context.narrow_float8(builder, single, target)
    return narrow(builder, single, target) if bits is None else bits


@lowering.lower_cast(types.Integer, Float8)
@lowering.lower_cast(types.IntegerLiteral, Float8)
@lowering.lower_cast(types.Boolean, Float8)
def _from_whole(context: Any, builder: ir.IRBuilder, source: types.Type, target: Float8, value: ir.Value) -> ir.Value:
    # The largest number of any format is below 2**53, up to which a float64 has all integers.
    return context.cast(builder, context.cast(builder, value, source, types.float64), types.float64, target)


def _register_conversion(function: Any, result: types.Type) -> None:
    class Template(AbstractTemplate):
        def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
            return signature(result, *args) if not kws and len(args) == 1 and isinstance(args[0], Float8) else None

    typing.register_global(function)(Template)

    @lowering.lower(function, Float8)
    def _lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return context.cast(builder, args[0], sig.args[0], sig.return_type)


for _function, _result in ((int, types.int64), (float, types.float64), (bool, types.boolean)):
    _register_conversion(_function, _result)


def _stub(name: str, source: types.Type, result: types.Type, meaning: str, operation: Operation) -> Stub:
    return numeric_function(
        f"fp8.{name}", "a", meaning, operation, operand=source, result=result,
        accepted=(Float8, types.Float, types.Integer, types.Boolean), refusal=f"takes a {source}",
        module=__name__,
    )  # fmt: skip


def _functions_of(kind: Float8) -> list[Stub]:
    return [
        _stub(f"float32_to_{kind}_nosat", types.float32, kind,
              f"the float32 as a {kind}; what is larger than its largest number is an infinity, or NaN.",
              lambda context, builder, value: narrow(builder, value, kind, saturate=False)),
        _stub(f"{kind}_as_uint8", kind, types.uint8, f"the bits of the {kind}.", lambda context, builder, value: value),
        _stub(f"uint8_as_{kind}", types.uint8, kind, f"the {kind} with these bits.",
              lambda context, builder, value: value),
    ]  # fmt: skip


CONVERSIONS = {stub.__name__: stub for kind in FLOAT8.values() for stub in _functions_of(kind)}
"""The conversions by their names."""


def __getattr__(name: str) -> Stub:
    try:
        return CONVERSIONS[name]
    except KeyError:
        raise AttributeError(f"module 'hip.fp8' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *CONVERSIONS})


__all__ = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", *CONVERSIONS]
