"""Writes bits that are inverted as a difference: ``~i`` is ``-1 - i``.

LLVM makes ``size + ~i`` of ``size - 1 - i``, as arrays are read from the end. A difference is known to grow from lane
to lane, and to be a part of an address.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.ir.model import Function, Instruction
from hip_runtime.drivers.cpu.llvmir import I1

_SUMS = frozenset({"add", "sub", "getelementptr"})


def subtract_complements(function: Function) -> bool:
    """Write the complements of *function* that are added to something so; whether there were any."""
    added = {operand for value in function.instructions() if value.opcode in _SUMS for operand in value.operands}
    found = [value for value in function.instructions() if value in added and _is_complement(value)]
    for value in found:
        number, ones = value.operands
        value.opcode, value.operands = "sub", [ones, number]
        value.flags = ("nsw",)  # which is never left: the least number becomes the largest
    return bool(found)


def _is_complement(value: Instruction) -> bool:
    if value.opcode != "xor" or not isinstance(value.type, ir.IntType) or value.type == I1:
        return False
    return signed_number(value.operands[1]) == -1
