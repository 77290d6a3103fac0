"""Spin loops: loops that a thread leaves once another thread has written to memory.

On a GPU, other waves run while one spins, so what a lane waits for gets written. A CPU thread that runs the threads of
a block one after another, or as lanes until none is left in the loop, would spin forever. `insert_yields` therefore
calls `intrinsics.YIELD` at the end of each iteration, which suspends a thread until the others of its block had a
chance to run.

A loop spins if a *poll* decides whether a thread leaves it: an access to an address that is the same in each iteration,
and which changes nothing when it is repeated. Exchanging what was just read for a value computed from it is not a poll:
that fails only if another thread made progress.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.cfg import block_successors, immediate_postdominators, order_function
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Function, Instruction, Value

_IDEMPOTENT = frozenset("xchg and or max min umax umin fmax fmin".split())
"""Atomic updates that change nothing when they are repeated."""

_IDEMPOTENT_WITH_ZERO = frozenset("add sub xor fadd fsub".split())
"""Those that change nothing if the operand is 0."""

_ATOMIC_UPDATES = frozenset({"atomicrmw", "cmpxchg"})


@dataclass(frozen=True)
class SpinLoop:
    """The loop with *header* and *latches*, and the access that decides whether it ends."""

    header: Block
    latches: list[Block]
    poll: Instruction


def find_spin_loops(function: Function) -> list[SpinLoop]:
    """The spin loops of *function*."""
    if not any(_may_poll(value) for value in function.instructions()):
        return []
    order = order_function(function)
    search = _PollSearch(order.blocks)
    found = []
    for loop, header in order.headers().items():
        poll = search.find_poll(loop, header)
        if poll is not None:
            latches = [block for block in order.blocks if block in loop and header in block.successors]
            found.append(SpinLoop(header, latches, poll))
    return found


class _PollSearch:
    """Looks for polls in the loops of one function with the ordered *blocks*."""

    def __init__(self, blocks: list[Block]) -> None:
        self._homes = {value: block for block in blocks for value in block.instructions}
        self._postdominators = immediate_postdominators(blocks, block_successors)
        self._stores: dict[Value, list[Instruction]] = defaultdict(list)
        """Stores to local variables that are in memory, as in unoptimised code."""
        for value in self._homes:
            if value.opcode == "store" and _is_variable(value.operands[1]):
                self._stores[value.operands[1]].append(value)
        self._controllers: dict[Block, list[Block]] = {}

    def find_poll(self, loop: frozenset[Block], header: Block) -> Instruction | None:
        """The poll that decides whether a thread leaves *loop*, ``None`` if it does not spin."""
        if self._has_barrier_in_every_iteration(loop, header):
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
            if self._is_poll(value, loop, header, fenced):
                return value
            if value.opcode == "phi":
                waiting += self._phi_conditions(value, loop)
            elif value.opcode == "load" and value.operands[0] in self._stores:
                for store in self._stores[value.operands[0]]:
                    waiting += [store.operands[0], *self._conditions(self._homes[store], loop)]
            if value.opcode not in _ATOMIC_UPDATES:
                waiting += value.operands
        return None

    def _has_barrier_in_every_iteration(self, loop: frozenset[Block], header: Block) -> bool:
        """Whether every iteration passes a barrier, so that the threads of a block wait for each other anyway."""
        waiting, seen = [header], set()
        while waiting:
            block = waiting.pop()
            if any(value.callee in _BARRIERS for value in block.instructions):
                continue
            for target in block.successors:
                if target is header:
                    return False
                if target in loop and target not in seen:
                    seen.add(target)
                    waiting.append(target)
        return True

    # control dependence

    def _conditions(self, block: Block, loop: frozenset[Block]) -> list[Value]:
        """The conditions in *loop* that decide whether a thread reaches *block*, and where it goes from there."""
        found: dict[Block, None] = {}
        waiting = [block]
        while waiting:
            controlled = waiting.pop()
            if controlled not in found:
                found[controlled] = None
                waiting += [branch for branch in self._controlled_by(controlled) if branch in loop]
        return [controlled.terminator.operands[0] for controlled in found if len(controlled.successors) > 1]

    def _controlled_by(self, block: Block) -> list[Block]:
        """The branches that *block* is control dependent on."""
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

    def _phi_conditions(self, phi: Instruction, loop: frozenset[Block]) -> Iterable[Value]:
        """The conditions in *loop* that decide which of several values *phi* takes."""
        paths = [(value, source) for value, source in zip(phi.operands, phi.targets, strict=True) if source in loop]
        if len({value for value, _ in paths}) > 1:
            for _, source in paths:
                yield from self._conditions(source, loop)

    # polls

    def _is_poll(self, value: Instruction, loop: frozenset[Block], header: Block, fenced: bool) -> bool:
        """Whether *value* is a poll; a plain load is one only in a loop with a fence."""
        if value.opcode == "load":
            rereads = (value.volatile or value.atomic is not None or fenced) and not _is_variable(value.operands[0])
            return rereads and self._repeats(value.operands, loop, header)
        if value.opcode == "atomicrmw":
            operand = value.operands[1]
            idempotent = value.operation in _IDEMPOTENT or (
                value.operation in _IDEMPOTENT_WITH_ZERO and _is_zero(operand)
            )
            return idempotent and self._repeats(value.operands, loop, header)
        if value.opcode == "cmpxchg":  # the new value does not matter while it fails
            return self._repeats(value.operands[:2], loop, header)
        return False

    def _repeats(self, values: Iterable[Value], loop: frozenset[Block], header: Block) -> bool:
        """Whether *values* are the same in each iteration of *loop*, or, in an inner loop, the same sequence."""
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
            unknown = value.opcode in ("load", *_ATOMIC_UPDATES) or (
                value.opcode == "call" and not intrinsics.is_pure(value.callee)
            )
            if carried or unknown:
                return False
            waiting += value.operands
        return True


_BARRIERS = spmd.BLOCK_WIDE | {spmd.GRID_BARRIER}


def _is_variable(place: Value) -> bool:
    """Whether *place* is a local variable of the thread."""
    return isinstance(place, Instruction) and place.opcode == "alloca"


def _may_poll(value: Instruction) -> bool:
    """Whether *value* is one of the instructions without which a function has no spin loop."""
    return value.opcode in _ATOMIC_UPDATES or _is_fence(value) or value.volatile or value.atomic is not None


def _is_zero(value: Value) -> bool:
    return isinstance(value, Constant) and (value.number == 0 or value.text.removeprefix("-") == "0.000000e+00")


def _is_fence(value: Instruction) -> bool:
    return value.opcode == "fence" or value.callee == spmd.WAVE_BARRIER
