"""Loops over the bits of numbers, such as one that reverses or counts them, or puts those of two numbers together.

Unrolled, each of their steps shifts by a constant, and LLVM finds what many steps do at once: that they reverse bits is
one instruction, a step of a Morton number takes half the instructions, and bits that a byte does not have none.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.cfg import order_function
from hip_runtime.drivers.cpu.analyses.trip_counts import count_iterations
from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction

_MOST_ITERATIONS = 64
_MOST_INSTRUCTIONS = 640
"""Of what an unrolled loop becomes, before it is simplified."""

_SHIFTS = frozenset(["shl", "lshr", "ashr"])
_OF_BITS = _SHIFTS | {"add", "and", "br", "icmp", "mul", "or", "phi", "select", "sext", "sub", "trunc", "xor", "zext"}


def find_bit_loops(function: Function) -> list[str]:
    """The names of the blocks that end with the branch back of such loops of *function*, which run a constant number of
    times."""
    order = order_function(function)
    headers = order.headers()
    found = []
    for loop in order.innermost():
        back = [block for block in loop if headers[loop] in block.successors]
        if len(back) != 1 or not _is_of_bits(loop):
            continue
        size = sum(len(block.instructions) for block in loop)
        most = min(_MOST_ITERATIONS, _MOST_INSTRUCTIONS // size)
        if count_iterations(loop, headers[loop], most) is not None:
            found.append(back[0].name)
    return found


def _is_of_bits(loop: frozenset[Block]) -> bool:
    """Whether *loop* computes nothing but integers, and shifts by other amounts in each iteration."""
    inside = {instruction for block in loop for instruction in block.instructions}
    shifts = any(value.opcode in _SHIFTS and value.operands[1] in inside for value in inside)
    return shifts and all(map(_computes_bits, inside))


def _computes_bits(instruction: Instruction) -> bool:
    known = is_arithmetic(instruction.callee) if instruction.opcode == "call" else instruction.opcode in _OF_BITS
    return known and isinstance(instruction.type, (ir.IntType, ir.VoidType))
