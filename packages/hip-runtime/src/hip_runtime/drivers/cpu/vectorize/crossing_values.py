"""Which values of a kernel are used in other blocks than those that compute them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.errors import UnsupportedError


def find_crossing(
    shapes: VectorShapes, needs: Callable[[Instruction], Iterable[Value]]
) -> tuple[set[Instruction], set[Instruction]]:
    """The values that are used in other blocks, and those that are live out of a masked loop. *needs* tells which
    values an instruction is written with beside its operands."""
    crossing: set[Instruction] = set()
    live_outs: set[Instruction] = set()

    def classify(value: Value, block: Block) -> None:
        if isinstance(value, Instruction) and value.opcode != "alloca" and shapes.homes.get(value) is not block:
            (live_outs if shapes.leaves_masked_loop(value, block) else crossing).add(value)

    for block in shapes.order.blocks:
        for instruction in block.instructions:
            if instruction.opcode != "phi":
                for value in [*instruction.operands, *needs(instruction)]:
                    classify(value, block)
        for target in shapes.successors(block):
            for phi in target.phis:
                classify(incoming_value(phi, block), block)
    return crossing, live_outs


def incoming_value(phi: Instruction, source: Block) -> Value:
    """The value of *phi* for lanes that come from *source*."""
    for value, block in zip(phi.operands, phi.targets, strict=True):
        if block is source:
            return value
    raise UnsupportedError(f"a phi has no value for the block {source.name!r}")
