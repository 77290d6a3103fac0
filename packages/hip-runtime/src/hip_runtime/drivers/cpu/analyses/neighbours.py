"""Loads and stores of a thread that access neighbours in memory, such as the parts of a complex number or the fields of
a record, wherever the threads' own places are.

Lanes whose places are apart gather or scatter: that is an access for each lane. One of twice the size does for two
neighbours.

The right neighbour of a pixel at a place that was computed, as by ``min(column + 1, width - 1)``, is a neighbour in
memory unless it is at the limit, and if no index is negative, to which Numba adds the extent. Loads that are neighbours
but for that are guessed to be some: whether they are is compared for all lanes when they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from hip_runtime.drivers.cpu.analyses.address_terms import AddressTerms, Guess, take_apart
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.coherent_divisions import REPEATED
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value

_Key = object
"""What the addresses of neighbours have in common."""

_CLAMPS = ("llvm.smin.", "llvm.umin.", "llvm.smax.", "llvm.umax.")


@dataclass(frozen=True)
class Neighbours:
    """Loads, or stores, of elements that follow one another in memory, in this order. Nothing happens between the first
    and the last of them in the block that could tell whether they are made at once: loads with the *earliest* of them,
    stores with the *latest*."""

    members: tuple[Instruction, ...]
    earliest: Instruction
    latest: Instruction
    is_guessed: bool = False
    """Whether the addresses have to be compared."""

    def distance(self, size_of: SizeOf, member: Instruction) -> int:
        """How many bytes the first element is behind that of *member*, which is negative or nothing."""
        return -self.members.index(member) * size_of(member.accessed)


@dataclass(frozen=True)
class _Access:
    instruction: Instruction
    place: int
    offset: int


def find_neighbours(
    block: Block, suits: Callable[[Instruction], bool], most: Callable[[Instruction], int], size_of: SizeOf,
    guess: Guess,
) -> dict[Instruction, Neighbours]:  # fmt: skip
    """The neighbours of each access of *block* that *suits* and has any; of one like the argument, *most* are accessed
    at once. *guess* says what a value probably is: of loads that have no neighbours else."""
    found: dict[Instruction, Neighbours] = {}
    for accesses in _split(block, suits, partial(take_apart, size_of=size_of)):
        found.update(_group(accesses, most, size_of, is_guessed=False))
    rest = [value for value in block.instructions if value.opcode == "load" and suits(value) and value not in found]
    if len(rest) > 1:
        for accesses in _split(block, rest.__contains__, partial(take_apart, size_of=size_of, guess=guess)):
            for value, neighbours in _group(accesses, most, size_of, is_guessed=True):
                if _can_be_compared(block, neighbours):
                    found[value] = neighbours
    return found


def _group(
    accesses: Iterable[_Access], most: Callable[[Instruction], int], size_of: SizeOf, is_guessed: bool
) -> Iterator[tuple[Instruction, Neighbours]]:
    """The neighbours of each of *accesses* that has any."""
    for run in _runs(accesses, size_of):
        for group in _cut(run, most(run[0].instruction)):
            in_order = sorted(group, key=lambda access: access.place)
            members = tuple(access.instruction for access in group)
            neighbours = Neighbours(members, in_order[0].instruction, in_order[-1].instruction, is_guessed)
            yield from ((member, neighbours) for member in members)


def addresses_behind(block: Block, neighbours: Neighbours) -> list[Instruction]:
    """What the addresses of *neighbours* take of the instructions behind the earliest of them, in order."""
    start = block.instructions.index(neighbours.earliest)
    behind = block.instructions[start:]
    needed: set[Value] = {member.address for member in neighbours.members}
    for value in reversed(behind):
        if value in needed:
            needed.update(value.operands)
    return [value for value in behind if value in needed]


def _can_be_compared(block: Block, neighbours: Neighbours) -> bool:
    """Whether all addresses of *neighbours* can be computed before the earliest of them is loaded."""
    return all(
        value.opcode in REPEATED or value.opcode == "getelementptr" or is_arithmetic(value.callee)
        for value in addresses_behind(block, neighbours)
    )


def _split(
    block: Block, suits: Callable[[Instruction], bool], take: Callable[[Value], AddressTerms]
) -> Iterator[list[_Access]]:  # fmt: skip
    """Loads of neighbours between which nothing is written, and stores between which no memory is accessed."""
    loads: dict[_Key, list[_Access]] = {}
    stores: list[_Access] = []
    last: _Key = None
    for place, value in enumerate(block.instructions):
        if value.opcode not in ("load", "store") and not has_effect(value):
            continue
        suited = suits(value)
        address = take(value.address) if suited else None
        key = None if address is None else (address.terms, str(value.accessed))
        access = _Access(value, place, 0 if address is None else address.offset)
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
        size = size_of(access.instruction.accessed)
        apart = access.offset - run[-1].offset if run else size
        if apart < size and access.instruction.opcode == "store":  # of what they share, the last one counts
            return
        if apart == 0:
            continue
        if apart != size:
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


def guess_index(value: Instruction, varies: Callable[[Value], bool]) -> Value | None:
    """What *value* is unless it is held within a limit, or an index is negative; ``None`` if that says nothing. Only
    what *varies* is guessed of: what grows from lane to lane reaches a limit at the end of each row."""
    if value.opcode == "select":
        condition, *arms = value.operands
        is_comparison = isinstance(condition, Instruction) and condition.opcode == "icmp"
        zero = next((arm for arm in arms if signed_number(arm) == 0), None)
        return zero if is_comparison and varies(condition) else None
    if not value.callee.startswith(_CLAMPS):
        return None
    varying = [operand for operand in value.arguments if varies(operand)]
    return varying[0] if len(varying) == 1 else None
