"""Reconvergence keys: they decide which lanes of a wave go first when its lanes wait at different wave operations.

Lanes that diverged reconverge where their paths join. In loops, the position in the program does not say who has to
wait: a lane that has begun the next iteration has to wait for one that is still in the last. So lanes count the
iterations of loops in which they can diverge. The *key* of a lane that waits at an operation is, from the outermost
enclosing loop inwards, the position of the loop and the iteration, and last the position of the operation. The lanes
with the lowest key go first, and only lanes with equal keys take part together.
"""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.cfg import Order
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Instruction, Value

_I32 = ir.IntType(32)


def insert_reconvergence_keys(order: Order, branches: set[Block]) -> bool:
    """Count the iterations of each loop with a wave operation and one of the divergent *branches* in it, and give each
    operation its key, as further operands of its ``synchronise``. Whether there is such a loop."""
    waiting = [block for block in order.blocks if _waits_for_wave(block)]
    counters: dict[frozenset[Block], Instruction] = {}
    for block in waiting:
        for loop in order.loops[block]:
            if loop not in counters and not loop.isdisjoint(branches):
                counters[loop] = _insert_counter(order, loop)
    if not counters:
        return False
    position = {block: number for number, block in enumerate(order.blocks)}
    for block in [block for block in order.blocks if _waits_in_wave(block)]:
        key: list[Value] = []
        for loop in order.loops[block]:
            if loop in counters:
                key += [_number(min(position[member] for member in loop)), counters[loop]]
        block.terminator.operands += [*key, _number(position[block])]
    return True


def _waits_for_wave(block: Block) -> bool:
    return block.terminator.opcode == "synchronise" and block.synchronising.callee in spmd.WAVE_WIDE


def _waits_in_wave(block: Block) -> bool:
    """Whether a lane waits there for its wave, or yields in a spin loop, while the wave waits for it."""
    yields = block.terminator.opcode == "synchronise" and block.synchronising.callee == intrinsics.YIELD
    return yields or _waits_for_wave(block)


def _number(number: int) -> Constant:
    return Constant(_I32, str(number), number)


def _insert_counter(order: Order, loop: frozenset[Block]) -> Instruction:
    """The iteration number of *loop*, from 0."""
    header = order.header_of(loop)
    counter = Instruction(_I32, "phi", [], "iteration")
    for source in order.blocks:
        if header in source.successors:
            value: Value = _number(0)
            if source in loop:
                value = Instruction(_I32, "add", [counter, _number(1)], "iteration.next")
                source.instructions.insert(len(source.instructions) - 1, value)
            counter.operands.append(value)
            counter.targets.append(source)
    header.instructions.insert(0, counter)
    return counter
