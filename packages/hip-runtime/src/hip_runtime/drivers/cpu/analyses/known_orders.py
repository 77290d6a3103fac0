"""Which of two integers is less, where a branch behind which a block is reached tells: ``if x < width``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.conditions import mirror, read_order, split_condition
from hip_runtime.drivers.cpu.analyses.sources import are_all
from hip_runtime.drivers.cpu.ir.control_flow import ControlFlow
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction, Value

_SUMS = frozenset({"add", "mul", "shl"})


@dataclass(frozen=True)
class KnownOrder:
    """*lesser* is less than *greater*, both with a sign, in *block* and those that are reached through it only."""

    block: Block
    lesser: Value
    greater: Value


class KnownOrders:
    """What branches of *function* tell."""

    def __init__(self, function: Function) -> None:
        self._flow = ControlFlow(function)
        self._known: list[KnownOrder] = []
        for block in self._flow.reachable:
            end = block.terminator
            if end.opcode == "br" and len(block.successors) == 2:
                for target, expected in zip(end.targets, (True, False), strict=True):
                    if self._is_entered_from(block, target):
                        self._known += [KnownOrder(target, *pair) for pair in _find_lesser(end.operands[0], expected)]

    def _is_entered_from(self, block: Block, target: Block) -> bool:
        """Whether *target* is reached from *block* only, but for iterations of a loop that begins with it."""
        flow = self._flow
        return all(source is block or flow.dominates(target, source) for source in flow.predecessors[target])

    def below(self, bound: Value, block: Block) -> Iterator[KnownOrder]:
        """What is known to be less than *bound* in *block*."""
        return (known for known in self._known if known.greater is bound and self.holds(known, block))

    def below_number(self, number: int, block: Block) -> Iterator[KnownOrder]:
        """What is known to be less than *number* in *block*."""
        return (known for known in self._known if signed_number(known.greater) == number and self.holds(known, block))

    def holds(self, known: KnownOrder, block: Block) -> bool:
        """Whether what is *known* holds in *block*."""
        return self._flow.dominates(known.block, block)


def _find_lesser(condition: Value, expected: bool) -> Iterator[tuple[Value, Value]]:
    """Pairs of numbers of which the first is less if *condition* is *expected*."""
    if parts := split_condition(condition, expected):
        for part in parts:
            yield from _find_lesser(part, expected)
    elif isinstance(condition, Instruction) and (predicate := read_order(condition, expected)):
        one, other = condition.operands
        if mirror(predicate) == "slt":
            one, other, predicate = other, one, "slt"
        if predicate == "slt":
            yield one, other


def is_natural(value: Value) -> bool:
    """Whether *value*, an integer, is known not to be negative."""
    return are_all(value, _judge_natural)


def _judge_natural(value: Value) -> bool | list[Value]:
    number = signed_number(value)
    if number is not None:
        return number >= 0
    if not isinstance(value, Instruction):
        return False
    if value.opcode == "zext":
        return True
    if value.opcode == "call":
        assert isinstance(value.type, ir.IntType)
        return bool(value.ranges) and min(value.ranges) >= 0 and max(value.ranges) <= 1 << value.type.width - 1
    return value.operands if value.opcode in _SUMS and "nsw" in value.flags else False
