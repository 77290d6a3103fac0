"""Drops barriers that nobody needs if gangs run in ascending order, so that two regions become one.

A step in shared memory reads neighbours and then overwrites them, ``v = s[i] + s[i + 1]; syncthreads(); s[i] = v``. It
waits in between so that no thread reads what another has written already. Gangs run one after another, and all lanes
load before any of them stores: what a gang stores, only those before it have still to read. So the barrier is dropped,
and ``v`` stays in registers instead of going through memory.

A barrier may go if no access behind it is to memory that a later thread accesses before it, unless both only read: then
each thread, or each gang, may go on without waiting for the ones behind. That is known of addresses that only differ in
a number of bytes, and grow from thread to thread by what is accessed or more. It stays where a thread would read what
others have stored just before: the processor would wait for that in each gang, and now does once for all of them.

Regions that have lost a barrier are `ordered`: the iterations of a loop over their threads depend on one another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.address_terms import take_apart
from hip_runtime.drivers.cpu.analyses.block_memory import is_private, may_overlap
from hip_runtime.drivers.cpu.analyses.cfg import order_blocks
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.regions.formation import (
    RegionGraph,
    SyncPoint,
    drop_points,
    region_successors,
)


def drop_needless_barriers(graph: RegionGraph, axis: str, threads: int, size_of: SizeOf) -> RegionGraph:
    """*graph* without the barriers that blocks of one row of *threads* along *axis* do not need. Its function is
    modified."""
    if graph.wave_scheduled or graph.yields:
        return graph
    places = _Places(graph, axis, size_of)
    for call in [point.call for point in graph.points if point.operation == spmd.BARRIER]:
        point = next(point for point in graph.points if point.call is call)
        if _Barrier(graph, point, threads, places).is_needless():
            graph = drop_points(graph, [point])
            places = _Places(graph, axis, size_of)
            record("drop_needless_barriers", graph.function)
    return graph


@dataclass(frozen=True)
class _Place:
    """The address of an access: a sum of values that are the same for all threads, each times a number of bytes,
    *stride* bytes for each thread before, and *offset* bytes."""

    terms: frozenset[tuple[Value, int]]
    stride: int
    offset: int
    nbytes: int
    """How many are accessed."""


class _Places:
    """The addresses of accesses of *graph*, by the index of the thread along *axis*."""

    def __init__(self, graph: RegionGraph, axis: str, size_of: SizeOf) -> None:
        self._graph = graph
        self._index = spmd.thread_idx(axis)
        self._size_of = size_of
        self._found: dict[Instruction, _Place | None] = {}

    def find(self, access: Instruction) -> _Place | None:
        """The address of *access*, if it grows by a number of bytes from thread to thread."""
        if access not in self._found:
            self._found[access] = self._locate(access)
        return self._found[access]

    def _locate(self, access: Instruction) -> _Place | None:
        address = take_apart(access.address, self._size_of)
        stride = 0
        terms = []
        for value, scale in address.terms:
            if self._is_index(value):
                stride += scale
            elif self._graph.uniformity.varies(value, self._graph.homes[access]):
                return None
            else:
                terms.append((value, scale))
        return _Place(frozenset(terms), stride, address.offset, self._size_of(access.accessed)) if stride > 0 else None

    def _is_index(self, value: Value) -> bool:
        """Whether *value* is the index of the thread, as a number of 64 bits."""
        while isinstance(value, Instruction) and value.opcode in ("zext", "sext"):
            value = value.operands[0]
        return isinstance(value, Instruction) and value.callee == self._index


class _Barrier:
    """A barrier, the regions that end at it, and the one that it begins."""

    def __init__(self, graph: RegionGraph, point: SyncPoint, threads: int, places: _Places) -> None:
        self._graph = graph
        self._point = point
        self._threads = threads
        self._places = places
        self._ending = [region for region in graph.regions if point in region.exits]
        self._next = next(region for region in graph.regions if region.start is point)

    def is_needless(self) -> bool:
        """Whether no thread has to wait here, given the order in which gangs run."""
        if any(region.diverges for region in self._ending) or self._point in self._next.exits:
            return False
        before, after = self._find_before(), self._next.blocks
        if _has_loop(self._next.entry, after) or any(_has_loop(region.entry, before) for region in self._ending):
            return False  # a value may be another one in each iteration
        earlier, later = _find_accesses(before), _find_accesses(after)
        if earlier is None or later is None:
            return False
        return all(self._are_in_order(first, second) for first in earlier for second in later)

    def _find_before(self) -> list[Block]:
        """The blocks that a thread may run, since its last sync point, before it gets here."""
        blocks = dict.fromkeys(block for region in self._ending for block in region.blocks)
        found = {self._point.waiting}
        while more := {block for block in blocks.keys() - found if not found.isdisjoint(region_successors(block))}:
            found |= more
        return [block for block in blocks if block in found]

    def _are_in_order(self, first: Instruction, second: Instruction) -> bool:
        """Whether *first*, which is before the barrier, may come after *second* of any thread before."""
        if first.opcode == second.opcode == "load":
            return True
        one, other = first.address, second.address
        if is_private(one) or is_private(other) or not may_overlap(one, other):
            return True
        earlier, later = self._places.find(first), self._places.find(second)
        if earlier is None or later is None or (earlier.terms, earlier.stride) != (later.terms, later.stride):
            return False
        if any(self._changes(value) for value, _ in earlier.terms):
            return False
        ahead = earlier.offset - later.offset
        if abs(ahead) + earlier.stride * self._threads >= _FARTHEST:
            return False
        if first.opcode == "store" and second.opcode == "load" and (ahead or earlier.nbytes != later.nbytes):
            return False
        return ahead + earlier.stride >= later.nbytes

    def _changes(self, value: Value) -> bool:
        """Whether *value* may be another one behind the barrier than before."""
        return isinstance(value, Instruction) and self._graph.homes[value] in self._next.blocks


_FARTHEST = 1 << 62
"""Bytes beyond which addresses might meet as they wrap around."""


def _has_loop(entry: Block, blocks: Iterable[Block]) -> bool:
    inside = set(blocks)
    if entry not in inside:
        return False
    order = order_blocks(entry, lambda block: [target for target in region_successors(block) if target in inside])
    return any(order.loops.values())


def _find_accesses(blocks: Iterable[Block]) -> list[Instruction] | None:
    """The loads and stores of *blocks*; ``None`` if there is anything else that other threads might notice."""
    found = []
    for block in blocks:
        for value in block.instructions:
            is_plain = value.opcode in ("load", "store") and not value.volatile and value.atomic is None
            if is_plain:
                found.append(value)
            elif has_effect(value) and value.elementwise is None:
                return None
    return found
