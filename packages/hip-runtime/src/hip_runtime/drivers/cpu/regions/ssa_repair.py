"""SSA repair for values that are live into a region and are also defined in it.

A thread may enter a region with a value from an earlier iteration of a loop, and reach the value's definition before it
waits again. In the graph of the kernel that is a single value; in the outlined region there are two definitions, with a
``phi`` where both reach.
"""

from __future__ import annotations

from collections.abc import Mapping

from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.regions.formation import Region, region_successors

_LIVE_IN, _LOCAL = 1, 2


class SsaRepair:
    """Finds the definition of a kernel's value that reaches a block of the region.

    *live_in* are the values that threads enter with, *local* the copies of those that the region defines, *blocks* the
    copies of its blocks; *homes* maps values to the blocks that define them.
    """

    def __init__(
        self, region: Region, homes: Mapping[Instruction, Block], live_in: Mapping[Instruction, Value],
        local: Mapping[Instruction, Instruction], blocks: Mapping[Block, Block],
    ) -> None:  # fmt: skip
        self._region = region
        self._homes = homes
        self._live_in = live_in
        self._local = local
        self._blocks = blocks
        self._sources: dict[Block, list[Block]] = {block: [] for block in region.blocks}
        for block in region.blocks:
            for target in region_successors(block):
                self._sources[target].append(block)
        self._reaching: dict[Instruction, dict[Block, int]] = {}
        self._phis: dict[tuple[Instruction, Block], Instruction] = {}

    def value_in(self, value: Instruction, block: Block) -> Value:
        """The definition of *value* that instructions of *block* use."""
        if value not in self._local:
            return self._live_in[value]
        if value not in self._live_in or self._homes[value] is block:
            return self._local[value]
        reaching = self._reaching_definitions(value)[block]
        if reaching == _LIVE_IN:
            return self._live_in[value]
        if reaching == _LOCAL:
            return self._local[value]
        sources = self._sources[block]
        if len(sources) == 1:
            return self.value_in(value, sources[0])
        found = self._phis.get((value, block))
        if found is None:
            found = self._phis[value, block] = Instruction(value.type, "phi", [], value.name)
        return found

    def _reaching_definitions(self, value: Instruction) -> dict[Block, int]:
        """Which of the two definitions reach each block."""
        known = self._reaching.get(value)
        if known is None:
            known = dict.fromkeys(self._region.blocks, 0)
            known[self._region.entry] = _LIVE_IN
            changed = True
            while changed:
                changed = False
                for block in self._region.blocks:
                    leaving = _LOCAL if self._homes[value] is block else known[block]
                    for target in region_successors(block):
                        if leaving & ~known[target]:
                            known[target] |= leaving
                            changed = True
            self._reaching[value] = known
        return known

    def insert_phis(self) -> None:
        """Insert the phis that `value_in` created, and those that their operands need in turn."""
        done: set[tuple[Instruction, Block]] = set()
        while len(done) < len(self._phis):
            for (value, block), phi in list(self._phis.items()):
                if (value, block) not in done:
                    done.add((value, block))
                    phi.operands = [self.value_in(value, source) for source in self._sources[block]]
                    phi.targets = [self._blocks[source] for source in self._sources[block]]
                    self._blocks[block].instructions.insert(0, phi)
