"""Updates of a table that follow one another in a block, with nothing but arithmetic and loads in between.

These are done for one lane after another, all of a lane's at once: they neither wait for each other nor for what the
lane before has stored, unless that updated the same elements.
"""

from __future__ import annotations

from collections.abc import Callable

from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.ir.model import Block, Instruction

MOST_JOINED = 4
"""Updates that are done together."""


def find_joint_updates(
    block: Block, first: Instruction, is_update: Callable[[Instruction], bool]
) -> tuple[Instruction, ...]:  # fmt: skip
    """The updates of *block* from *first* on that may be done with the last of them: only loads in between could find
    out, of memory that has been updated."""
    found = [first]
    for value in block.instructions[block.instructions.index(first) + 1 :]:
        if len(found) == MOST_JOINED or value.is_terminator:
            break
        if value.opcode == "atomicrmw" and is_update(value):
            found.append(value)
        elif has_effect(value):
            break
    return tuple(found)
