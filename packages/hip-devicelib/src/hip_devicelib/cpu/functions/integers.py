"""Integer functions: bits, products, averages, and the minimum and magnitude of integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llvmlite import ir

from hip_devicelib.cpu.expressions import Flag, Word, select
from hip_devicelib.cpu.functions.function_builder import FunctionBuilder, Operation

I32 = ir.IntType(32)


def _count(intrinsic: str, *flags: bool) -> Operation:
    """An intrinsic that counts bits; *flags* say whether zero is undefined."""

    def operation(body: FunctionBuilder, x: Word) -> Word:
        arguments = [ir.Constant(ir.IntType(1), flag) for flag in flags]
        return Word(body, body.call_intrinsic(intrinsic, x.value.type, x.value, *arguments))

    return operation


_trailing_zeros = _count("llvm.cttz", False)


def _find_first(body: FunctionBuilder, x: Word) -> Word:
    """One more than the number of the lowest bit that is set, or 0."""
    return select(x.equals(0), body.word(0, x.bits), _trailing_zeros(body, x) + 1)


def _last_bit(body: FunctionBuilder, x: Word) -> Word:
    return select(x.equals(0), body.word(-1, x.bits), _trailing_zeros(body, x))


def _wide(operation: Callable[[Word, Word], Word], signed: bool, keep: int = 0) -> Operation:
    """*operation* on integers of twice the width, shifted right by *keep* bits, or by their width."""

    def build(body: FunctionBuilder, x: Word, y: Word) -> Word:
        kind = ir.IntType(2 * x.bits)
        extend = body.builder.sext if signed else body.builder.zext
        total = operation(Word(body, extend(x.value, kind)), Word(body, extend(y.value, kind)))
        return (total >> (keep or x.bits)).resized(x.bits)

    return build


def _low_24(signed: bool) -> Operation:
    """The product of the low 24 bits; its low 32 bits."""

    def low(x: Word) -> Word:
        moved = x << 8
        builder, eight = x.code.builder, ir.Constant(I32, 8)
        return Word(x.code, (builder.ashr if signed else builder.lshr)(moved.value, eight))

    return lambda body, x, y: low(x) * low(y)


def _sad(signed: bool) -> Operation:
    def operation(body: FunctionBuilder, x: Word, y: Word, z: Word) -> Word:
        return select(_greater(body, x, y, signed), x - y, y - x) + z

    return operation


def _greater(body: FunctionBuilder, x: Word, y: Word, signed: bool) -> Flag:
    compare = body.builder.icmp_signed if signed else body.builder.icmp_unsigned
    return Flag(body, compare(">", x.value, y.value))


def _funnel(intrinsic: str, clamped: bool) -> Operation:
    """A shift of the 64 bits hi:lo by shift modulo 32, or by at most 32."""

    def operation(body: FunctionBuilder, low: Word, high: Word, shift: Word) -> Word:
        shifted = Word(body, body.call_intrinsic(intrinsic, I32, high.value, low.value, shift.value))
        if not clamped:
            return shifted
        return select(shift < 32, shifted, low if intrinsic == "llvm.fshl" else high)

    return operation


def _byte_perm(body: FunctionBuilder, x: Word, y: Word, selector: Word) -> Word:
    """Four of the eight bytes of y:x, each chosen by three bits of a nibble of the selector."""
    both = x.resized(64) | (y.resized(64) << 32)
    result = body.word(0, 32)
    for place in range(4):
        number = ((selector >> (4 * place)) & 7).resized(64)
        result = result | (((both >> (number * 8)) & 0xFF).resized(32) << (8 * place))
    return result


def _bit_extract(body: FunctionBuilder, x: Word, offset: Word, width: Word) -> Word:
    """*width* bits from *offset* on, both modulo the width of x. Bits past the end are zero."""
    at, count = _field(x, offset), _field(x, width)
    return (x >> at) & ((body.word(1, x.bits) << count) - 1)


def _bit_insert(body: FunctionBuilder, x: Word, y: Word, offset: Word, width: Word) -> Word:
    at, count = _field(x, offset), _field(x, width)
    mask = (body.word(1, x.bits) << count) - 1
    return (x & ((mask << at) ^ -1)) | ((y & mask) << at)


def _field(x: Word, number: Word) -> Word:
    low = number & (x.bits - 1)
    return low if low.bits == x.bits else low.resized(x.bits)


def _dot_of_nibbles(signed: bool) -> Operation:
    """c and the products of the eight nibbles of a and b, added up; the sum clamped if that is wanted."""

    def operation(body: FunctionBuilder, a: Word, b: Word, c: Word, saturate: Word) -> Word:
        builder, wide = body.builder, ir.IntType(64)
        extend, shift_right = (builder.sext, builder.ashr) if signed else (builder.zext, builder.lshr)
        total = Word(body, extend(c.value, wide))
        for place in range(8):
            pair = [shift_right((x << (28 - 4 * place)).value, ir.Constant(I32, 28)) for x in (a, b)]
            total = total + Word(body, extend(builder.mul(*pair), wide))
        prefix = "s" if signed else "u"
        bounds = {"max": -(1 << 31), "min": (1 << 31) - 1} if signed else {"max": 0, "min": (1 << 32) - 1}
        clamped = total
        for name, bound in bounds.items():
            limit = body.word(bound, 64).value
            clamped = Word(body, body.call_intrinsic(f"llvm.{prefix}{name}", wide, clamped.value, limit))
        return select(Flag(body, saturate.value), clamped, total).resized(32)

    return operation


def _extreme(word: str) -> Operation:
    def operation(body: FunctionBuilder, x: Word, y: Word) -> Word:
        sign = "s" if body.declaration.parameters[0].type.signed else "u"
        return Word(body, body.call_intrinsic(f"llvm.{sign}{word}", x.value.type, x.value, y.value))

    return operation


def _mixed_dot(body: FunctionBuilder, *operands: Word) -> Word:
    signed = body.declaration.result.signed
    word: Word = _dot_of_nibbles(signed)(body, *operands)
    return word


_high_signed = _wide(Word.__mul__, True)
_high_unsigned = _wide(Word.__mul__, False)
_leading_zeros = _count("llvm.ctlz", False)

INTEGERS: Mapping[str, Operation] = {
    **dict.fromkeys("__popc __popcll".split(), _count("llvm.ctpop")),
    **dict.fromkeys("__clz __clzll".split(), _leading_zeros),
    **{f"__ockl_clz_u{bits}": _leading_zeros for bits in (8, 16, 32, 64)},
    **dict.fromkeys("__brev __brevll".split(), _count("llvm.bitreverse")),
    **dict.fromkeys("__ffs __ffsll".split(), _find_first),
    "__lastbit_u32_u64": _last_bit,
    **dict.fromkeys("__mulhi __mul64hi __ockl_mul_hi_i32".split(), _high_signed),
    **dict.fromkeys("__umulhi __umul64hi __ockl_mul_hi_u32".split(), _high_unsigned),
    **dict.fromkeys("__mul24 __ockl_mul24_i32".split(), _low_24(True)),
    **dict.fromkeys("__umul24 __ockl_mul24_u32".split(), _low_24(False)),
    "__hadd": _wide(Word.__add__, True, 1),
    "__uhadd": _wide(Word.__add__, False, 1),
    "__rhadd": _wide(lambda x, y: x + y + 1, True, 1),
    "__urhadd": _wide(lambda x, y: x + y + 1, False, 1),
    "__sad": _sad(True),
    **dict.fromkeys("__usad __ockl_sadd_u32".split(), _sad(False)),
    "__funnelshift_l": _funnel("llvm.fshl", False),
    "__funnelshift_lc": _funnel("llvm.fshl", True),
    "__funnelshift_r": _funnel("llvm.fshr", False),
    "__funnelshift_rc": _funnel("llvm.fshr", True),
    "__byte_perm": _byte_perm,
    **dict.fromkeys("__bitextract_u32 __bitextract_u64".split(), _bit_extract),
    **dict.fromkeys("__bitinsert_u32 __bitinsert_u64".split(), _bit_insert),
    "__ockl_sdot8": _dot_of_nibbles(True),
    "__ockl_udot8": _dot_of_nibbles(False),
    "amd_mixed_dot": _mixed_dot,
    "min": _extreme("min"),
    "max": _extreme("max"),
    **dict.fromkeys("abs labs llabs".split(), _count("llvm.abs", False)),
}
"""By name, for the overloads whose parameters are all integers."""
