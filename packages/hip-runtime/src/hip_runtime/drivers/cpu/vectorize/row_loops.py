"""Several iterations at once of loops in which each lane reads a row of its own, see `analyses.row_loops`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.analyses.row_loops import ROW as LENGTH
from hip_runtime.drivers.cpu.analyses.row_loops import RowLoop, find_row_loops
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import ROW, Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, VOID


def read_rows(
    function: Function, shapes: VectorShapes, size_of: SizeOf, width: int, early_exits: Mapping[Block, Block]
) -> bool:  # fmt: skip
    """Have such loops of *function*, which has *shapes* in gangs of *width* lanes, make several iterations at once, as
    long as so many are left, with one load for each lane; whether there were any. What is left over runs as before.

    ::

        begin:   enough left?  --- no ---> block (one iteration) ---> leave
          ^         | yes                    ^   |                      ^
          |         v                        +---+                      |
          +------ rows (several iterations) ----------------------------+
    """
    if width < LENGTH:
        return False
    entered = set(early_exits.values())
    found = [loop for loop in find_row_loops(shapes, size_of) if loop.block not in entered]
    for loop in found:
        _Rows(loop, function).write()
    return bool(found)


class _Rows:
    def __init__(self, loop: RowLoop, function: Function) -> None:
        name = loop.block.name
        self._loop = loop
        self._function = function
        self._begin, self._rows, self._leave = (Block(f"{name}.{part}") for part in ("begin", "rows", "leave"))
        self._current: dict[Value, Value] = {}
        """What stands for the phis of the loop, and what is computed from them, in the iteration that is written."""

    def write(self) -> None:
        """Change the graph."""
        block = self._loop.block
        following = self._enter()
        self._ask()
        last = self._write_iterations(following)
        self._leave_both(last)
        goes_on = block.terminator
        goes_on.targets = [self._leave if target is self._loop.behind else target for target in goes_on.targets]
        self._function.blocks += [self._begin, self._rows, self._leave]

    def _enter(self) -> dict[Instruction, Value]:
        """Lead to `begin` what led to the loop; returns what each phi of the loop is in its next iteration."""
        block = self._loop.block
        for source in self._function.blocks:
            if source is not block and block in source.terminator.targets:
                end = source.terminator
                end.targets = [self._begin if target is block else target for target in end.targets]
        following = {}
        for phi in list(block.phis):
            pairs = list(zip(phi.operands, phi.targets, strict=True))
            following[phi] = next(value for value, source in pairs if source is block)
            outside = [(value, source) for value, source in pairs if source is not block]
            first = replace(
                phi, operands=[value for value, _ in outside], targets=[source for _, source in outside],
                name=f"{phi.name}.begin",
            )  # fmt: skip
            self._begin.instructions.append(first)
            self._current[phi] = first
            phi.operands, phi.targets = [first, following[phi]], [self._begin, block]
        return following

    def _ask(self) -> None:
        """End `begin` with the question whether there are enough iterations left."""
        loop, begin = self._loop, self._begin
        counter = self._current[loop.counter]
        kind = loop.counter.type
        ends = (loop.bound, counter) if loop.grows else (counter, loop.bound)
        left = begin.append("sub", kind, *ends)
        least = LENGTH if loop.compares_next else LENGTH - 1
        enough: Value = begin.append("icmp", I1, left, constant(kind, least), predicate="uge")
        if loop.predicate != "ne":  # there is an iteration in any case, perhaps the last
            before = begin.append("icmp", I1, counter, loop.bound, predicate=loop.predicate)
            enough = begin.append("and", I1, before, enough)
        begin.append("br", VOID, enough, targets=[self._rows, loop.block])

    def _write_iterations(self, following: dict[Instruction, Value]) -> dict[Value, Value]:
        """Write `rows`; what stands for each value of the loop at its end."""
        block = self._loop.block
        firsts = {phi: self._current[phi] for phi in following}
        elements: dict[Instruction, list[Instruction]] = {}
        for number in range(LENGTH):
            for value in block.instructions:
                if value.opcode == "phi" or value.is_terminator:
                    continue
                if value in self._loop.loads:
                    if number == 0:
                        elements[value] = self._load(value)
                    self._current[value] = elements[value][number]
                    continue
                operands = [self._current.get(operand, operand) for operand in value.operands]
                copy = replace(value, operands=operands, name=f"{value.name}.{number}")
                self._rows.instructions.append(copy)
                self._current[value] = copy
            last = dict(self._current)
            self._current.update({phi: last.get(value, value) for phi, value in following.items()})
        for phi, first in firsts.items():
            assert isinstance(first, Instruction)
            first.operands, first.targets = [*first.operands, self._current[phi]], [*first.targets, self._rows]
        end = block.terminator
        targets = [self._begin if target is block else self._leave for target in end.targets]
        self._rows.instructions.append(replace(end, operands=[last[end.operands[0]]], targets=targets))
        return last

    def _load(self, load: Instruction) -> list[Instruction]:
        """The elements that *load* loads in these iterations; their addresses are copied anew, where they are used."""
        kind = ir.LiteralStructType([load.type] * LENGTH)
        pointer = self._current.get(load.operands[0], load.operands[0])
        row = replace(load, type=kind, opcode=ROW, operands=[pointer], ranges=(), name=f"{load.name}.row")
        elements = [
            Instruction(load.type, "extractvalue", [row], f"{load.name}.{number}", indices=(number,))
            for number in range(LENGTH)
        ]
        self._rows.instructions += [row, *elements]
        return elements

    def _leave_both(self, last: dict[Value, Value]) -> None:
        """Write `leave`, where the two ways to the end meet."""
        block, behind = self._loop.block, self._loop.behind
        used = self._used_behind()
        phis = {
            value: Instruction(value.type, "phi", [value, last[value]], f"{value.name}.left", [block, self._rows])
            for value in block.instructions
            if value in used
        }
        self._leave.instructions += [*phis.values(), Instruction(VOID, "br", [], targets=[behind])]
        for other in self._function.blocks:
            if other is block:
                continue
            for user in other.instructions:
                if user.opcode != "phi" or other is not behind:
                    user.operands = [phis.get(value, value) for value in user.operands]  # type: ignore[call-overload]
                    continue
                pairs = list(zip(user.operands, user.targets, strict=True))
                user.operands = [phis.get(value, value) for value, _ in pairs]  # type: ignore[call-overload]
                user.targets = [self._leave if source is block else source for _, source in pairs]

    def _used_behind(self) -> set[Value]:
        """The values of the loop that are used elsewhere."""
        block = self._loop.block
        return {
            value for other in self._function.blocks if other is not block for user in other.instructions
            for value in user.operands
        } & set(block.instructions)  # fmt: skip
