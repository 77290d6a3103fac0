"""Integer divisions of all lanes at once, in float64 where that is exact.

Processors have no vector instruction that divides integers, so LLVM divides one lane after another. The quotient of two
integers below 2**52 is never rounded up to the next integer: if ``a = q * b + r``, then ``a / b`` is at least ``1 / b``
below ``q + 1``, relative to ``q + 1`` that is more than half of a float64's last digit. So 32-bit integers are divided
as float64, and 64-bit ones after a test that those of all lanes are that small. Quotients that trap, of a division by
zero or of the least number by -1, are left to the processor's own instruction.

Of numbers that grow alike from lane to lane, only the first is divided as it is: what is left of it, and the steps, are
numbers of 16 bits, of which vectors have the upper half of a product.
"""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib.cpu.processor import has_rounding
from hip_runtime.drivers.cpu.analyses.integer_division import EXACT_BITS, STEP
from hip_runtime.drivers.cpu.object_code.host_machine import converts_long_integers
from hip_runtime.drivers.cpu.vectorize.long_conversions import near_floats_to_integers, near_integers_to_floats
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder


def write_quotient(
    lanes: VectorBuilder, dividends: ir.Value, divisors: ir.Value, signed: bool
) -> tuple[ir.Value, ir.Value]:  # fmt: skip
    """The quotients and the remainders of all lanes. None of the operands may be poison."""
    builder = lanes.builder
    with builder.if_else(lanes.all(_is_exact(lanes, dividends, divisors, signed))) as (exact, otherwise):
        with exact:
            floats = _divide_floats(lanes, dividends, divisors, signed)
            near = builder.block
        with otherwise:
            divide = builder.sdiv if signed else builder.udiv
            integers = divide(dividends, divisors)
            far = builder.block
    quotients = builder.phi(dividends.type)
    quotients.add_incoming(floats, near)
    quotients.add_incoming(integers, far)
    return quotients, builder.sub(dividends, builder.mul(quotients, divisors))


def write_quotient_of_steps(
    lanes: VectorBuilder, first: ir.Value, stride: int, divisor: ir.Constant
) -> tuple[ir.Value, ir.Value]:  # fmt: skip
    """The quotients and the remainders of the numbers that `divides_steps` is true for, of which the first lane's is
    *first*."""
    builder, wide = lanes.builder, lanes.type_of(first.type)
    quotient, by = builder.udiv(first, divisor), lanes.splat(STEP(divisor.constant))
    rest = builder.trunc(builder.sub(first, builder.mul(quotient, divisor)), STEP)
    numbers = lanes.spread(rest, stride)
    steps = builder.udiv(numbers, by)
    rests = builder.sub(numbers, builder.mul(steps, by))
    return builder.add(lanes.splat(quotient), builder.zext(steps, wide)), builder.zext(rests, wide)


def _divide_floats(lanes: VectorBuilder, dividends: ir.Value, divisors: ir.Value, signed: bool) -> ir.Value:
    builder, kind = lanes.builder, lanes.type_of(ir.DoubleType())
    if dividends.type.element.width == 64 and not converts_long_integers() and has_rounding():
        numbers = (near_integers_to_floats(lanes, operand, signed) for operand in (dividends, divisors))
        return near_floats_to_integers(lanes, builder.fdiv(*numbers), signed)
    signed = signed or dividends.type.element.width == 64
    to_float, to_integer = (builder.sitofp, builder.fptosi) if signed else (builder.uitofp, builder.fptoui)
    return to_integer(builder.fdiv(to_float(dividends, kind), to_float(divisors, kind)), dividends.type)


def _is_exact(lanes: VectorBuilder, dividends: ir.Value, divisors: ir.Value, signed: bool) -> ir.Value:
    """In which lanes a division as float64 is exact, and does not trap."""
    builder, kind = lanes.builder, dividends.type.element

    def constant(number: int) -> ir.Value:
        return lanes.splat(ir.Constant(kind, number))

    if kind.width == 32:
        if not signed:
            return builder.icmp_unsigned("!=", divisors, constant(0))
        return builder.icmp_unsigned(">", builder.add(divisors, constant(1)), constant(1))
    both = [dividends, divisors]
    if signed:
        both = [builder.add(value, constant(1 << (EXACT_BITS - 1))) for value in both]
    small = builder.icmp_unsigned("<", builder.or_(*both), constant(1 << EXACT_BITS))
    return builder.and_(small, builder.icmp_unsigned("!=", divisors, constant(0)))
