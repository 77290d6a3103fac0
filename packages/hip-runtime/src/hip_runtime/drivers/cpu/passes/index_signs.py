"""Has the start of a loop decide whether an index that grows in it may be negative.

Python counts negative indices from the end of an array, so each access adds the array's length if its index is
negative. One that only grows is not negative if it does not start so: ``for k in range(ptr[i], ptr[i + 1])`` goes
through a row of a sparse matrix, of which nobody knows but from data that it begins at 0 or later. With that as a part
of the condition, LLVM makes two loops (it unswitches what does not change in a loop), of which the usual one accesses
consecutive elements and can become vectors.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.cfg import order_function
from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.analyses.loop_starts import LoopStarts, find_start
from hip_runtime.drivers.cpu.ir.model import Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1

_PARTS = {"slt": ("uge", "and", 0), "sgt": ("ult", "or", 1)}
"""Predicates of tests whether an index is less than a number, or greater: how what it is at first, less that number and
another, compares with a number below which it is surely not less; and how that is a part of the test."""


def decide_at_start(function: Function) -> bool:
    """Make what an index is at first a part of each comparison of it with a number by which *function* chooses a value
    in a loop where the index only grows; whether there are any."""
    order = order_function(function)
    chosen = {value.operands[0] for value in function.instructions() if value.opcode == "select"}
    homes = {value: block for block in function.blocks for value in block.instructions}
    decided: dict[Value, Instruction] = {}
    for test, block in homes.items():
        if test in chosen and _compares_index(test) and block in order.loops:
            start = find_start(test.operands[0], order.loops[block], homes)
            if start is not None:
                decided[test] = _decide(test, *start)
                block.instructions.insert(block.instructions.index(test) + 1, decided[test])
    for value in function.instructions() if decided else ():
        if value.opcode == "select":
            value.operands[0] = decided.get(value.operands[0], value.operands[0])
    return bool(decided)


def _compares_index(value: Instruction) -> bool:
    """Whether *value* compares one number with another that is known, and small."""
    if value.opcode != "icmp" or value.predicate not in _PARTS:
        return False
    index, number = value.operands[0], signed_number(value.operands[1])
    return isinstance(index.type, ir.IntType) and number is not None and abs(number) < 1 << index.type.width // 2


def _decide(test: Instruction, starts: LoopStarts, first: Value) -> Instruction:
    """*test* with what its index is at *first* as a part of it, which is written before the loop. A comparison with the
    same number LLVM would make one of with *test*."""
    number, kind = signed_number(test.operands[1]), test.operands[1].type
    assert number is not None
    assert starts.entry is not None
    assert isinstance(kind, ir.IntType)
    predicate, part, more = _PARTS[test.predicate]
    if number + more:
        first = starts.write(Instruction(kind, "sub", [first, constant(kind, number + more)], f"{test.name}.from"))
    surely = constant(kind, 1 << kind.width - 2)
    first = starts.write(Instruction(I1, "icmp", [first, surely], f"{test.name}.first", predicate=predicate))
    place = len(starts.entry.instructions) - 1
    starts.entry.instructions[place:place] = starts.made
    return Instruction(I1, part, [first, test], f"{test.name}.decided")
