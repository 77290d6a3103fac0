"""Which integer divisions are better made as float64 if all lanes divide at once, see `vectorize.integer_division`."""

from __future__ import annotations

from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.ir.model import Constant, Instruction

EXACT_BITS = 52
"""Of integers whose quotient as float64, without its fraction, is their integer quotient."""

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
