"""Instructions that take no time in a thread which runs alone, but in a lane of a gang: what is computed before loops,
and what LLVM makes part of other instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hip_runtime.drivers.cpu.analyses.address_terms import take_apart
from hip_runtime.drivers.cpu.analyses.effects import needs_active_lane
from hip_runtime.drivers.cpu.analyses.loop_starts import find_decided
from hip_runtime.drivers.cpu.analyses.neighbours import find_neighbours
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Instruction, Value

_SHORTEST_RUN, _WIDEST_RUN = 4, 64
"""Neighbours in memory to which a thread stores constants, from which on it stores several at once; and the most that
are looked at together."""

_STORED = 32
"""Bytes of constants that a thread stores at once."""


def find_free(shapes: VectorShapes, size_of: SizeOf) -> frozenset[Instruction]:
    """Such instructions of a kernel with *shapes*."""
    return find_decided(shapes) | _find_hoisted(shapes) | _find_merged(shapes, size_of)


def _find_hoisted(shapes: VectorShapes) -> frozenset[Instruction]:
    """What is the same for all threads of a row and in no loop of theirs, so that it is computed before these."""
    return frozenset(
        value for value, block in shapes.homes.items()
        if not shapes.order.loops[block] and shapes.at_definition(value) == 0
        and not (needs_active_lane(value) or value.is_terminator)
    )  # fmt: skip


def _find_merged(shapes: VectorShapes, size_of: SizeOf) -> frozenset[Instruction]:
    """Addresses at a constant distance from one that the thread has, and stores of constants to neighbours."""
    found: set[Instruction] = set()
    for block in shapes.order.blocks:
        found.update(_near_addresses(block, shapes, size_of))
        groups = find_neighbours(
            block, lambda access: access.opcode == "store" and not access.volatile and not access.atomic,
            lambda _: _WIDEST_RUN, size_of, lambda _: None,
        )  # fmt: skip
        for store, group in groups.items():
            place = group.members.index(store)
            is_constant = isinstance(store.operands[0], Constant)
            nbytes = place * size_of(store.accessed)
            if is_constant and len(group.members) >= _SHORTEST_RUN and nbytes % _STORED:
                found.add(store)
    return frozenset(found)


def _near_addresses(block: Block, shapes: VectorShapes, size_of: SizeOf) -> Iterator[Instruction]:
    """Computations of addresses in *block* that differ from one before by a number."""
    known: set[object] = set()
    for value in block.instructions:
        if value.opcode in ("load", "store"):
            terms = take_apart(value.address, size_of).terms
            if terms in known:
                yield from _own_addresses(value, shapes.uses)
            known.add(terms)


def _own_addresses(access: Instruction, uses: Counter[Value]) -> Iterator[Instruction]:
    """The computations of the address of *access* that are for that alone."""
    address = access.address
    while isinstance(address, Instruction) and address.opcode == "getelementptr" and uses[address] == 1:
        yield address
        address = address.operands[0]
