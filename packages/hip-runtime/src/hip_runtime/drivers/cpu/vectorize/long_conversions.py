"""Conversions between floating-point numbers and integers of 64 bits, all lanes at once.

x86 processors without AVX-512 have instructions for one such number at a time. Python's integers have 64 bits, so any
index that a kernel computes with as a float, and any float that becomes an index, is converted in this way.

The last digit of a float64 between ``2**52`` and ``2**53`` is a one. So the bits of such a number, less those of
``2**52``, are an integer, and the other way round; with ``1.5 * 2**52`` there is room for negative ones. Integers of
any size are the sum of two such numbers, which is rounded once, as the processor's own conversion is. Floats are
converted so after a test that none is too large. LLVM must not add anything to the numbers that are subtracted: of
``2**52 - 0.3`` no digit behind the point is left. It does so with ``fastmath``, although the sums here do not allow it,
unless there is a fence between these and the kernel's.

Numbers that are consecutive across the lanes, and those that become float32, are converted as integers of 32 bits,
which processors do have instructions for, after a test that these hold them.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from hip_devicelib.cpu.processor import has_rounding
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I32, I64, write_likely
from hip_runtime.drivers.cpu.object_code.host_machine import converts_long_integers
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder, mangle

_F32, _F64 = ir.FloatType(), ir.DoubleType()

_MIDDLE = {True: 0x4338 << 48, False: 0x4330 << 48}
"""The bits of the float64 that stands for the integer zero, by whether integers have a sign: ``1.5 * 2**52`` or
``2**52``."""

_UPPER = 0x4530 << 48
"""The bits of ``2**84``, whose last digit is ``2**32``."""

_LIMIT = 2.0**51
"""Floats of less than this are converted to integers at once."""

_SATURATING = "llvm.fptosi.sat.i64."


def is_long_conversion(instruction: Instruction) -> bool:
    """Whether *instruction* is a conversion that this processor makes for one lane at a time."""
    if converts_long_integers() or not instruction.operands:
        return False
    source = instruction.operands[0].type
    if instruction.opcode in ("sitofp", "uitofp"):
        return source == I64 and instruction.type in (_F32, _F64)
    if instruction.opcode == "fptosi" or instruction.callee.startswith(_SATURATING):
        return source in (_F32, _F64) and instruction.type == I64 and has_rounding()
    return False


def write_long_conversion(code: GangValues, conversion: Instruction, convert: Callable[[], ir.Value]) -> ir.Value:
    """The result of *conversion*, which `is_long_conversion`, in all lanes; *convert* writes it lane by lane."""
    operand = conversion.operands[0]
    if operand.type != I64:
        return _write_integers(code, operand, convert)
    shape = code.shapes.of(operand, code.block)
    if shape is not VARYING:
        return _write_consecutive(code, conversion, shape, convert)
    if conversion.type == _F64:
        return _to_float64(code.lanes, code.vector(operand), conversion.opcode == "sitofp")
    return _write_narrow(code, conversion, convert)


def near_integers_to_floats(lanes: VectorBuilder, numbers: ir.Value, signed: bool) -> ir.Value:
    """Integers of up to 51 bits and, if they are *signed*, a sign as float64; unsigned ones may have 52 bits."""
    middle = lanes.splat(I64(_MIDDLE[signed]))
    moved = lanes.builder.bitcast(lanes.builder.add(numbers, middle), lanes.type_of(_F64))
    return _fence(lanes, lanes.builder.fsub(moved, lanes.builder.bitcast(middle, moved.type)))


def near_floats_to_integers(lanes: VectorBuilder, floats: ir.Value, signed: bool) -> ir.Value:
    """The reverse of `near_integers_to_floats`, without fractions."""
    builder, middle = lanes.builder, lanes.splat(I64(_MIDDLE[signed]))
    whole = lanes.call(f"llvm.trunc.{mangle(floats.type)}", floats.type, [floats])
    moved = builder.fadd(whole, builder.bitcast(middle, whole.type))
    return builder.sub(builder.bitcast(moved, middle.type), middle)


def _to_float64(lanes: VectorBuilder, numbers: ir.Value, signed: bool) -> ir.Value:
    """Any integers as float64: the sum of what their upper and their lower 32 bits stand for."""
    builder, kind = lanes.builder, lanes.type_of(_F64)

    def as_float(bits: ir.Value, exponent: int) -> ir.Value:
        return builder.bitcast(builder.or_(bits, lanes.splat(I64(exponent))), kind)

    if signed:
        numbers = builder.xor(numbers, lanes.splat(I64(1 << 63)))
    upper = as_float(builder.lshr(numbers, lanes.splat(I64(32))), _UPPER)
    lower = as_float(builder.and_(numbers, lanes.splat(I64(0xFFFFFFFF))), _MIDDLE[False])
    excess = float((1 << 84) + (1 << 52) + (1 << 63 if signed else 0))
    return _fence(lanes, builder.fadd(builder.fsub(upper, lanes.splat(ir.Constant(_F64, excess))), lower))


def _fence(lanes: VectorBuilder, floats: ir.Value) -> ir.Value:
    """*floats*, as a value that sums are not rearranged across."""
    return lanes.call(f"llvm.arithmetic.fence.{mangle(floats.type)}", floats.type, [floats])


def _write_consecutive(
    code: GangValues, conversion: Instruction, stride: int, convert: Callable[[], ir.Value]
) -> ir.Value:  # fmt: skip
    """The conversion of numbers that grow by *stride* from lane to lane. If the first and the last one have no more
    than 31 bits and a sign, so have those between them, whatever lanes are active."""
    builder, first = code.builder, code.lanes.freeze(code.scalar(conversion.operands[0]))
    reach = stride * (code.lanes.width - 1)
    if abs(reach) >= 1 << 31:
        return convert()
    code.vector(conversion.operands[0])  # written here, not where it is converted: others may use it
    ends = [first, builder.add(first, I64(reach))]
    near = builder.and_(*(_is_narrow(builder, end, conversion.opcode == "sitofp") for end in ends))

    def narrow() -> ir.Value:
        return builder.sitofp(
            code.lanes.spread(builder.trunc(first, I32), stride), code.lanes.type_of(conversion.type)
        )  # fmt: skip

    return write_likely(builder, near, narrow, convert)


def _is_narrow(builder: ir.IRBuilder, number: ir.Value, signed: bool) -> ir.Value:
    """Whether *number* has no more than 31 bits and, if it is *signed*, a sign."""
    if not signed:
        return builder.icmp_unsigned("<", number, I64(1 << 31))
    return builder.icmp_unsigned("<", builder.add(number, I64(1 << 31)), I64(1 << 32))


def _write_narrow(code: GangValues, conversion: Instruction, convert: Callable[[], ir.Value]) -> ir.Value:
    """The conversion of integers to float32. By way of float64 it would be rounded twice."""
    lanes, builder = code.lanes, code.builder
    numbers = _of_active(code, conversion.operands[0], I64(0))
    half = lanes.splat(I64(1 << 31 if conversion.opcode == "sitofp" else 0))
    limit = lanes.splat(I64(1 << 32 if conversion.opcode == "sitofp" else 1 << 31))
    near = builder.icmp_unsigned("<", builder.add(numbers, half), limit)

    def narrow() -> ir.Value:
        return builder.sitofp(builder.trunc(numbers, lanes.type_of(I32)), lanes.type_of(_F32))

    return write_likely(builder, lanes.all(near), narrow, convert)


def _write_integers(code: GangValues, operand: Value, convert: Callable[[], ir.Value]) -> ir.Value:
    """The conversion of floats to integers."""
    lanes, builder = code.lanes, code.builder
    floats = _of_active(code, operand, ir.Constant(operand.type, 0.0))
    if operand.type == _F32:
        floats = builder.fpext(floats, lanes.type_of(_F64))
    size = lanes.call(f"llvm.fabs.{mangle(floats.type)}", floats.type, [floats])
    near = builder.fcmp_ordered("<", size, lanes.splat(ir.Constant(_F64, _LIMIT)))
    return write_likely(builder, lanes.all(near), lambda: near_floats_to_integers(lanes, floats, signed=True), convert)


def _of_active(code: GangValues, operand: Value, rest: ir.Constant) -> ir.Value:
    """*operand* of the active lanes, and *rest* of the others; no poison."""
    values = code.vector(operand)
    if code.mask is not None:
        values = code.builder.select(code.mask, values, code.lanes.splat(rest))
    return code.lanes.freeze(values)
