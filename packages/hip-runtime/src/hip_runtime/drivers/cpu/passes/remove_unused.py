"""Removes computations that nothing uses, so that analyses do not take them for what the kernel does."""

from __future__ import annotations

from hip_runtime.drivers.cpu.ir.keywords import BINARY, CASTS
from hip_runtime.drivers.cpu.ir.model import Function

_COMPUTES = BINARY | CASTS | {"fneg", "icmp", "fcmp", "select", "getelementptr", "freeze"}
"""Opcodes of what has no effect but its result."""


def remove_unused(function: Function) -> None:
    """Remove such computations of *function*, and those that only these used."""
    while True:
        used = {operand for user in function.instructions() for operand in user.operands}
        unused = {value for value in function.instructions() if value.opcode in _COMPUTES and value not in used}
        if not unused:
            return
        for block in function.blocks:
            block.instructions = [value for value in block.instructions if value not in unused]
