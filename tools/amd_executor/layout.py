"""The layout of a wave's registers, in words of 32 bits, and of a decoded instruction for machine code."""

from __future__ import annotations

LANES = 64
"""The lanes in a vector register; waves of 32 use the first half."""

SCC = 128
PC = 130
FAULT_ADDRESS = 134
RANGES = 136
RANGE_COUNT = 138
RANGE_LAST = 140
SHARED = 142
SHARED_BYTES = 144
SCRATCH = 146
SCRATCH_BYTES = 148
HARDWARE = 160
DROPPED = 192
VECTORS = 256
ACCUMULATORS = VECTORS + 256 * LANES
WORDS = ACCUMULATORS + 256 * LANES

VCC, EXEC = 106, 126

RECORD_WORDS = 32
"""64-bit words of an instruction: function, size, two numbers, then two words for each operand, then constants.

An operand is an offset and a mask: its place is ``(wave & mask) + offset``, so that constants can be in the record.
"""

FUNCTION, SIZE, FIRST_NUMBER, SECOND_NUMBER, OPERANDS, CONSTANTS = 0, 1, 2, 3, 4, 24
OPERAND_COUNT = (CONSTANTS - OPERANDS) // 2

NEXT, END, BARRIER, FAULT, TRAP, UNDECODED, OUTSIDE, TURN, REGISTER = range(9)
"""The ways in which a function, or the loop over them, ends."""


def vector_place(number: int) -> int:
    """The first word of a vector register."""
    return VECTORS + number * LANES


def scalar_place(number: int) -> int:
    """The word of a scalar register. Values for no register are written to a word that is never read."""
    return DROPPED if number < 0 else number
