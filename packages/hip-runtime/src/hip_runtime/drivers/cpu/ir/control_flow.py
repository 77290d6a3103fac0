"""Which blocks of a function are reached, and from which others each of them is reached only."""

from __future__ import annotations

from hip_runtime.drivers.cpu.ir.model import Block, Function


class ControlFlow:
    """Reachability and dominance of blocks."""

    def __init__(self, function: Function) -> None:
        entry = function.blocks[0]
        self.reachable = _reverse_postorder(entry)
        self.reached = set(self.reachable)
        self.predecessors: dict[Block, set[Block]] = {block: set() for block in self.reachable}
        for block in self.reachable:
            for target in block.successors:
                self.predecessors[target].add(block)
        position = {block: number for number, block in enumerate(self.reachable)}
        self._bits = {block: 1 << number for block, number in position.items()}
        everything = (1 << len(self.reachable)) - 1
        self._dominators = dict.fromkeys(self.reachable, everything)
        self._dominators[entry] = self._bits[entry]
        changed = True
        while changed:
            changed = False
            for block in self.reachable[1:]:
                common = everything
                for source in self.predecessors[block]:
                    common &= self._dominators[source]
                common |= self._bits[block]
                changed |= common != self._dominators[block]
                self._dominators[block] = common

    def dominates(self, above: Block, below: Block) -> bool:
        """Whether *above* is on every path from the entry to *below*, or is it."""
        return above in self._bits and bool(self._dominators[below] & self._bits[above])


def _reverse_postorder(entry: Block) -> list[Block]:
    order: list[Block] = []
    seen = {entry}
    waiting = [(entry, iter(entry.successors))]
    while waiting:
        block, targets = waiting[-1]
        target = next((target for target in targets if target not in seen), None)
        if target is None:
            order.append(block)
            waiting.pop()
        else:
            seen.add(target)
            waiting.append((target, iter(target.successors)))
    return order[::-1]
