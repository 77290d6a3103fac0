"""Replaces what is known: constants that are computed from constants, conditions that ranges decide, and what these
choose."""

from __future__ import annotations

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.cfg import order_function
from hip_runtime.drivers.cpu.analyses.known_ranges import KnownRanges
from hip_runtime.drivers.cpu.ir.model import Function, Instruction, Value
from hip_runtime.drivers.cpu.passes.remove_unused import remove_unused


def replace_known(function: Function, ranges: KnownRanges) -> None:
    """Replace the instructions of *function* whose operands decide what they are, given the *ranges* of some values,
    which afterwards has those of others, too. Branches stay."""
    replaced: dict[Value, Value] = {}
    for block in order_function(function).blocks:
        for value in block.instructions:
            value.operands = [replaced.get(operand, operand) for operand in value.operands]
            if value.opcode == "phi":
                ranges.follow(value)
                continue
            known = _address_at_start(value) or ranges.simplify(value)
            if known is not None:
                replaced[value] = known
    if replaced:
        for value in function.instructions():  # a phi may have what is computed behind it
            value.operands = [replaced.get(operand, operand) for operand in value.operands]
        remove_unused(function)


def _address_at_start(value: Instruction) -> Value | None:
    """The address that *value* is, if it is that of the first element there."""
    if value.opcode != "getelementptr" or any(signed_number(index) != 0 for index in value.operands[1:]):
        return None
    return value.operands[0]
