"""Freezes loaded values that LLVM 22 would otherwise load too late.

Its InstCombine merges a masked load and a select by the same mask into one load at the select. If memory is written in
between, that reads the new contents: ``if c: v = x[i]; x[i] = 0`` sets ``v`` to 0 (LLVM issue 215453, fixed in LLVM
23). Predication introduces such selects for each ``phi`` at which paths join, and for divisors. A ``freeze`` of the
loaded value, which changes nothing else, prevents the merge, also in loops that LLVM vectorises itself.
"""

from __future__ import annotations

from collections import defaultdict

import llvmlite.binding as llvm
from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS, has_effect
from hip_runtime.drivers.cpu.ir.keywords import CASTS
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction

LOADS_ARE_LATE = llvm.llvm_version_info[0] == 22
"""Whether this version of LLVM has the bug."""

Uses = dict[Instruction, list[tuple[Instruction, Block]]]
"""The users of a value, each with its block; for a ``phi`` that is the incoming block."""

_SEEN_THROUGH = CASTS | {"fneg"}


def freeze_loads(function: Function) -> bool:
    """Freeze the loads of *function* that may be moved; whether there were any."""
    uses = _find_uses(function)
    freezes: dict[Instruction, Instruction] = {}
    for block in function.blocks:
        for load in block.instructions:
            if load.opcode == "load" and not has_effect(load) and _is_overtaken(load, block, uses):
                freezes[load] = Instruction(load.type, "freeze", [load], f"{load.name}.read", location=load.location)
    for load, frozen in freezes.items():
        for user, _ in uses[load]:
            user.operands = [frozen if value is load else value for value in user.operands]
    for block in function.blocks if freezes else ():
        block.instructions = [
            made for value in block.instructions for made in ([value, freezes[value]] if value in freezes else [value])
        ]
    return bool(freezes)


def _find_uses(function: Function) -> Uses:
    uses: Uses = defaultdict(list)
    for block in function.blocks:
        for user in block.instructions:
            places = user.targets if user.opcode == "phi" else [block] * len(user.operands)
            for value, place in zip(user.operands, places, strict=True):
                if isinstance(value, Instruction):
                    uses[value].append((user, place))
    return uses


def _is_overtaken(load: Instruction, home: Block, uses: Uses) -> bool:
    """Whether memory may be written between *load* and a use that predication turns into a select."""
    if isinstance(load.type, ir.LiteralStructType | ir.ArrayType):
        return False
    waiting = [load]
    while waiting:
        value = waiting.pop()
        for user, place in uses[value]:
            if user.opcode in _SEEN_THROUGH:
                waiting.append(user)
            elif user.opcode == "phi" or (user.opcode in DIVISIONS and user.operands[1] is value):
                end = len(home.instructions) if user.opcode == "phi" else _find(user, home)
                if place is not home or any(map(has_effect, home.instructions[_find(load, home) : end])):
                    return True
    return False


def _find(value: Instruction, block: Block) -> int:
    return next((number for number, found in enumerate(block.instructions) if found is value), len(block.instructions))
