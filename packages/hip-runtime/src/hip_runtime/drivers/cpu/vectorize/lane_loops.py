"""A loop as a function of its own, for a thread that goes on with it alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.clone import copy_blocks
from hip_runtime.drivers.cpu.ir.model import Argument, Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I32, PTR, VOID
from hip_runtime.drivers.cpu.vectorize.crossing_values import incoming_value


@dataclass
class LaneLoop:
    """*function* runs the loop from the beginning of an iteration on. Its arguments, behind the *passed* ones of the
    kernel, are the values of *phis*, those of the header, and of *inputs*, and addresses: for the number of the exit
    that the thread takes, for what *joins* are there, and for what *outputs* are. *copied* maps its instructions to
    those of the loop."""

    function: Function
    passed: int
    header: Block
    phis: list[Instruction]
    inputs: list[Value]
    exits: list[tuple[Block, Block]]
    joins: list[Instruction]
    outputs: list[Instruction]
    copied: dict[Instruction, Instruction]


def find_exits(loop: frozenset[Block], shapes: VectorShapes) -> list[tuple[Block, Block]]:
    """The branches out of *loop*: from which block, and to which."""
    inside = [block for block in shapes.order.blocks if block in loop]
    return [(block, target) for block in inside for target in shapes.successors(block) if target not in loop]


def find_outputs(loop: frozenset[Block], shapes: VectorShapes, live_outs: set[Instruction]) -> list[Instruction]:
    """Which of the values that are *live_outs* of masked loops are those of *loop*."""
    used = set(_used_behind(loop, shapes))
    inside = (value for block in shapes.order.blocks if block in loop for value in block.instructions)
    return [value for value in inside if value in live_outs and value in used]


def _used_behind(loop: frozenset[Block], shapes: VectorShapes) -> Iterator[Value]:
    for block in shapes.order.blocks:
        if block in loop:
            continue
        for user in block.instructions:
            for number, value in enumerate(user.operands):
                if user.opcode != "phi" or user.targets[number] not in loop:
                    yield value


def extract_loop(
    kernel: Function, loop: frozenset[Block], shapes: VectorShapes, outputs: Sequence[Instruction]
) -> LaneLoop:
    """The function for *loop* of *kernel*, which stores *outputs* where they are known."""
    blocks = [block for block in shapes.order.blocks if block in loop]
    header, exits = blocks[0], find_exits(loop, shapes)
    phis = list(header.phis)
    joins = list(dict.fromkeys(phi for _, target in exits for phi in target.phis))
    inputs = _find_inputs(loop, shapes, exits)
    first = len(kernel.arguments)
    values = [Argument(value.type, first + number, "input") for number, value in enumerate([*phis, *inputs])]
    first += len(values)
    places = [Argument(PTR, first + number, "place") for number in range(1 + len(joins) + len(outputs))]
    known = dict(zip(inputs, values[len(phis) :], strict=True))
    copies = copy_blocks(blocks)

    def inside(value: Value) -> Value:
        return known.get(value) or copies.of(value)

    start = Block("remaining", [Instruction(VOID, "br", [], targets=[copies.blocks[header]])])
    for copy in copies.blocks.values():
        for value in copy.instructions:
            value.operands = [known.get(operand, operand) for operand in value.operands]
    for phi, initial in zip(phis, values, strict=False):
        again = [(value, block) for value, block in zip(phi.operands, phi.targets, strict=True) if block in loop]
        copy = copies.values[phi]
        copy.operands = [initial, *(inside(value) for value, _ in again)]
        copy.targets = [start, *(copies.blocks[block] for _, block in again)]
    ends = []
    for number, (source, target) in enumerate(exits):
        end = Block("remaining.exit")
        end.append("store", VOID, constant(I32, number), places[0], align=4)
        for phi, place in zip(joins, places[1:], strict=False):
            if phi in target.phis:
                end.append("store", VOID, inside(incoming_value(phi, source)), place)
        for value, place in zip(outputs, places[1 + len(joins) :], strict=True):
            if _is_known(shapes.homes[value], source, header, loop, shapes):
                end.append("store", VOID, copies.of(value), place)
        end.append("ret", VOID)
        terminator = copies.blocks[source].terminator
        terminator.targets = [end if block is target else block for block in terminator.targets]
        ends.append(end)
    function = Function(
        kernel.name, [*kernel.arguments, *values, *places], [start, *copies.blocks.values(), *ends]
    )  # fmt: skip
    copied = {copy: original for original, copy in copies.values.items()}
    return LaneLoop(function, len(kernel.arguments), header, phis, inputs, exits, joins, list(outputs), copied)


def _find_inputs(loop: frozenset[Block], shapes: VectorShapes, exits: Sequence[tuple[Block, Block]]) -> list[Value]:
    """The values that were computed before *loop* and are used in it, or by phis behind it."""
    used: list[Value] = [value for block in loop for user in block.instructions for value in user.operands]
    used += [incoming_value(phi, source) for source, target in exits for phi in target.phis]
    return [
        value for value in dict.fromkeys(used)
        if isinstance(value, Instruction) and shapes.homes.get(value) not in loop
    ]  # fmt: skip


def _is_known(home: Block, source: Block, header: Block, loop: frozenset[Block], shapes: VectorShapes) -> bool:
    """Whether each way from *header* to the end of *source* leads through *home*."""
    waiting, seen = [header], {header}
    while waiting:
        block = waiting.pop()
        if block is home:
            continue
        if block is source:
            return False
        for target in shapes.successors(block):
            if target in loop and target not in seen:
                seen.add(target)
                waiting.append(target)
    return True
