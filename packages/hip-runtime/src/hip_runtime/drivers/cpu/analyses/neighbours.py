"""Loads and stores of a thread that access neighbours in memory, such as the parts of a complex number or the fields of
a record, wherever the threads' own places are.

Lanes whose places are apart gather or scatter: that is an access for each lane. One of twice the size does for two
neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I64

_Key = object
"""What the addresses of neighbours have in common."""

MOST = 4
"""The most neighbours that are accessed at once."""


@dataclass(frozen=True)
class Neighbours:
    """Loads, or stores, of elements that follow one another in memory, in this order. Nothing happens between the first
    and the last of them in the block that could tell whether they are made at once: loads with the *earliest* of them,
    stores with the *latest*."""

    members: tuple[Instruction, ...]
    earliest: Instruction
    latest: Instruction

    def distance(self, size_of: SizeOf, member: Instruction) -> int:
        """How many bytes the first element is behind that of *member*, which is negative or nothing."""
        return -self.members.index(member) * size_of(accessed_type(member))


@dataclass(frozen=True)
class _Access:
    instruction: Instruction
    place: int
    offset: int


def find_neighbours(
    block: Block, suits: Callable[[Instruction], bool], most: Callable[[Instruction], int], size_of: SizeOf
) -> dict[Instruction, Neighbours]:
    """The neighbours of each access of *block* that *suits* and has any; of one like the argument, *most* are accessed
    at once."""
    found: dict[Instruction, Neighbours] = {}
    for accesses in _split(block, suits, size_of):
        for run in _runs(accesses, size_of):
            for group in _cut(run, most(run[0].instruction)):
                in_order = sorted(group, key=lambda access: access.place)
                members = tuple(access.instruction for access in group)
                neighbours = Neighbours(members, in_order[0].instruction, in_order[-1].instruction)
                found.update(dict.fromkeys(members, neighbours))
    return found


def accessed_type(access: Instruction) -> ir.Type:
    """The type of what a load or a store accesses."""
    return access.type if access.opcode == "load" else access.operands[0].type


def _split(block: Block, suits: Callable[[Instruction], bool], size_of: SizeOf) -> Iterator[list[_Access]]:
    """Loads of neighbours between which nothing is written, and stores between which no memory is accessed."""
    loads: dict[_Key, list[_Access]] = {}
    stores: list[_Access] = []
    last: _Key = None
    for place, value in enumerate(block.instructions):
        if value.opcode not in ("load", "store") and not has_effect(value):
            continue
        suited = suits(value)
        common, offset = _address(value.operands[-1], size_of) if suited else (None, 0)
        key = (common, str(accessed_type(value))) if suited else None
        access = _Access(value, place, offset)
        if value.opcode == "load" and not has_effect(value):
            yield stores
            stores, last = [], None
            if suited:
                loads.setdefault(key, []).append(access)
            continue
        yield from loads.values()
        loads = {}
        if key != last or not suited:
            yield stores
            stores = []
        last = key
        if suited:
            stores.append(access)
    yield from loads.values()
    yield stores


def _runs(accesses: Iterable[_Access], size_of: SizeOf) -> Iterator[list[_Access]]:
    """Those of *accesses* to places that follow one another, each once."""
    run: list[_Access] = []
    for access in sorted(accesses, key=lambda access: access.offset):
        apart = access.offset - run[-1].offset if run else 0
        if run and apart == 0:
            if access.instruction.opcode == "store":  # of which the last one counts
                return
            continue
        if run and apart != size_of(accessed_type(access.instruction)):
            yield run
            run = []
        run.append(access)
    if run:
        yield run


def _cut(run: list[_Access], most: int) -> Iterator[list[_Access]]:
    """Parts of *run* of *most* accesses, and of less by half, but no single ones."""
    while most > 1:
        while len(run) >= most:
            yield run[:most]
            run = run[most:]
        most //= 2


def _address(pointer: Value, size_of: SizeOf) -> tuple[_Key, int]:
    """What *pointer* has in common with the addresses of neighbours, and how many bytes it is behind that."""
    if not isinstance(pointer, Instruction) or pointer.opcode != "getelementptr":
        return pointer, 0
    common, offset = _address(pointer.operands[0], size_of)
    kind = pointer.source_type
    assert kind is not None
    first, *rest = pointer.operands[1:]
    if rest:
        member = signed_number(rest[0])
        elements: Sequence[ir.Type] = getattr(kind, "elements", ())
        is_alike = len(rest) == 1 and len(set(map(str, elements))) == 1
        if signed_number(first) != 0 or member is None or not is_alike:
            return pointer, 0
        return common, offset + member * size_of(elements[0])
    index, number = _index(first)
    offset += number * size_of(kind)
    return (common if index is None else (common, size_of(kind), index)), offset


def _index(value: Value) -> tuple[Value | None, int]:
    """What an index has in common with those of neighbours, and how much more it is than that."""
    number = signed_number(value)
    if number is not None:
        return None, number
    if isinstance(value, Instruction) and value.opcode == "add" and value.type == I64:
        added = signed_number(value.operands[1])
        if added is not None:
            common, more = _index(value.operands[0])
            return common, more + added
    return value, 0
