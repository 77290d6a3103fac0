"""A loop as a function of its own, for a thread that goes on with it alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.analyses.loops_left_late import find_exits
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.clone import copy_blocks
from hip_runtime.drivers.cpu.ir.model import Argument, Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I32, PTR, VOID
from hip_runtime.drivers.cpu.vectorize.crossing_values import incoming_value


@dataclass
class LaneLoop:
    """*function* runs the loop from the beginning of an iteration on.

    Its arguments, behind those of the kernel, are the values of *phis*, which are those of the header, and of *inputs*,
    and addresses: for the number of the exit that the thread takes, for what *joins* are there, and for what *outputs*
    are."""

    function: Function
    header: Block
    phis: list[Instruction]
    inputs: list[Instruction]
    exits: list[tuple[Block, Block]]
    joins: list[Instruction]
    outputs: list[Instruction]


def extract_loop(
    kernel: Function, loop: frozenset[Block], shapes: VectorShapes, outputs: Sequence[Instruction]
) -> LaneLoop:
    """The function for *loop* of *kernel*, which stores *outputs*."""
    return _Extraction(kernel, loop, shapes, outputs).make()


class _Extraction:
    def __init__(
        self, kernel: Function, loop: frozenset[Block], shapes: VectorShapes, outputs: Sequence[Instruction]
    ) -> None:
        self._kernel = kernel
        self._loop = loop
        self._blocks = [block for block in shapes.order.blocks if block in loop]
        self._exits = find_exits(loop, shapes)
        self._phis = list(self._blocks[0].phis)
        self._joins = list(dict.fromkeys(phi for _, target in self._exits for phi in target.phis))
        self._inputs = _find_inputs(self._blocks, shapes, self._exits)
        self._outputs = list(outputs)
        self._copies = copy_blocks(self._blocks)
        number = itertools.count(len(kernel.arguments))
        self._initial = [Argument(phi.type, next(number), "initial") for phi in self._phis]
        self._known: dict[Value, Argument] = {
            value: Argument(value.type, next(number), "input") for value in self._inputs
        }
        self._exit_place = Argument(PTR, next(number), "exit")
        self._places = {value: Argument(PTR, next(number), "place") for value in [*self._joins, *self._outputs]}

    def make(self) -> LaneLoop:
        """The loop as a function of its own."""
        for block in self._copies.blocks.values():
            for value in block.instructions:
                value.operands = [self._known.get(operand, operand) for operand in value.operands]
        start = self._enter()
        ends = [self._leave(number, *leaving) for number, leaving in enumerate(self._exits)]
        arguments = [
            *self._kernel.arguments, *self._initial, *self._known.values(), self._exit_place, *self._places.values()
        ]  # fmt: skip
        function = Function(self._kernel.name, arguments, [start, *self._copies.blocks.values(), *ends])
        return LaneLoop(function, self._blocks[0], self._phis, self._inputs, self._exits, self._joins, self._outputs)

    def _enter(self) -> Block:
        """The block that begins the first iteration."""
        start = Block("remaining")
        start.append("br", VOID, targets=[self._copies.blocks[self._blocks[0]]])
        for phi, initial in zip(self._phis, self._initial, strict=True):
            copy = self._copies.values[phi]
            again = [pair for pair in zip(phi.operands, phi.targets, strict=True) if pair[1] in self._loop]
            copy.operands = [initial, *(self._inside(value) for value, _ in again)]
            copy.targets = [start, *(self._copies.blocks[block] for _, block in again)]
        return start

    def _leave(self, number: int, source: Block, target: Block) -> Block:
        """The block behind exit *number*. Values that are not known there are stored, too: nothing uses them then."""
        end = Block("remaining.exit")
        end.append("store", VOID, constant(I32, number), self._exit_place, align=I32.width // 8)
        for phi in target.phis:
            end.append("store", VOID, self._inside(incoming_value(phi, source)), self._places[phi])
        for value in self._outputs:
            end.append("store", VOID, self._copies.of(value), self._places[value])
        end.append("ret", VOID)
        terminator = self._copies.blocks[source].terminator
        terminator.targets = [end if block is target else block for block in terminator.targets]
        return end

    def _inside(self, value: Value) -> Value:
        """What stands for *value* in the function."""
        return self._known.get(value) or self._copies.of(value)


def _find_inputs(
    loop: Sequence[Block], shapes: VectorShapes, exits: Sequence[tuple[Block, Block]]
) -> list[Instruction]:
    """The values that were computed before *loop* and are used in it, or by phis behind it."""
    used: list[Value] = [value for block in loop for user in block.instructions for value in user.operands]
    used += [incoming_value(phi, source) for source, target in exits for phi in target.phis]
    return [
        value for value in dict.fromkeys(used)
        if isinstance(value, Instruction) and shapes.homes.get(value) not in loop
    ]  # fmt: skip
