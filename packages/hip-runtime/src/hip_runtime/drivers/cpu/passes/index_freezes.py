"""Drops the ``freeze`` of an index that cannot be poison, as LLVM writes it where it asks twice for one.

It inserts them because a sum that must not wrap is poison if it does. Those of the indices of blocks and threads never
do, and are looked for by what follows.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.known_ranges import KnownRanges
from hip_runtime.drivers.cpu.ir.model import Function, Value


def drop_index_freezes(function: Function) -> bool:
    """Drop those of *function*; whether there were any."""
    if not any(value.opcode == "freeze" for value in function.instructions()):
        return False
    ranges = KnownRanges()
    replaced: dict[Value, Value] = {}
    for block in function.blocks:
        for value in block.instructions:
            value.operands = [replaced.get(operand, operand) for operand in value.operands]
            if value.opcode == "call" and len(value.ranges) == 2 and value.ranges[0] < value.ranges[1]:
                ranges.learn(value, (value.ranges[0], value.ranges[1] - 1))
            elif value.opcode == "freeze" and _is_narrow(value.operands[0], ranges):
                replaced[value] = value.operands[0]
            elif value.opcode in _SUMS and all(_is_narrow(operand, ranges) for operand in value.operands):
                ranges.decide(value)
        block.instructions = [value for value in block.instructions if value not in replaced]
    for value in function.instructions():  # a phi may have what is computed behind it
        value.operands = [replaced.get(operand, operand) for operand in value.operands]
    return bool(replaced)


_SUMS = frozenset({"add", "sub", "mul", "shl", "zext", "sext"})


def _is_narrow(value: Value, ranges: KnownRanges) -> bool:
    """Whether the range of *value* is known, and ends before that of its type does, so that nothing has wrapped."""
    found = ranges.of(value)
    if found is None or not isinstance(value.type, ir.IntType):
        return False
    limit: int = 1 << value.type.width - 1
    return -limit < found[0] and found[1] < limit - 1
