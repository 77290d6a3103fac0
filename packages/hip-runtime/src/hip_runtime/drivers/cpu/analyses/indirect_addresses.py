"""Addresses that are computed from a number that each lane loads, as in ``x[index[i]]``.

Numbers that lanes load from a row of memory, one after another, are as quickly loaded for each lane as taken out of a
vector of addresses. Python counts a negative index from the end, so Numba adds the extent to it: a ``select`` for each
lane, which an address does without if no lane's index is negative.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.stride_speculation import is_tested_in, match_index_select
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value

_FREE = frozenset({"sext", "zext", "getelementptr"})
"""Steps that are a part of the loads before and after them."""

_ARITHMETIC = frozenset({"add", "sub", "shl", "lshr", "and", "or", "xor"})
"""But no multiplication: a processor does one at a time, but several of a vector."""

_MOST_ARITHMETIC = 2
"""For each lane: more is better done for vectors, from which addresses are taken."""


@dataclass
class IndirectAddress:
    """An address that differs between lanes by the number that the load *index* gives each of them."""

    index: Instruction
    signed: list[Value] = field(default_factory=list)
    """What must not be negative in any lane."""
    chosen: dict[Instruction, Value] = field(default_factory=dict)
    """What a ``select`` is if that is so."""


def find_indirect_address(load: Instruction, block: Block, shapes: VectorShapes) -> IndirectAddress | None:
    """The address of *load*, which is in *block*, as such: if what it is computed from can as well be loaded where
    *load* is, as nothing in between writes memory."""
    found = _Search(block, shapes).run(load.operands[0])
    if found is None:
        return None
    instructions = block.instructions
    between = instructions[instructions.index(found.index) : instructions.index(load)]
    return None if any(map(has_effect, between)) else found


class _Search:
    def __init__(self, block: Block, shapes: VectorShapes) -> None:
        self._block = block
        self._shapes = shapes
        self._indices: dict[Instruction, None] = {}
        self._signed: dict[Value, None] = {}
        self._chosen: dict[Instruction, Value] = {}
        self._arithmetic = 0

    def run(self, pointer: Value) -> IndirectAddress | None:
        """*pointer* as such an address."""
        if not self._follow(pointer) or len(self._indices) != 1:
            return None
        (index,) = self._indices
        return IndirectAddress(index, list(self._signed), self._chosen)

    def _follow(self, value: Value) -> bool:
        """Whether *value* is computed in a few steps from what a lane loads."""
        shapes = self._shapes
        if shapes.of(value, self._block) is not VARYING:
            return True
        if not isinstance(value, Instruction) or shapes.homes[value] is not self._block:
            return False
        if value.opcode == "load":
            self._indices[value] = None
            return shapes.of(value.operands[0], self._block) is not VARYING
        if value.opcode == "select":
            return self._follow_select(value)
        if value.opcode in _ARITHMETIC:
            self._arithmetic += 1
        elif value.opcode not in _FREE:
            return False
        return self._arithmetic <= _MOST_ARITHMETIC and all(map(self._follow, value.operands))

    def _follow_select(self, select: Instruction) -> bool:
        matched = match_index_select(select) if is_tested_in(self._block, select, self._shapes) else None
        if matched is None or matched[2] != 0:
            return False
        number, chosen, _ = matched
        self._signed[number] = None
        self._chosen[select] = chosen
        return self._follow(chosen)
