"""Arithmetic with directed rounding, under the names of CUDA's libdevice: ``dadd_rd``, ``fmaf_rz``, ``fsqrt_ru``.

HIP's header has no such functions. Here a result is rounded to nearest and then moved to its neighbour if it is on the
wrong side of the exact result; the side is computed without error (Dekker, A floating-point technique for extending the
available precision, 1971; Shewchuk, Adaptive precision floating-point arithmetic, 1997). For float32 this is done in
float64, rounded to odd; see `numba_hip.language.bf16.bits`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import types

from numba_hip.language.bf16.bits import DOUBLE, FLOAT, I32, I64, magnitude
from numba_hip.language.stub import Stub, numeric_function

DIRECTIONS = {"rd": "down", "ru": "up", "rz": "to zero"}
SCALE = 2.0**200
"""What numbers near the end of the range are multiplied by, so that what a rounding leaves out does not vanish."""

NEAR_ZERO, LARGE, HUGE = 2.0**-900, 2.0**-800, 2.0**1000

Values = Sequence[ir.Value]
Signs = Callable[[Any, ir.IRBuilder, Values, ir.Value], ir.Value]
"""What makes a double with the sign of exact minus rounded result: of context, builder, arguments and the result."""


def _fma(context: Any, builder: ir.IRBuilder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    return context.call_math(builder, "fma", [a, b, c])


def _two_sum(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The sum of two doubles, and its exact rounding error."""
    total = builder.fadd(a, b)
    taken = builder.fsub(total, a)
    return total, builder.fadd(builder.fsub(a, builder.fsub(total, taken)), builder.fsub(b, taken))


def _sign_of_sum(builder: ir.IRBuilder, terms: Values) -> ir.Value:
    """A double with the sign of the exact sum of *terms*: the largest component that is not zero."""
    parts: list[ir.Value] = []
    for term in terms:
        rest = term
        for place, part in enumerate(parts):
            rest, parts[place] = _two_sum(builder, rest, part)
        parts.append(rest)
    sign = parts[0]
    for part in parts[1:]:
        sign = builder.select(builder.fcmp_unordered("==", part, DOUBLE(0.0)), sign, part)
    return sign


def _scaled(builder: ir.IRBuilder, condition: ir.Value, value: ir.Value) -> ir.Value:
    return builder.select(condition, builder.fmul(value, DOUBLE(SCALE)), value)


def _below(builder: ir.IRBuilder, value: ir.Value, limit: float) -> ir.Value:
    return builder.fcmp_ordered("<", magnitude(builder, value), DOUBLE(limit))


def _product_of_signs(context: Any, builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """The product of the signs: 1, -1, or 0 if one of them is 0."""
    ones = [context.call_math(builder, "copysign", [DOUBLE(1.0), value]) for value in (a, b)]
    zero = builder.or_(*(builder.fcmp_ordered("==", value, DOUBLE(0.0)) for value in (a, b)))
    return builder.select(zero, DOUBLE(0.0), builder.fmul(*ones))


def _of_sum(context: Any, builder: ir.IRBuilder, args: Values, result: ir.Value) -> ir.Value:
    return _sign_of_sum(builder, [*args, builder.fneg(result)])


def _of_fused(context: Any, builder: ir.IRBuilder, args: Values, result: ir.Value) -> ir.Value:
    """The sign of the error of a * b + c. Everything is scaled if the product is too small to represent its rounding
    error; beyond that, or if c is much larger, the product alone decides. Values at the upper end of the range are
    scaled down.
    """
    a, b, c = args
    tiny = _below(builder, builder.fmul(a, b), NEAR_ZERO)
    huge = builder.not_(_below(builder, builder.fmul(a, b), HUGE))
    smaller = builder.fcmp_ordered("<", magnitude(builder, a), magnitude(builder, b))
    a, b = builder.select(smaller, a, b), builder.select(smaller, b, a)
    a, c, result = (_scaled(builder, tiny, value) for value in (a, c, result))
    b, result = (builder.select(huge, builder.fmul(v, DOUBLE(1 / SCALE)), v) for v in (b, result))
    small = _below(builder, c, 1.0)  # beside a huge number only its sign can matter
    c = builder.select(builder.and_(huge, builder.not_(small)), builder.fmul(c, DOUBLE(1 / SCALE)), c)
    product = builder.fmul(a, b)
    lost = _fma(context, builder, a, b, builder.fneg(product))
    exact = _sign_of_sum(builder, [lost, product, c, builder.fneg(result)])
    far = builder.not_(_below(builder, c, LARGE * SCALE))
    alone = builder.and_(tiny, builder.or_(far, _below(builder, product, NEAR_ZERO)))
    return builder.select(alone, _product_of_signs(context, builder, a, b), exact)


def _of_product(context: Any, builder: ir.IRBuilder, args: Values, result: ir.Value) -> ir.Value:
    return _of_fused(context, builder, [*args, DOUBLE(0.0)], result)


def _of_quotient(context: Any, builder: ir.IRBuilder, args: Values, result: ir.Value) -> ir.Value:
    """The sign of the error of a quotient: those of a - result * b and of b."""
    a, b = args
    tiny = _below(builder, a, NEAR_ZERO)
    smaller = builder.fcmp_ordered("<", magnitude(builder, b), magnitude(builder, result))
    a = _scaled(builder, tiny, a)
    b = _scaled(builder, builder.and_(tiny, smaller), b)
    other = _scaled(builder, builder.and_(tiny, builder.not_(smaller)), result)
    rest = _fma(context, builder, builder.fneg(other), b, a)
    vanished = builder.fcmp_ordered("==", result, DOUBLE(0.0))
    rest = builder.select(vanished, a, rest)
    return builder.fmul(rest, context.call_math(builder, "copysign", [DOUBLE(1.0), b]))


def _of_root(context: Any, builder: ir.IRBuilder, args: Values, result: ir.Value) -> ir.Value:
    tiny = _below(builder, args[0], 2.0**-500)
    root = builder.select(tiny, builder.fmul(result, DOUBLE(SCALE**0.5)), result)
    return _fma(context, builder, builder.fneg(root), root, _scaled(builder, tiny, args[0]))


def _step(builder: ir.IRBuilder, value: ir.Value, up: bool) -> ir.Value:
    """The double next to *value*, which is not NaN; infinity has no further neighbour."""
    bits = builder.bitcast(value, I64)
    negative = builder.icmp_signed("<", bits, I64(0))
    away = builder.not_(negative) if up else negative
    moved = builder.add(bits, builder.select(away, I64(1), I64(-1)))
    smallest = I64(1) if up else I64(-(2**63) + 1)
    moved = builder.select(builder.fcmp_ordered("==", value, DOUBLE(0.0)), smallest, moved)
    return builder.bitcast(moved, DOUBLE)


def _direct(
    context: Any, builder: ir.IRBuilder, direction: str, result: ir.Value, sign: ir.Value, finite: ir.Value
) -> ir.Value:
    """*result*, which was rounded to the nearest, rounded in *direction*; *sign* is that of exact minus *result*.

    If the arguments are *finite* and the result is not, the exact result is nearer to zero.
    """
    infinite = builder.fcmp_ordered("==", magnitude(builder, result), DOUBLE(float("inf")))
    overflown = builder.and_(infinite, finite)
    inward = builder.select(builder.fcmp_ordered(">", result, DOUBLE(0.0)), DOUBLE(-1.0), DOUBLE(1.0))
    sign = builder.select(overflown, inward, sign)
    below, above = (builder.fcmp_ordered(predicate, sign, DOUBLE(0.0)) for predicate in "<>")
    positive = builder.fcmp_ordered(">", result, DOUBLE(0.0))
    negative = builder.fcmp_ordered("<", result, DOUBLE(0.0))
    down = {"rd": below, "ru": None, "rz": builder.and_(below, positive)}[direction]
    up = {"rd": None, "ru": above, "rz": builder.and_(above, negative)}[direction]
    for condition, upwards in ((down, False), (up, True)):
        if condition is not None:
            result = builder.select(builder.and_(condition, finite), _step(builder, result, upwards), result)
    return result


def _signed_zero(
    context: Any, builder: ir.IRBuilder, direction: str, result: ir.Value, terms: tuple[ir.Value, ir.Value]
) -> ir.Value:
    """A sum of numbers that cancel is -0 if rounded down."""
    if direction != "rd":
        return result
    one, other = (builder.icmp_signed("<", builder.bitcast(term, I64), I64(0)) for term in terms)
    cancelled = builder.and_(builder.fcmp_ordered("==", result, DOUBLE(0.0)), builder.xor(one, other))
    return builder.select(cancelled, DOUBLE(-0.0), result)


def _all_finite(builder: ir.IRBuilder, args: Values) -> ir.Value:
    finite: ir.Value = ir.Constant(ir.IntType(1), 1)
    for value in args:
        finite = builder.and_(finite, _below(builder, value, float("inf")))
    return finite


def _nearest(context: Any, builder: ir.IRBuilder, operation: str, args: Values) -> ir.Value:
    if operation in ("fma", "sqrt"):
        return context.call_math(builder, operation, list(args))
    return {"add": builder.fadd, "sub": builder.fsub, "mul": builder.fmul, "div": builder.fdiv}[operation](*args)


SIGNS: dict[str, Signs] = {
    "add": _of_sum, "sub": _of_sum, "mul": _of_product, "div": _of_quotient, "sqrt": _of_root, "fma": _of_fused,
}  # fmt: skip


def _in_double(context: Any, builder: ir.IRBuilder, operation: str, direction: str, args: Values) -> ir.Value:
    if operation == "rcp":
        operation, args = "div", [DOUBLE(1.0), *args]
    result = _nearest(context, builder, operation, args)
    terms = [args[0], builder.fneg(args[1])] if operation == "sub" else list(args)
    sign, finite = SIGNS[operation](context, builder, terms, result), _all_finite(builder, args)
    if operation == "div":
        finite = builder.and_(finite, builder.fcmp_ordered("!=", args[1], DOUBLE(0.0)))
    directed = _direct(context, builder, direction, result, sign, finite)
    if operation in ("add", "sub"):
        directed = _signed_zero(context, builder, direction, directed, (terms[0], terms[1]))
    if operation == "fma":
        product = context.call_math(builder, "copysign", [DOUBLE(1.0), args[0]])
        product = builder.fmul(product, context.call_math(builder, "copysign", [DOUBLE(1.0), args[1]]))
        exact = builder.fcmp_ordered("==", sign, DOUBLE(0.0))
        directed = builder.select(
            exact, _signed_zero(context, builder, direction, directed, (product, args[2])), directed
        )
    return directed


def _to_float(builder: ir.IRBuilder, direction: str, value: ir.Value) -> ir.Value:
    """A double that was rounded in *direction* as a float32: rounding twice in one direction equals rounding once."""
    single = builder.fptrunc(value, FLOAT)
    back = builder.fpext(single, DOUBLE)
    bits = builder.bitcast(single, I32)
    negative = builder.icmp_signed("<", bits, I32(0))
    too_large, too_small = (builder.fcmp_ordered(predicate, back, value) for predicate in "><")
    toward_zero = builder.or_(
        builder.and_(negative, too_small) if direction != "rd" else ir.Constant(ir.IntType(1), 0),
        builder.and_(builder.not_(negative), too_large) if direction != "ru" else ir.Constant(ir.IntType(1), 0),
    )
    outward = {"rd": builder.and_(negative, too_large), "ru": builder.and_(builder.not_(negative), too_small)}
    away = outward.get(direction, ir.Constant(ir.IntType(1), 0))
    step = builder.select(toward_zero, I32(-1), builder.select(away, I32(1), I32(0)))
    return builder.bitcast(builder.add(bits, step), FLOAT)


def _stub(name: str, operation: str, direction: str, arity: int, kind: types.Float) -> Stub:
    def compute(context: Any, builder: ir.IRBuilder, *args: ir.Value) -> ir.Value:
        if kind == types.float64:
            return _in_double(context, builder, operation, direction, args)
        wide = [builder.fpext(value, DOUBLE) for value in args]
        return _to_float(builder, direction, _in_double(context, builder, operation, direction, wide))

    return numeric_function(
        f"libdevice.{name}", "xyz"[:arity], f"the {kind}, rounded {DIRECTIONS[direction]}.", compute,
        operand=kind, result=kind, module="numba_hip.libdevice",
        accepted=(types.Float, types.Integer, types.Boolean), refusal="takes numbers",
    )  # fmt: skip


ARITY = {"add": 2, "sub": 2, "mul": 2, "div": 2, "rcp": 1, "sqrt": 1, "fma": 3}


def find(name: str) -> Stub | None:
    """The function with libdevice's name *name*, if it is one of these."""
    stem, _, direction = name.rpartition("_")
    if direction not in DIRECTIONS:
        return None
    if stem in ("fma", "fmaf"):
        return _stub(name, "fma", direction, 3, types.float32 if stem == "fmaf" else types.float64)
    operation, kind = stem[1:], {"f": types.float32, "d": types.float64}.get(stem[:1])
    if kind is None or operation not in ARITY or operation == "fma":
        return None
    return _stub(name, operation, direction, ARITY[operation], kind)
