"""Spin loops: loops that a thread leaves when another one has written to memory.

The lanes of a wave go round such a loop together, and other waves run beside it, so what a lane waits for is written in
the meantime. A processor that runs one thread of a block after another, or lanes side by side until none is left in the
loop, would wait for ever. `insert_yields` puts a call of `intrinsics.YIELD` at the end of each round,
where a thread waits until the others of its block had their turn.

Which loops these are follows from what decides whether a thread leaves one: a *poll*, an access to a place that is the
same in each round, which changes nothing there when it is done again. An attempt to exchange what was just read for
something computed from it is no poll: it fails only where another thread went on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.cfg import immediate_postdominators, order_blocks
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Function, Instruction, Value

_SAME_AGAIN = frozenset("xchg and or max min umax umin fmax fmin".split())
"""Atomic modifications that change nothing when they are done twice."""

_ADDING = frozenset("add sub xor fadd fsub".split())
"""Those that change nothing with an operand of 0."""

_MODIFYING = frozenset({"atomicrmw", "cmpxchg"})


@dataclass(frozen=True)
class SpinLoop:
    """A loop that begins at *header* and goes back to it from *latches*, and an access that decides whether it ends."""

    header: Block
    latches: list[Block]
    poll: Instruction


def find_spin_loops(function: Function) -> list[SpinLoop]:
    """The spin loops of *function*."""
    if not any(_may_poll(value) for value in function.instructions()):
        return []
    order = order_blocks(function.blocks[0], _successors)
    position = {block: number for number, block in enumerate(order.blocks)}
    search = _Search(order.blocks)
    found = []
    for loop in dict.fromkeys(loop for block in order.blocks for loop in order.loops[block]):
        header = min(loop, key=position.__getitem__)
        poll = search.find_poll(loop, header)
        if poll is not None:
            latches = [block for block in order.blocks if block in loop and header in block.successors]
            found.append(SpinLoop(header, latches, poll))
    return found


def _successors(block: Block) -> list[Block]:
    return block.successors


class _Search:
    """Looks for polls in the loops of one function, whose *blocks* are in order."""

    def __init__(self, blocks: list[Block]) -> None:
        self._homes = {value: block for block in blocks for value in block.instructions}
        self._postdominators = immediate_postdominators(blocks, _successors)
        self._stores: dict[Value, list[Instruction]] = defaultdict(list)
        """Stores to variables that are in memory, as in code for debuggers."""
        for value in self._homes:
            if value.opcode == "store" and _is_variable(value.operands[1]):
                self._stores[value.operands[1]].append(value)
        self._controllers: dict[Block, list[Block]] = {}

    def find_poll(self, loop: frozenset[Block], header: Block) -> Instruction | None:
        """The poll that decides whether a thread leaves *loop*, ``None`` where it does not spin."""
        if self._always_meets(loop, header):
            return None
        fenced = any(_is_fence(value) for block in loop for value in block.instructions)
        leaving = [block for block in loop if any(target not in loop for target in block.successors)]
        waiting = [value for block in leaving for value in self._conditions(block, loop)]
        seen: set[Value] = set()
        while waiting:
            value = waiting.pop()
            if value in seen or not isinstance(value, Instruction) or self._homes.get(value) not in loop:
                continue
            seen.add(value)
            if self._looks_again(value, loop, header, fenced):
                return value
            if value.opcode == "phi":
                waiting += self._choices(value, loop)
            elif value.opcode == "load" and value.operands[0] in self._stores:
                for store in self._stores[value.operands[0]]:
                    waiting += [store.operands[0], *self._conditions(self._homes[store], loop)]
            if value.opcode not in _MODIFYING:
                waiting += value.operands
        return None

    def _always_meets(self, loop: frozenset[Block], header: Block) -> bool:
        """Whether the threads of a block wait for one another in each round anyway."""
        waiting, seen = [header], set()
        while waiting:
            block = waiting.pop()
            if any(value.callee in _MEETING for value in block.instructions):
                continue
            for target in block.successors:
                if target is header:
                    return False
                if target in loop and target not in seen:
                    seen.add(target)
                    waiting.append(target)
        return True

    # what decides

    def _conditions(self, block: Block, loop: frozenset[Block]) -> list[Value]:
        """What decides in *loop* whether a thread comes to *block*, and where it goes from there."""
        found: dict[Block, None] = {}
        waiting = [block]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found[one] = None
                waiting += [branch for branch in self._controlled_by(one) if branch in loop]
        return [one.terminator.operands[0] for one in found if len(one.successors) > 1]

    def _controlled_by(self, block: Block) -> list[Block]:
        """The branches of which one way leads to *block* for certain, and another may not."""
        if not self._controllers:
            for branch in self._postdominators:
                self._controllers.setdefault(branch, [])
                behind = self._postdominators[branch]
                for target in branch.successors if len(branch.successors) > 1 else ():
                    found: Block | None = target
                    while found is not None and found is not behind:
                        self._controllers.setdefault(found, []).append(branch)
                        found = self._postdominators[found]
        return self._controllers[block]

    def _choices(self, phi: Instruction, loop: frozenset[Block]) -> Iterable[Value]:
        """What decides which of several values *phi* is given in *loop*."""
        paths = [(value, source) for value, source in zip(phi.operands, phi.targets, strict=True) if source in loop]
        if len({value for value, _ in paths}) > 1:
            for _, source in paths:
                yield from self._conditions(source, loop)

    # polls

    def _looks_again(self, value: Instruction, loop: frozenset[Block], header: Block, fenced: bool) -> bool:
        """Whether *value* is a poll; a plain load is one only behind a fence."""
        if value.opcode == "load":
            again = (value.volatile or value.atomic is not None or fenced) and not _is_variable(value.operands[0])
            return again and self._recurs(value.operands, loop, header)
        if value.opcode == "atomicrmw":
            operand = value.operands[1]
            same = value.operation in _SAME_AGAIN or (value.operation in _ADDING and _is_zero(operand))
            return same and self._recurs(value.operands, loop, header)
        if value.opcode == "cmpxchg":  # the new value does not matter while it fails
            return self._recurs(value.operands[:2], loop, header)
        return False

    def _recurs(self, values: Iterable[Value], loop: frozenset[Block], header: Block) -> bool:
        """Whether *values* are the same in each round of *loop*, or go through the same in each, in a loop inside."""
        waiting = list(values)
        seen: set[Value] = set()
        while waiting:
            value = waiting.pop()
            if value in seen or not isinstance(value, Instruction) or self._homes.get(value) not in loop:
                continue
            seen.add(value)
            if value.opcode == "load" and _is_variable(value.operands[0]):
                waiting += [store.operands[0] for store in self._stores[value.operands[0]]]
                continue
            carried = value.opcode == "phi" and self._homes[value] is header
            unknown = value.opcode in ("load", *_MODIFYING) or (
                value.opcode == "call" and not intrinsics.is_pure(value.callee)
            )
            if carried or unknown:
                return False
            waiting += value.operands
        return True


_MEETING = spmd.BLOCK_WIDE | {spmd.GRID_BARRIER}


def _is_variable(place: Value) -> bool:
    """Whether *place* is one variable of the thread."""
    return isinstance(place, Instruction) and place.opcode == "alloca"


def _may_poll(value: Instruction) -> bool:
    """Whether there is no spin loop in a function without an instruction like *value*."""
    return value.opcode in _MODIFYING or _is_fence(value) or value.volatile or value.atomic is not None


def _is_zero(value: Value) -> bool:
    return isinstance(value, Constant) and (value.number == 0 or value.text.removeprefix("-") == "0.000000e+00")


def _is_fence(value: Instruction) -> bool:
    return value.opcode == "fence" or value.callee == spmd.WAVE_BARRIER
