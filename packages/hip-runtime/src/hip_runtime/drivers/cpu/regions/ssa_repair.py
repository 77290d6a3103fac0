"""Names for values that a region both is given and computes itself.

A thread enters a region with values of earlier rounds of a loop, say, and may come to where they are computed before it
waits again. In the graph of the whole kernel that is one value; in the graph of the region alone it is two, with a
``phi`` where a thread can come either way.
"""

from __future__ import annotations

from collections.abc import Mapping

from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.regions.form import Region, within

_GIVEN, _OWN = 1, 2


class SsaRepair:
    """Finds what a value of the kernel is at a place of the region.

    *given* is what threads enter with, *own* are the copies of what the region computes, *blocks* those of its blocks,
    *homes* tells where values are computed.
    """

    def __init__(
        self, region: Region, homes: Mapping[Instruction, Block], given: Mapping[Instruction, Value],
        own: Mapping[Instruction, Instruction], blocks: Mapping[Block, Block],
    ) -> None:  # fmt: skip
        self._region = region
        self._homes = homes
        self._given = given
        self._own = own
        self._blocks = blocks
        self._sources: dict[Block, list[Block]] = {block: [] for block in region.blocks}
        for block in region.blocks:
            for target in within(block):
                self._sources[target].append(block)
        self._arriving: dict[Instruction, dict[Block, int]] = {}
        self._phis: dict[tuple[Instruction, Block], Instruction] = {}

    def inside(self, value: Instruction, block: Block) -> Value:
        """What *value* is for the instructions of *block*."""
        if value not in self._own:
            return self._given[value]
        if value not in self._given or self._homes[value] is block:
            return self._own[value]
        arriving = self._arriving_of(value)[block]
        if arriving == _GIVEN:
            return self._given[value]
        if arriving == _OWN:
            return self._own[value]
        sources = self._sources[block]
        if len(sources) == 1:
            return self.inside(value, sources[0])
        found = self._phis.get((value, block))
        if found is None:
            found = self._phis[value, block] = Instruction(value.type, "phi", [], value.name)
        return found

    def _arriving_of(self, value: Instruction) -> dict[Block, int]:
        """With which of the two threads can come to each block."""
        known = self._arriving.get(value)
        if known is None:
            known = dict.fromkeys(self._region.blocks, 0)
            known[self._region.entry] = _GIVEN
            changed = True
            while changed:
                changed = False
                for block in self._region.blocks:
                    leaving = _OWN if self._homes[value] is block else known[block]
                    for target in within(block):
                        if leaving & ~known[target]:
                            known[target] |= leaving
                            changed = True
            self._arriving[value] = known
        return known

    def insert_phis(self) -> None:
        """Put the phis that were asked for in front of their blocks. More may be asked for on the way."""
        done: set[tuple[Instruction, Block]] = set()
        while len(done) < len(self._phis):
            for (value, block), phi in list(self._phis.items()):
                if (value, block) not in done:
                    done.add((value, block))
                    phi.operands = [self.inside(value, source) for source in self._sources[block]]
                    phi.targets = [self._blocks[source] for source in self._sources[block]]
                    self._blocks[block].instructions.insert(0, phi)
