"""A second copy of some blocks of a graph."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value


@dataclass
class Copies:
    """The copied blocks and values, and their copies."""

    blocks: dict[Block, Block] = field(default_factory=dict)
    values: dict[Instruction, Instruction] = field(default_factory=dict)

    def of(self, value: Value) -> Value:
        """What stands for *value* where the copies are."""
        return self.values.get(value, value) if isinstance(value, Instruction) else value


def copy_blocks(blocks: Collection[Block]) -> Copies:
    """Copies of *blocks*, which refer to each other where the originals do, and to everything else as the originals do.

    The phis of blocks outside are not updated for the new edges into them.
    """
    copies = Copies()
    for block in blocks:
        copies.blocks[block] = Block(f"{block.name}.all")
        copies.values.update((value, replace(value)) for value in block.instructions)
    for block, copy in copies.blocks.items():
        for value in block.instructions:
            made = copies.values[value]
            made.operands = [copies.of(operand) for operand in value.operands]
            made.targets = [copies.blocks.get(target, target) for target in value.targets]
            copy.instructions.append(made)
    return copies
