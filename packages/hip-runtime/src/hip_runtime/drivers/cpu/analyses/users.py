"""The users of values: the instructions that take each as an operand."""

from __future__ import annotations

from collections.abc import Iterable

from hip_runtime.drivers.cpu.ir.model import Instruction, Value

Users = dict[Value, list[Instruction]]


def find_users(instructions: Iterable[Instruction]) -> Users:
    """Those among *instructions*, in order."""
    users: Users = {}
    for instruction in instructions:
        for operand in instruction.operands:
            users.setdefault(operand, []).append(instruction)
    return users
