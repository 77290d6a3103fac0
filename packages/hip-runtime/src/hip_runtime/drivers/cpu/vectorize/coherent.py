"""Coherent branches: code after a branch that all lanes usually take together is versioned, without and with a mask.

At a branch on bounds, the first and the last lane tell whether all are within bounds, which they nearly always are. So
the code after it is written twice: for gangs that take the branch as a whole, which access memory without masks, and
for the others. A grid-stride loop runs without masks until the first lane leaves it; the remaining lanes continue under
a mask. Loads under a mask that was only just computed take several times as long.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from hip_runtime.drivers.cpu.analyses.cfg import find_following
from hip_runtime.drivers.cpu.analyses.effects import needs_active_lane
from hip_runtime.drivers.cpu.analyses.monotonic_conditions import is_decided_by_ends
from hip_runtime.drivers.cpu.analyses.users import find_users
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.clone import Copies, copy_blocks
from hip_runtime.drivers.cpu.ir.model import AGREE, Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1

_MAX_INSTRUCTIONS = 200
"""The most instructions that are duplicated in a function."""


class CoherentBranches:
    """Versions the coherent branches of *function*, one for each call of `version_next`.

    *early_exits* are branches that all lanes are known to take.
    """

    def __init__(self, function: Function, early_exits: dict[Block, Block]) -> None:
        self._function = function
        self._early_exits = early_exits
        self._done: set[Block] = set()
        self._budget = _MAX_INSTRUCTIONS
        self.copied: dict[Instruction, Instruction] = {}
        """Maps each copied instruction to its original."""
        self.apart: set[Block] = set()
        """The blocks of gangs whose lanes do not agree."""

    def version_next(self, shapes: VectorShapes) -> bool:
        """Version one more path or loop, if there is one; *shapes* are those of the function as it is now."""
        for block in shapes.order.blocks:
            if block not in shapes.divergent or block in self._done or block.terminator.opcode != "br":
                continue
            self._done.add(block)
            loops = shapes.order.loops[block]
            if (
                self._version_loop(block, loops[-1], shapes)
                if loops and loops[-1] <= shapes.masked
                else (block not in shapes.masked and self._version_path(block, shapes))
            ):
                return True
        return False

    def _afford(self, blocks: Iterable[Block]) -> bool:
        values = [value for block in blocks for value in block.instructions]
        count = len(values)
        if count > self._budget or any(value.opcode == "alloca" for value in values):
            return False
        self._budget -= count
        return True

    def _copy(self, blocks: Collection[Block]) -> Copies:
        """Copies of *blocks*, which become those of gangs whose lanes do not agree."""
        copies = copy_blocks(list(blocks))
        self.apart.update(blocks)
        self._function.blocks += copies.blocks.values()
        for original, copy in copies.values.items():
            self.copied[copy] = original
        return copies

    # a loop

    def _version_loop(self, latch: Block, loop: frozenset[Block], shapes: VectorShapes) -> bool:
        """Version a loop that lanes leave at *latch* only, once they are out of bounds."""
        terminator = latch.terminator
        header = shapes.order.header_of(loop)
        leaving = [(block, target) for block in loop for target in shapes.successors(block) if target not in loop]
        entering = [block for block in shapes.order.blocks if block not in loop and header in shapes.successors(block)]
        if len(leaving) != 1 or leaving[0][0] is not latch or header not in terminator.targets:
            return False
        if not all(self._is_converged(block, shapes) for block in entering):
            return False
        stays = terminator.targets[0] is header
        if not is_decided_by_ends(shapes, terminator.operands[0], latch, stays) or not self._afford(loop):
            return False
        copies = self._copy(loop)
        exit_block = leaving[0][1]
        diverging = self._write_divergence(copies.blocks[latch], terminator, f"{latch.name}.divergence")
        _branch_if_coherent(copies.blocks[latch], copies.blocks[header], diverging, stays)
        for block in entering:
            block.terminator.targets = [copies.blocks.get(target, target) for target in block.terminator.targets]
            if block in self._early_exits:
                self._early_exits[block] = copies.blocks[header]
        for phi in header.phis:
            incoming = dict(zip(phi.targets, phi.operands, strict=True))
            copy = copies.values[phi]
            pairs = [(value, source) for source, value in incoming.items() if source in loop]
            _set_incoming(phi, [*pairs, (copies.of(incoming[latch]), diverging)])
            outside = [(value, source) for source, value in incoming.items() if source not in loop]
            _set_incoming(copy, [*outside, *((copies.of(value), copies.blocks[source]) for value, source in pairs)])
        for phi in exit_block.phis:
            incoming = dict(zip(phi.targets, phi.operands, strict=True))
            _add_incoming(phi, copies.of(incoming[latch]), diverging)
        self._join(loop, latch, exit_block, diverging, copies)
        return True

    def _is_converged(self, block: Block, shapes: VectorShapes) -> bool:
        return block not in shapes.masked and (block not in shapes.divergent or block in self._early_exits)

    def _join(self, loop: frozenset[Block], latch: Block, exit_block: Block, diverging: Block, copies: Copies) -> None:
        """Replace uses after *loop* by phis of what the loop and its copy computed."""
        joined: dict[Instruction, Instruction] = {}
        new = set(copies.values.values())
        for block in self._function.blocks:
            if block in loop:
                continue
            for user in block.instructions:
                if user in new:
                    continue
                for number, value in enumerate(user.operands):
                    if not isinstance(value, Instruction) or value not in copies.values:
                        continue
                    if user.opcode == "phi" and user.targets[number] in loop:
                        continue
                    phi = joined.get(value)
                    if phi is None:
                        phi = joined[value] = Instruction(value.type, "phi", [], f"{value.name}.joined")
                    user.operands[number] = phi
        again = [  # of a loop that begins there, and leaves the values as they are
            block for block in self._function.blocks
            if exit_block in block.successors and block not in (latch, diverging)
        ]  # fmt: skip
        for value, phi in joined.items():
            _set_incoming(phi, [(value, latch), (copies.of(value), diverging), *((phi, block) for block in again)])
            exit_block.instructions.insert(0, phi)

    def _write_divergence(self, block: Block, terminator: Instruction, name: str) -> Block:
        """A block that ends in a branch to the targets of *terminator* by the condition of *block*. What is only
        computed for that is computed there once more, so that the masks are where they are used: lanes that agree are
        told by the first and the last one."""
        copies: dict[Value, Instruction] = {}
        for value in _find_condition(block.terminator, block.instructions[:-1], self._function):
            operands = [copies.get(operand, operand) for operand in value.operands]
            copies[value] = replace(value, operands=operands)
            self.copied[copies[value]] = value
        condition = block.terminator.operands[0]
        branch = Instruction(
            terminator.type, "br", [copies.get(condition, condition)], targets=list(terminator.targets),
            location=terminator.location,
        )  # fmt: skip
        diverging = Block(name, [*copies.values(), branch])
        self._function.blocks.append(diverging)
        self._done.add(diverging)
        return diverging

    # a path outside of masked loops

    def _version_path(self, block: Block, shapes: VectorShapes) -> bool:
        """Version the path from *block* to its reconvergence point that lanes within bounds take."""
        terminator = block.terminator
        reconvergence = shapes.reconvergence(block)
        if reconvergence is None:
            return False
        for target in shapes.successors(block):
            path = _find_path(target, reconvergence, shapes)
            expected = target is terminator.targets[0]
            if (
                target is not reconvergence
                and block not in path
                and any(_pays_off(member, shapes) for member in path)
                and _is_entered_from(path, target, block, shapes)
                and is_decided_by_ends(shapes, terminator.operands[0], block, expected)
                and self._afford(path)
            ):
                self._write_path(block, target, path, reconvergence, expected)
                return True
        return False

    def _write_path(self, block: Block, target: Block, path: list[Block], reconvergence: Block, expected: bool) -> None:
        terminator = block.terminator
        copies = self._copy(path)
        diverging = self._write_divergence(block, terminator, f"{block.name}.divergence")
        for following in terminator.targets:
            for phi in following.phis:
                phi.targets = [diverging if source is block else source for source in phi.targets]
        for phi in reconvergence.phis:
            for value, source in list(zip(phi.operands, phi.targets, strict=True)):
                if source in copies.blocks:
                    _add_incoming(phi, copies.of(value), copies.blocks[source])
        _branch_if_coherent(block, copies.blocks[target], diverging, expected)


def sink_conditions(function: Function, shapes: VectorShapes) -> bool:
    """Compute in the blocks of *function* that ask whether all lanes agree what is asked for and used for nothing else:
    the first and the last lane tell of numbers that are compared there. Returns whether anything moved."""
    is_changed = False
    for block in function.blocks:
        agreed = block.instructions[-2] if len(block.instructions) > 1 else block.terminator
        asked = agreed.operands[0] if agreed.opcode == AGREE else None
        source = shapes.homes.get(asked) if isinstance(asked, Instruction) else None
        if source is None or source is block or shapes.order.loops[source] != shapes.order.loops[block]:
            continue
        moved = _find_condition(agreed, source.instructions, function)
        source.instructions = [value for value in source.instructions if value not in moved]
        block.instructions[-2:-2] = moved
        is_changed |= bool(moved)
    return is_changed


def _find_condition(user: Instruction, values: list[Instruction], function: Function) -> list[Instruction]:
    """What computes, among *values*, the condition of *user*, in order, and is used for nothing else."""
    users = find_users(function.instructions())
    found: set[Instruction] = {user}
    for value in reversed(values):
        if value.type == I1 and value.opcode in _LOGIC and found.issuperset(users.get(value, [])):
            found.add(value)
    return [value for value in values if value in found]


_LOGIC = frozenset({"icmp", "fcmp", "and", "or", "xor", "select", "freeze"})


def _branch_if_coherent(block: Block, coherent: Block, diverging: Block, expected: bool) -> None:
    """Make *block* branch to *coherent* if its condition is *expected* in all lanes, else to *diverging*."""
    terminator = block.instructions.pop()
    coherent_condition = Instruction(
        I1, AGREE, [terminator.operands[0]], f"{block.name}.agreed", predicate="true" if expected else "false"
    )
    block.instructions += [
        coherent_condition,
        Instruction(terminator.type, "br", [coherent_condition], targets=[coherent, diverging]),
    ]


def _pays_off(block: Block, shapes: VectorShapes) -> bool:
    """Whether *block* is worth a version without a mask: it accesses memory, or is in a loop."""
    return bool(shapes.order.loops[block]) or any(map(needs_active_lane, block.instructions))


def _find_path(start: Block, reconvergence: Block, shapes: VectorShapes) -> list[Block]:
    """The blocks that lanes can reach from *start* before they reconverge."""
    return list(dict.fromkeys([start, *find_following(start, shapes.successors, reconvergence)]))


def _is_entered_from(path: list[Block], start: Block, block: Block, shapes: VectorShapes) -> bool:
    """Whether *path* is only entered from *block* at *start*, and no block of it returns."""
    inside = set(path)
    for source in shapes.order.blocks:
        for target in shapes.successors(source):
            if target in inside and source not in inside and (source is not block or target is not start):
                return False
    return all(shapes.successors(member) for member in path)


def _set_incoming(phi: Instruction, paths: list[tuple[Value, Block]]) -> None:
    phi.operands, phi.targets = [value for value, _ in paths], [source for _, source in paths]


def _add_incoming(phi: Instruction, value: Value, source: Block) -> None:
    phi.operands, phi.targets = [*phi.operands, value], [*phi.targets, source]
