"""How all lanes divide integers at once, see `vectorize.integer_division`: which divisions are better made as float64,
and which are of numbers that grow alike from lane to lane.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.sources import are_all
from hip_runtime.drivers.cpu.analyses.vector_shapes import AFFINE, VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Instruction, Value

EXACT_BITS = 52
"""Of integers whose quotient as float64, without its fraction, is their integer quotient."""

STEP = ir.IntType(16)
"""Holds by how much dividends are more than the first lane's quotient times the divisor."""

_MIN_LANES = 4


def divides_as_floats(division: Instruction, width: int) -> bool:
    """Whether *division* by *width* lanes is quicker as float64 than what LLVM makes of an integer division."""
    if division.opcode not in DIVISIONS or width < _MIN_LANES:
        return False
    divisor, bits = division.operands[1], division.type.width
    if not isinstance(divisor, Constant):
        return bits in (32, 64)
    # LLVM multiplies, and needs the upper half of the product, which vectors have of 32 bits only.
    number = divisor.number
    return bits == 64 and number is not None and number < 1 << (EXACT_BITS - 1) and number & (number - 1) != 0


def divides_steps(division: Instruction, block: Block, shapes: VectorShapes, width: int) -> bool:
    """Whether *division*, in *block*, divides numbers that grow by the same step from lane to lane, of *width*, by a
    constant, without a sign."""
    if division.opcode not in ("udiv", "urem") or division.type not in _LONG or width < _MIN_LANES:
        return False
    dividend, divisor = division.operands
    stride = shapes.of(dividend, block)
    if not isinstance(divisor, Constant) or not divisor.number or stride is VARYING or stride < 1:
        return False
    largest = divisor.number - 1 + stride * (width - 1)
    return largest < 1 << STEP.width and grows_without_sign(dividend, block, shapes)


def grows_without_sign(value: Value, block: Block, shapes: VectorShapes) -> bool:
    """Whether *value*, strided as seen from *block*, is more in each lane than in the one before as a number without
    sign: inactive lanes, which may be the first, could be below zero and wrap around."""

    def judge(value: Value) -> bool | list[Value]:
        if not isinstance(value, Instruction) or shapes.find(value, block) == 0:
            return True
        if value.callee in shapes.consecutive or shapes.reaches_over(value, shapes.find(value, block)) is not None:
            return True
        is_sum = "nuw" in value.flags if value.opcode in AFFINE else "disjoint" in value.flags
        keeps = value.opcode in ("phi", "zext") or is_sum
        runs_all = block not in shapes.masked and shapes.homes[value] not in shapes.masked
        return value.operands if keeps and (runs_all or value.opcode == "zext") else False

    return are_all(value, judge)


_LONG = (ir.IntType(32), ir.IntType(64))
