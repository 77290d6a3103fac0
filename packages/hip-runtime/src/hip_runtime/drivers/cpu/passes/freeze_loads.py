"""Loads that LLVM 22 would do too late.

Its InstCombine makes one load of a load under a mask and a choice by that mask, at the place of the choice. Where
memory was written in between, that reads what was written: ``if c: v = x[i]; x[i] = 0`` sets ``v`` to 0 (LLVM issue
215453, mended in LLVM 23). Choices are made where ways join, which a ``phi`` in a graph tells, and of divisors. A
``freeze`` of what was loaded, which has no other effect, keeps LLVM from that, also in loops that it makes vectors of.
"""

from __future__ import annotations

from collections import defaultdict

import llvmlite.binding as llvm
from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS, has_effect
from hip_runtime.drivers.cpu.ir.keywords import CASTS
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction

LOADS_ARE_LATE = llvm.llvm_version_info[0] == 22
"""Whether this is an LLVM that does so."""

Uses = dict[Instruction, list[tuple[Instruction, Block]]]
"""Who reads a value, and where: a ``phi`` at the end of the block that lanes come from."""

_SEEN_THROUGH = CASTS | {"fneg"}


def freeze_loads(function: Function) -> bool:
    """Change *function* so that each value is read when it says; whether anything had to be changed."""
    uses = _find_uses(function)
    shields: dict[Instruction, Instruction] = {}
    for block in function.blocks:
        for load in block.instructions:
            if load.opcode == "load" and not has_effect(load) and _is_overtaken(load, block, uses):
                shields[load] = Instruction(load.type, "freeze", [load], f"{load.name}.read", location=load.location)
    for load, shield in shields.items():
        for user, _ in uses[load]:
            user.operands = [shield if value is load else value for value in user.operands]
    for block in function.blocks if shields else ():
        block.instructions = [
            made for value in block.instructions for made in ([value, shields[value]] if value in shields else [value])
        ]
    return bool(shields)


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
    """Whether memory may be written between *load* and a choice of what it loaded."""
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
