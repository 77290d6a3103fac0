"""What the most expensive path through a kernel costs."""

from __future__ import annotations

from collections.abc import Mapping

from hip_runtime.drivers.cpu.analyses.cfg import Order, Successors
from hip_runtime.drivers.cpu.ir.model import Block


def find_longest(order: Order, successors: Successors, costs: Mapping[Block, float]) -> float:
    """The largest sum of the *costs* of the blocks on one path, which goes through each loop once."""
    position = {block: number for number, block in enumerate(order.blocks)}
    exits = {
        header: [target for block in loop for target in successors(block) if target not in loop]
        for loop, header in order.headers().items()
    }
    until = dict.fromkeys(order.blocks, 0.0)
    for block in order.blocks:
        cost = until[block] = until[block] + costs.get(block, 0.0)
        for target in successors(block):
            # From the end of a loop's body, which leads to a header, the path goes on behind the loop.
            for following in exits[target] if position[target] <= position[block] else [target]:
                until[following] = max(until[following], cost)
    return max(until.values())
