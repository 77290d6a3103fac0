"""Gangs that reach over the end of a row end there: those of their lanes that are in it run under a mask, with one
quotient.

What follows a coherent division (`coherent_values`) is written once more, for the first lanes of a gang, which are
in one row: ``measure`` tells how many lanes that row has, and ``part`` runs these. The next gang begins with the next
thread, and so with a row. Without that, all lanes would divide, and gather and scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.cfg import order_blocks
from hip_runtime.drivers.cpu.analyses.effects import TELLS_LANES, has_effect
from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.clone import Copies, copy_blocks
from hip_runtime.drivers.cpu.ir.model import FIRST, Argument, Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I32, PTR, VOID
from hip_runtime.drivers.cpu.vectorize.vector_builder import size_in_memory

_MOST_INSTRUCTIONS = 150
"""The most instructions that are written once more for parts of gangs."""

_MOST_PARTS = 4
"""Rows have at least one in so many of a gang's lanes; gangs over more rows divide by lanes."""


@dataclass
class RowGuard:
    """The branch of *block* on whether divisions are coherent, to *coherent* or else to *apart*. They are in the first
    lanes, as many as each of *rooms*, if the other *conditions* hold. *divisors* are the lengths of rows."""

    block: Block
    coherent: Block
    apart: Block
    conditions: Sequence[Value]
    rooms: Sequence[Value]
    divisors: Sequence[Value]


@dataclass
class RowSplit:
    """*measure* stores the number of lanes that *part* may run at once to its last argument but one, 0 if it must not
    run, and how many lanes of a gang a row has to its last one.

    *copied* maps the instructions of *part* to those that they are copies of.
    """

    measure: Function
    part: Function
    copied: dict[Instruction, Instruction]


def split_rows(
    function: Function, guards: Sequence[RowGuard], width: int, early_exits: dict[Block, Block],
    analyse: Callable[[Function], VectorShapes], *, exits: bool = False,
) -> RowSplit | None:  # fmt: skip
    """The functions for parts of gangs of *width* by *guards*, of which each is in what is coherent behind the one
    before, as a row is in a plane; ``None`` if something happens before the last, if what a lane does depends on its
    place in the gang, or if lanes that are in one row gather or scatter, too, which takes as long for each part as for
    all of them. *analyse* finds the shapes of a part.

    A gang that is to end with its row takes a new early exit then, which *early_exits* gets; if it *exits*, so does
    every gang that is not in one row.
    """
    if any(value.opcode == "alloca" or value.callee in TELLS_LANES for value in function.instructions()):
        return None
    coherent = {guard.block: [guard.coherent] for guard in guards}
    before = _reach(function, {**coherent, guards[-1].block: []})
    blocks = _reach(function, coherent)
    if any(has_effect(value) for block in before for value in block.instructions):
        return None
    if sum(len(block.instructions) for block in blocks) > _MOST_INSTRUCTIONS:
        return None
    holds = [_require_rows(guard, width) for guard in guards]
    split = _make_split(function, guards, holds, (before, blocks), width)
    shapes = analyse(split.part)
    if _gathers(shapes) or not all(map(_knows_first, (shapes, analyse(split.measure)))):
        return None
    rows, never = (Block(name, [Instruction(VOID, "ret", [])]) for name in ("rows", "never"))
    function.blocks += [rows, *([never] if exits else [])]
    for guard, hold in zip(guards, holds, strict=True):
        apart = never if exits else guard.apart
        condition = constant(I1, 1) if exits else hold
        step = Block(f"{guard.block.name}.split", [Instruction(VOID, "br", [condition], targets=[rows, apart])])
        function.blocks.append(step)
        guard.block.terminator.targets[1] = step
        for phi in guard.apart.phis:
            phi.targets = [step if source is guard.block else source for source in phi.targets]
        early_exits[step] = apart
    return split


def _gathers(shapes: VectorShapes) -> bool:
    """Whether any access is neither contiguous nor to the same place in all lanes."""
    return any(
        shapes.of(value.address, block) not in (0, size_in_memory(value.accessed))
        for block in shapes.order.blocks
        for value in block.instructions
        if value.opcode in ("load", "store")
    )


def _knows_first(shapes: VectorShapes) -> bool:
    """Whether what is asked of the first lane, which may be inactive here, follows from its place: under a mask fewer
    sums are known not to wrap."""
    return all(
        shapes.of(value.operands[0], block) is not VARYING
        for block in shapes.order.blocks
        for value in block.instructions
        if value.opcode == FIRST
    )


def _require_rows(guard: RowGuard, width: int) -> Value:
    """Compute, at the end of the guard's block, whether its other conditions hold and rows are long enough."""
    block = guard.block
    end = block.instructions.pop()
    holds: Value = constant(I1, 1)
    for condition in guard.conditions:
        holds = block.append("select", I1, holds, condition, constant(I1, 0))
    for divisor in guard.divisors:
        assert isinstance(divisor.type, ir.IntType)
        least = constant(divisor.type, max(width // _MOST_PARTS, 1))
        long = block.append("icmp", I1, divisor, least, predicate="uge")
        holds = block.append("select", I1, holds, long, constant(I1, 0))
    holds = block.append("freeze", I1, holds)
    block.instructions.append(end)
    return holds


def _make_split(
    function: Function, guards: Sequence[RowGuard], holds: Sequence[Value], parts: tuple[list[Block], list[Block]],
    width: int,
) -> RowSplit:  # fmt: skip
    before, blocks = parts
    places = [Argument(PTR, len(function.arguments) + number, name) for number, name in enumerate(("room", "row"))]
    copies = copy_blocks(before)
    _go_on(copies, guards[:-1])
    end = copies.blocks[guards[-1].block]
    end.instructions.pop()
    room = _least(end, [copies.of(value) for guard in guards for value in guard.rooms], width)
    row = _least(end, [copies.of(value) for guard in guards for value in guard.divisors], width)
    for hold in holds:
        room = end.append("select", I32, copies.of(hold), room, constant(I32, 0))
    for value, place in zip((room, row), places, strict=True):
        end.append("store", VOID, value, place, align=4)
    end.append("ret", VOID)
    measure = Function(function.name, [*function.arguments, *places], [copies.blocks[block] for block in before])
    copies = copy_blocks(blocks)
    _go_on(copies, guards)
    part = Function(function.name, [*function.arguments], [copies.blocks[block] for block in blocks])
    _drop_phi_sources(part)
    return RowSplit(measure, part, {copy: original for original, copy in copies.values.items()})


def _go_on(copies: Copies, guards: Sequence[RowGuard]) -> None:
    """Have the *copies* of what ends in one of *guards* go on with what is coherent."""
    for guard in guards:
        end = copies.blocks[guard.block]
        end.instructions[-1] = replace(end.terminator, operands=[], targets=[copies.blocks[guard.coherent]])


def _reach(function: Function, following: Mapping[Block, list[Block]]) -> list[Block]:
    """The blocks that are reached from the start of *function* if some have other blocks *following*."""
    return order_blocks(function.blocks[0], lambda block: following.get(block, block.successors)).blocks


def _drop_phi_sources(function: Function) -> None:
    """Leave out of phis what comes from blocks that are not reached any more."""
    inside = set(function.blocks)
    for block in function.blocks:
        for phi in block.phis:
            kept = [pair for pair in zip(phi.operands, phi.targets, strict=True) if pair[1] in inside]
            phi.operands, phi.targets = [value for value, _ in kept], [source for _, source in kept]


def _least(block: Block, numbers: list[Value], width: int) -> Value:
    """Compute the least of *numbers* and *width* at the end of *block*."""
    least: Value = constant(I32, width)
    for number in numbers:
        assert isinstance(number.type, ir.IntType)
        most = constant(number.type, width)
        is_more = block.append("icmp", I1, number, most, predicate="uge")
        value: Value = block.append("select", number.type, is_more, most, number)
        if number.type.width != I32.width:
            value = block.append("trunc" if number.type.width > I32.width else "zext", I32, value)
        least = block.append("select", I32, block.append("icmp", I1, value, least, predicate="ult"), value, least)
    return block.append("freeze", I32, least)
