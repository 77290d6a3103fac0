"""Replaces a ``phi`` of values that are computed alike by that computation.

LLVM computes what one path has, such as the last row ``height - 1`` of a bounds check, on the other paths too, and
joins these with a ``phi`` (``.pre-phi``), so that it need not be computed again where they join. For the threads of a
block that is no gain: where they diverge, all that is known of the ``phi`` is that it may differ from thread to thread,
so it is kept for each thread at a barrier, and what is compared with it is compared lane by lane.
"""

from __future__ import annotations

from dataclasses import replace

from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.ir.keywords import BINARY, CASTS
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Function, Instruction, Value
from hip_runtime.drivers.cpu.passes.remove_unused import remove_unused

_COMPUTES = (BINARY - DIVISIONS) | CASTS | {"fneg", "icmp", "fcmp", "select", "getelementptr"}
"""Opcodes of what depends on the operands alone, and can be computed anywhere."""

_MOST_INSTRUCTIONS = 8
"""The most instructions that take the place of a ``phi``."""


def merge_phis(function: Function) -> bool:
    """Replace such phis of *function*, and remove what nothing uses then; whether there were any."""
    replaced: dict[Value, Instruction] = {}
    while found := [made for block in function.blocks for made in _merge_in(block)]:
        replaced.update(found)
        _use_instead(function, dict(found))
    if replaced:
        remove_unused(function)
    return bool(replaced)


def _merge_in(block: Block) -> list[tuple[Value, Instruction]]:
    """Replace the phis of *block* whose values are computed alike; each with what replaces it."""
    found: list[tuple[Value, Instruction]] = []
    added: list[Instruction] = []
    for phi in list(block.phis):
        merged = _Merged()
        made = merged.merge(phi.operands)
        if isinstance(made, Instruction) and merged.made:
            block.instructions.remove(phi)
            found.append((phi, made))
            added += merged.made
    place = sum(1 for _ in block.phis)
    block.instructions[place:place] = added
    return found


class _Merged:
    """One computation in place of several that are alike."""

    def __init__(self) -> None:
        self.made: list[Instruction] = []
        self._known: dict[tuple[Value, ...], Value | None] = {}

    def merge(self, values: list[Value]) -> Value | None:
        """The value that all *values* are, where the last of the instructions `made` is; ``None`` if they differ."""
        first, key = values[0], tuple(values)
        if all(_is_same(first, value) for value in values):
            return first
        if key not in self._known:  # what is used twice is computed once
            fits = len(self._known) < _MOST_INSTRUCTIONS
            self._known[key] = None  # it counts while what it needs is looked at
            self._known[key] = self._compute(values) if fits else None
        return self._known[key]

    def _compute(self, values: list[Value]) -> Instruction | None:
        """One computation that does what those of all *values* do; ``None`` if they differ, or it is too long."""
        alike = [value for value in values if isinstance(value, Instruction)]
        if len(alike) < len(values) or not all(_computes_alike(alike[0], value) for value in alike):
            return None
        operands = [self.merge(list(at_place)) for at_place in zip(*(value.operands for value in alike), strict=True)]
        if any(operand is None for operand in operands):
            return None
        flags = tuple(flag for flag in alike[0].flags if all(flag in value.flags for value in alike))
        kept = [operand for operand in operands if operand is not None]
        self.made.append(replace(alike[0], operands=kept, flags=flags, name=f"{alike[0].name}.merged"))
        return self.made[-1]


def _is_same(one: Value, other: Value) -> bool:
    if isinstance(one, Constant) and isinstance(other, Constant):
        return one.type == other.type and one.text == other.text
    return one is other


def _computes_alike(one: Instruction, other: Instruction) -> bool:
    """Whether both compute the same of operands that are the same."""
    return (
        one.opcode in _COMPUTES
        and (one.opcode, one.type, one.predicate, one.source_type, len(one.operands))
        == (other.opcode, other.type, other.predicate, other.source_type, len(other.operands))
        and all(a.type == b.type for a, b in zip(one.operands, other.operands, strict=True))
    )


def _use_instead(function: Function, replaced: dict[Value, Instruction]) -> None:
    for user in function.instructions():
        user.operands = [_last(replaced, value) for value in user.operands]


def _last(replaced: dict[Value, Instruction], value: Value) -> Value:
    while value in replaced:
        value = replaced[value]
    return value
