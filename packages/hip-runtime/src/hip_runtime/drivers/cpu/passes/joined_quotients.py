"""Replaces a quotient and its remainder in an address by what is divided: ``tile[q // 18, q % 18]`` is element *q* of a
tile whose rows have 18 elements.

Where the distance of rows is an argument, that takes a version of the kernel (`dense_indices`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hip_runtime.drivers.cpu.analyses.address_terms import take_apart
from hip_runtime.drivers.cpu.analyses.divisions import divide_by_all, find_divided, length_of
from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I8, I64, PTR

_DIVIDES = frozenset({"sdiv", "udiv", "lshr"})
_ACCESSES = frozenset({"load", "store", "atomicrmw", "cmpxchg"})


def join_quotients(function: Function, size_of: SizeOf) -> bool:
    """Do so for the accesses of *function*; whether there were any."""
    if not any(value.opcode in _DIVIDES for value in function.instructions()):
        return False
    found = False
    for block in function.blocks:
        for access in [value for value in block.instructions if value.opcode in _ACCESSES]:
            place = 1 if access.opcode == "store" else 0
            apart = take_apart(access.operands[place], size_of)
            terms = _join(dict(apart.in_order))
            if terms is not None:
                access.operands[place] = _write(block, access, terms, apart.offset)
                found = True
    return found


def _join(terms: Mapping[Value, int]) -> dict[Value, int] | None:
    """*terms*, each times a number, with what is divided instead of quotients and remainders that belong together;
    ``None`` if none do."""
    for quotient, scale in terms.items():
        division = divide_by_all(quotient)
        if division is None or division.by.arguments:
            continue
        for remainder, unit in terms.items():
            divided = find_divided(remainder, division)
            if divided is not None and unit * length_of(remainder).number == scale:
                rest = Counter({term: number for term, number in terms.items() if term not in (quotient, remainder)})
                rest[divided] += unit
                return _join(rest) or rest
    return None


def _write(block: Block, access: Instruction, terms: Mapping[Value, int], offset: int) -> Value:
    """Compute the sum of *terms* and *offset* bytes in front of *access* in *block*."""
    (base,) = (value for value, scale in terms.items() if value.type == PTR and scale)
    made: list[Instruction] = []
    pointer = base
    for value, scale in terms.items():
        if value is base or not scale:
            continue
        step = value
        if scale != 1:
            step = Instruction(I64, "mul", [value, constant(I64, scale)], "scaled")
            made.append(step)
        pointer = Instruction(PTR, "getelementptr", [pointer, step], "joined", source_type=I8)
        made.append(pointer)
    if offset:
        pointer = Instruction(PTR, "getelementptr", [pointer, constant(I64, offset)], "joined", source_type=I8)
        made.append(pointer)
    place = block.instructions.index(access)
    block.instructions[place:place] = made
    return pointer
