"""Which lanes of a value of a wave anything depends on.

Sums over a wave by shuffles, ``total += shfl_down(total, step)`` with half as many lanes at each step, are only used by
the first lane. What the other lanes compute from the second step on is thrown away, which neither LLVM nor a GPU
notices, and which is most of the work on a processor whose vectors are shorter than a wave.
"""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.lane_constants import find_lane_constants
from hip_runtime.drivers.cpu.analyses.running_lanes import RunningLanes
from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.keywords import BINARY, CASTS
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value

_LANEWISE = (BINARY | CASTS | {"fneg", "icmp", "fcmp", "select"}) - DIVISIONS


def is_lanewise(value: Instruction) -> bool:
    """Whether *value* is one number, computed in each lane from the same lane of its operands, and computing it does no
    harm in a lane where these have no value."""
    if isinstance(value.type, ir.LiteralStructType):
        return False
    if value.opcode == "call":
        return is_arithmetic(value.callee)
    return value.opcode in _LANEWISE


class DemandedLanes:
    """Of gangs that are waves of *width* lanes, all of which start. Sets of lanes are numbers, a bit for each lane."""

    def __init__(self, shapes: VectorShapes, width: int) -> None:
        self._shapes = shapes
        self._width = width
        self.running = RunningLanes(shapes, width, are_waves=True)
        """Which lanes can run a block."""
        self._demanded: dict[Instruction, int] = {}
        self._waiting: list[Instruction] = []
        self._find_demanded()

    def count(self, value: Instruction) -> int:
        """How many lanes of *value* have to be computed, from the first on: a power of two."""
        last = self._demanded.get(value, self.running.all).bit_length()
        return min(1 << max(last - 1, 0).bit_length(), self._width)

    def sources(self, value: Instruction) -> list[int] | None:
        """Which lane each lane of *value* has its number from, if it is a shuffle in which all lanes take part whose
        sources are constants."""
        if not value.callee.startswith(spmd.SHUFFLE) or self._shapes.homes[value] in self._shapes.masked:
            return None
        numbers = find_lane_constants(value.arguments[2], self._width)
        if numbers is None:
            return None
        return [number if number < self._width else lane for lane, number in enumerate(numbers)]

    # lanes that matter

    def _find_demanded(self) -> None:
        for block in self._shapes.order.blocks:
            for instruction in block.instructions:
                self._start(instruction, block)
        while self._waiting:
            user = self._waiting.pop()
            self._pass_on(user, self._demanded[user])

    def _start(self, instruction: Instruction, block: Block) -> None:
        """Demand what *instruction* needs by itself."""
        if instruction.opcode == "store":
            value, pointer = instruction.operands
            self._demand(value, self.running.of(block))
            self._demand(pointer, self.running.all)
        elif instruction.opcode == "atomicrmw":
            pointer, value = instruction.operands
            self._demand(value, self.running.of(block))
            self._demand(pointer, self.running.all)
        elif instruction.opcode != "phi" and not is_lanewise(instruction) and self.sources(instruction) is None:
            for operand in instruction.operands:
                self._demand(operand, self.running.all)

    def _pass_on(self, user: Instruction, lanes: int) -> None:
        """Demand what the *lanes* of *user* are computed from."""
        if user.opcode == "phi":
            block = self._shapes.homes[user]
            for operand, before in zip(user.operands, user.targets, strict=True):
                self._demand(operand, lanes & self.running.of(before) & self.running.taking(before, block))
        elif user.opcode == "select":
            condition, taken, otherwise = user.operands
            self._demand(condition, lanes)
            self._demand(taken, lanes & self.running.satisfying(condition, True))
            self._demand(otherwise, lanes & self.running.satisfying(condition, False))
        elif is_lanewise(user):
            for operand in user.operands:
                self._demand(operand, lanes)
        elif (sources := self.sources(user)) is not None:
            moved = sum({1 << source for lane, source in enumerate(sources) if lanes >> lane & 1})
            self._demand(user.arguments[1], moved)

    def _demand(self, value: Value, lanes: int) -> None:
        if not isinstance(value, Instruction):
            return
        known = self._demanded.get(value, 0)
        if lanes & ~known:
            self._demanded[value] = known | lanes
            self._waiting.append(value)
