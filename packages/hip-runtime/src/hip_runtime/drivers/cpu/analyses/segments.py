"""What threads of a block may do from one barrier to the next, in whatever order they run.

A number that all threads load from one place is the same for all if none of them writes there meanwhile: the row of a
matrix that belongs to the block, as ``start[blockIdx.x]``. Where another block does, without an order between the two,
threads of a GPU may find either number, too, or all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.block_memory import may_overlap
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value

_WAITING_FOR_ALL = spmd.BLOCK_WIDE | {spmd.GRID_BARRIER}


class Segments:
    """The *blocks* of a graph that ends them at synchronising operations, put together where no barrier of the whole
    block of threads lies between."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._first = {block: block for block in blocks}
        for block in blocks:
            if not _waits_for_all(block):
                for target in block.successors:
                    self._first[self._find(target)] = self._find(block)
        self._written: dict[Block, list[Value] | None] = {}

    def is_settled(self, load: Instruction, block: Block) -> bool:
        """Whether no thread writes where *load*, which is in *block*, reads from, before all have run it."""
        if load.volatile or load.atomic is not None:
            return False
        first = self._find(block)
        if first not in self._written:
            self._written[first] = self._find_written(first)
        written = self._written[first]
        return written is not None and not any(may_overlap(load.operands[0], address) for address in written)

    def _find(self, block: Block) -> Block:
        """One of the blocks of the segment of *block*, the same for all."""
        while (above := self._first[block]) is not block:
            self._first[block] = self._first[above]
            block = above
        return block

    def _find_written(self, first: Block) -> list[Value] | None:
        """The addresses that threads write to in the segment of *first*; ``None`` if they are not known."""
        found: list[Value] = []
        for block in self._first:
            if self._find(block) is not first:
                continue
            for value in block.instructions:
                if value.opcode == "store":
                    found.append(value.operands[1])
                elif value.opcode in ("atomicrmw", "cmpxchg"):
                    found.append(value.operands[0])
                elif has_effect(value) and not _only_waits(value):
                    return None
        return found


def _only_waits(value: Instruction) -> bool:
    return value.callee in spmd.SYNCHRONISING


def _waits_for_all(block: Block) -> bool:
    end = block.terminator
    return end.opcode == "synchronise" and block.synchronising.callee in _WAITING_FOR_ALL
