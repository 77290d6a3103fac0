"""Computes once what is computed again from the same operands.

LLVM has removed what was computed twice before loops were unrolled. After that, their iterations compute addresses once
more, which LLVM would find to be the same only in the code for gangs: until then, neighbours at such addresses are not
known to be in one row of memory.
"""

from __future__ import annotations

from collections import defaultdict

from hip_runtime.drivers.cpu.ir.keywords import BINARY, CASTS
from hip_runtime.drivers.cpu.ir.model import Constant, Function, Instruction, Value

_COMPUTES = BINARY | CASTS | {"fneg", "icmp", "fcmp", "select", "getelementptr"}
"""Opcodes of what depends on the operands alone."""


def merge_common_values(function: Function) -> bool:
    """Use the first of values that a block of *function* computes alike; whether there were any. Conditions of branches
    stay where these are, as what lanes agree on is asked there."""
    replaced: dict[Value, Value] = {}
    for block in function.blocks:
        known: defaultdict[object, list[Instruction]] = defaultdict(list)
        for value in block.instructions:
            value.operands = [replaced.get(operand, operand) for operand in value.operands]
            if value.opcode in _COMPUTES:
                alike = known[_describe(value)]
                found = next((other for other in alike if _gives(other, value)), None)
                if found is None:
                    alike.append(value)
                else:
                    replaced[value] = found
    for block in function.blocks:
        block.instructions = [value for value in block.instructions if value not in replaced]
        for value in block.instructions:
            value.operands = [replaced.get(operand, operand) for operand in value.operands]
    return bool(replaced)


def _describe(value: Instruction) -> tuple[object, ...]:
    """What values have in common that are computed alike."""
    operands = (operand.text if isinstance(operand, Constant) else operand for operand in value.operands)
    return value.opcode, value.predicate, *operands


def _gives(one: Instruction, other: Instruction) -> bool:
    """Whether *one* of two values of which the same is computed is the *other*, and is wherever that is defined."""
    return (
        (one.type, one.source_type) == (other.type, other.source_type)
        and all(mine.type == its.type for mine, its in zip(one.operands, other.operands, strict=True))
        and set(one.flags) <= set(other.flags)
    )
