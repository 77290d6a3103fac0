"""Loads of a block that take the elements between each other's, as the colours of a pixel or the numbers of a pair.

Lanes of each such load access every second, third or fourth element. Together they access all elements, or at least
some more of those in between, and read the same vectors if these begin at the same place.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from hip_runtime.drivers.cpu.analyses.address_terms import AddressTerms, take_apart
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Block, Instruction


@dataclass(frozen=True)
class StridedGroup:
    """Loads of elements that are a step apart from lane to lane, counted in elements from the first one that any of
    them accesses: *members* are where those of the first lane are, *member* is that of the load in question. *leader*
    is the first load in the block, *ahead* is its member."""

    leader: Instruction
    ahead: int
    members: tuple[int, ...]
    member: int


class StridedGroups:
    """The groups of *block*."""

    def __init__(self, block: Block, size_of: SizeOf) -> None:
        self._addresses: dict[Instruction, AddressTerms] = {}
        self._alike: defaultdict[object, list[Instruction]] = defaultdict(list)
        for value in block.instructions:
            if value.opcode == "load" and not value.volatile and value.atomic is None:
                address = self._addresses[value] = take_apart(value.operands[0], size_of)
                self._alike[str(value.type), address.terms].append(value)

    def find(self, load: Instruction, nbytes: int, step: int) -> StridedGroup:
        """The group of *load*, whose elements have *nbytes* and are *step* of them apart."""
        own = self._addresses[load]
        places: dict[int, Instruction] = {}
        for other in self._alike[str(load.type), own.terms]:
            distance, rest = divmod(self._addresses[other].offset - own.offset, nbytes)
            if not rest:
                places.setdefault(distance, other)
        begin = -((0 - min(places)) % step)
        members = sorted(place for place in places if begin <= place < begin + step)
        leader = next(other for place, other in places.items() if place in members)
        ahead = next(place for place, other in places.items() if other is leader)
        return StridedGroup(leader, ahead - members[0], tuple(place - members[0] for place in members), -members[0])
