"""Which lanes of a gang can run a block: behind ``if tx == 0``, the first one at most.

Gangs begin at multiples of their width, so the low bits of an index along them are the number of the lane, and at most
one lane has the number that the index is compared with, whichever gang it is.
"""

from __future__ import annotations

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.conditions import is_difference, split_condition
from hip_runtime.drivers.cpu.analyses.lane_constants import find_lane_constants
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value


class RunningLanes:
    """Of gangs of *width* lanes, which may be whole waves. Sets of lanes are numbers, a bit for each lane."""

    def __init__(self, shapes: VectorShapes, width: int, are_waves: bool) -> None:
        self._shapes = shapes
        self._width = width
        self._are_waves = are_waves
        self._index = spmd.thread_idx("x") if shapes.lanes_consecutive else ""
        self.all = (1 << width) - 1
        self._running = self._find_running()

    def of(self, block: Block) -> int:
        """The lanes that can run *block*."""
        return self._running.get(block, self.all)

    def only(self, block: Block) -> int | None:
        """The lane that is the only one that can run *block*, which is masked, if there is such."""
        lanes = self.of(block)
        is_one = lanes and not lanes & (lanes - 1)
        return lanes.bit_length() - 1 if is_one and block in self._shapes.masked else None

    def taking(self, block: Block, target: Block) -> int:
        """The lanes that can go from *block* to *target*."""
        end = block.terminator
        if end.opcode != "br" or len(end.targets) != 2 or end.targets[0] is end.targets[1]:
            return self.all
        return self.satisfying(end.operands[0], target is end.targets[0])

    def satisfying(self, condition: Value, expected: bool) -> int:
        """The lanes in which *condition* can be *expected*."""
        if parts := split_condition(condition, expected):
            first, second = (self.satisfying(part, expected) for part in parts)
            return first & second
        numbers = find_lane_constants(condition, self._width, self._index) if self._are_waves else None
        if numbers is None:
            return self._meeting(condition, expected)
        return sum(1 << lane for lane, number in enumerate(numbers) if bool(number & 1) is expected)

    def _meeting(self, condition: Value, expected: bool) -> int:
        """The lanes in which *condition* can be *expected*, by what an index has in its low bits if that makes it equal
        to a constant."""
        if not isinstance(condition, Instruction) or condition.opcode != "icmp":
            return self.all
        compared, other = condition.operands
        number = signed_number(other)
        if number is None or not is_difference(condition, not expected):
            return self.all
        index, added = _split_sum(compared)
        shape = self._shapes.of(index, self._shapes.homes[condition])
        bits = self._shapes.reaches_over(index, shape)
        if not shape or bits is None:
            return self.all
        low = (1 << bits) - 1
        return sum(1 << lane for lane in range(self._width) if not (lane * shape + added - number) & low)

    def _find_running(self) -> dict[Block, int]:
        """All lanes run the first block; another, those that some edge to it lets through."""
        shapes = self._shapes
        running = dict.fromkeys(shapes.order.blocks, 0)
        running[shapes.order.blocks[0]] = self.all
        changed = True
        while changed:
            changed = False
            for block in shapes.order.blocks:
                for target in shapes.successors(block):
                    lanes = running[target] | running[block] & self.taking(block, target)
                    changed |= lanes != running[target]
                    running[target] = lanes
        return running


def _split_sum(value: Value) -> tuple[Value, int]:
    """What *value* is the sum of, the other part a constant, as far as the bits go that the first of these has."""
    added = 0
    while isinstance(value, Instruction) and value.opcode in ("add", "zext", "sext", "freeze"):
        if value.opcode == "add":
            number = signed_number(value.operands[1])
            if number is None:
                break
            added += number
        value = value.operands[0]
    return value, added
