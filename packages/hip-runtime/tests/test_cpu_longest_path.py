"""The most expensive path through a kernel."""

from __future__ import annotations

import pytest

from hip_runtime.drivers.cpu.analyses.cfg import order_blocks
from hip_runtime.drivers.cpu.analyses.longest_path import find_longest
from hip_runtime.drivers.cpu.ir.model import Block

GRAPHS: dict[str, tuple[dict[str, str], int]] = {
    "a line": ({"a": "b", "b": "c", "c": ""}, 0b111),
    "branches": ({"a": "bcd", "b": "e", "c": "e", "d": "e", "e": ""}, 0b11001),
    "a way around": ({"a": "bc", "b": "c", "c": ""}, 0b111),
    "a loop that ends with its test": ({"a": "b", "b": "c", "c": "bd", "d": ""}, 0b1111),
    "a loop that begins with its test": ({"a": "b", "b": "cd", "c": "b", "d": ""}, 0b1111),
    "a loop of one block": ({"a": "b", "b": "bc", "c": ""}, 0b111),
    "branches in a loop": ({"a": "b", "b": "cd", "c": "e", "d": "e", "e": "bf", "f": ""}, 0b111011),
    "a loop in a loop": ({"a": "b", "b": "cf", "c": "de", "d": "c", "e": "b", "f": ""}, 0b111111),
    "a loop that is entered at two places": ({"a": "bc", "b": "c", "c": "bd", "d": ""}, 0b1111),
    "a loop without end": ({"a": "bc", "b": "b", "c": ""}, 0b101),
}
"""Blocks and their successors, and the sum of 1, 2, 4, ..., one for each, on the most expensive path."""


@pytest.mark.parametrize("name", GRAPHS)
def test_the_most_expensive_path(name: str) -> None:
    edges, expected = GRAPHS[name]
    blocks = {letter: Block(letter) for letter in edges}

    def successors(block: Block) -> list[Block]:
        return [blocks[letter] for letter in edges[block.name]]

    costs = {block: float(1 << number) for number, block in enumerate(blocks.values())}
    assert find_longest(order_blocks(blocks["a"], successors), successors, costs) == expected
