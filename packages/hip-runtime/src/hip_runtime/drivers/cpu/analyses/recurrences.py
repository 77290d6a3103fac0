"""Loops that wait for results: each iteration needs what the last one computed, which takes longer than the processor
needs for the instructions themselves.

With twice as many lanes there are twice as many instructions to execute meanwhile. One hundred steps of the Lorenz
equations take 0.57 times as long per thread with gangs of 64 threads as with gangs of 32.
"""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.object_code.host_machine import vector_bytes

_PER_CYCLE = 2
"""Instructions on vectors that a processor executes in each cycle."""

_LATENCY = {
    "fadd": 4, "fsub": 4, "fmul": 4, "fdiv": 13, "frem": 40, "mul": 4, "fcmp": 3, "icmp": 3, "fptosi": 4, "fptoui": 4,
    "sitofp": 4, "uitofp": 4, "fpext": 4, "fptrunc": 4, "load": 7, "sdiv": 20, "udiv": 20, "srem": 24, "urem": 24,
}  # fmt: skip
"""Cycles from the operands of an instruction to its result; of others, a cycle (Agner Fog, instruction tables, for
processors with 512-bit vectors)."""

_NUMBERS = ir.IntType | ir.FloatType | ir.DoubleType
_LEAST_BYTES = 4

_MOST_VALUES = 8
"""Values that iterations hand to the next ones: of loops with more, none is looked at."""


def waits_for_results(shapes: VectorShapes, size_of: SizeOf, width: int, rows: int) -> bool:
    """Whether a kernel with *shapes* has an innermost loop that, in gangs of *width* lanes of as many *rows* as run at
    once, waits for results."""
    return any(
        0 < rows * _throughput(loop, shapes, size_of, width) <= latency(loop, shapes)
        for loop in innermost_loops(shapes)
    )


def innermost_loops(shapes: VectorShapes) -> Iterator[frozenset[Block]]:
    """The loops that have no other in them."""
    loops = {inside[-1] for inside in shapes.order.loops.values() if inside}
    outer = {loop for inside in shapes.order.loops.values() for loop in inside[:-1]}
    return (loop for loop in loops if loop not in outer)


def _throughput(loop: frozenset[Block], shapes: VectorShapes, size_of: SizeOf, width: int) -> float:
    """Cycles that the instructions of an iteration take, if none waits."""
    nbytes = sum(
        _bytes_per_lane(value, size_of)
        for block in loop
        for value in block.instructions
        if value.opcode != "phi" and not value.is_terminator and shapes.at_definition(value) is VARYING
    )
    return nbytes * width / vector_bytes() / _PER_CYCLE


def _bytes_per_lane(value: Instruction, size_of: SizeOf) -> int:
    """The size of the largest number that *value* is or is made of."""
    kinds = [value.type, *(operand.type for operand in value.operands)]
    return max((size_of(kind) for kind in kinds if isinstance(kind, _NUMBERS)), default=_LEAST_BYTES)


def latency(loop: frozenset[Block], shapes: VectorShapes) -> float:
    """Cycles that an iteration of *loop* takes at least, as it needs results of the last one."""
    blocks = [block for block in shapes.order.blocks if block in loop]
    carried = [phi for phi in blocks[0].phis if shapes.at_definition(phi) is VARYING]
    if not 0 < len(carried) <= _MOST_VALUES:
        return 0.0
    paths = {phi: _longest_paths(phi, blocks) for phi in carried}
    steps = {
        (one, other): max((paths[one][value] for value in _handed_on(other, loop) if value in paths[one]), default=None)
        for one in carried
        for other in carried
    }
    return _slowest_cycle(carried, {ends: step for ends, step in steps.items() if step is not None})


def _handed_on(phi: Instruction, loop: frozenset[Block]) -> list[Value]:
    """What *phi* is in the next iteration."""
    return [value for value, block in zip(phi.operands, phi.targets, strict=True) if block in loop]


def _longest_paths(phi: Instruction, blocks: list[Block]) -> dict[Value, int]:
    """Cycles from *phi* to each value that depends on it in the same iteration."""
    found: dict[Value, int] = {phi: 0}
    for block in blocks:
        for value in block.instructions:
            needed = [found[operand] for operand in value.operands if operand in found]
            if needed and value not in found:
                found[value] = max(needed) + _LATENCY.get(value.opcode, 1)
    return found


def _slowest_cycle(values: list[Instruction], steps: dict[tuple[Instruction, Instruction], int]) -> float:
    """The greatest mean of *steps* from values back to themselves."""
    worst = 0.0
    for start in values:
        reached = {start: 0}
        for count in range(1, len(values) + 1):
            reached = {
                other: max(reached[one] + steps[one, other] for one in reached if (one, other) in steps)
                for other in values
                if any((one, other) in steps for one in reached)
            }
            worst = max(worst, reached.get(start, 0) / count)
    return worst
