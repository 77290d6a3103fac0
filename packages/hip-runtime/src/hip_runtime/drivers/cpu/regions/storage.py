"""A block's storage: context arrays and scalars, and private memory, which live as long as the block runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.grid_context import ALIGNMENT
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.drivers.cpu.llvmir import I1, I8, I64, PTR, VOID, allocate, declare, store_atomic
from hip_runtime.errors import UnsupportedError

STACK_LIMIT = 256 << 10
"""The most bytes of storage that a block may have on the stack; more is allocated on the heap."""


Word = Callable[[ir.IRBuilder], ir.Value]
"""Writes the address of the word that records the worker's heap memory."""


@dataclass(eq=False)
class Slot:
    """Memory for an array of *count* values of type *kind*."""

    kind: ir.Type
    count: int
    name: str
    nbytes: int = 0
    align: int = ALIGNMENT
    base: ir.Value = field(init=False)

    @property
    def stored(self) -> ir.Type:
        """The type in memory, where an i1 is a byte, so that loops over it can be vectorised."""
        return I8 if self.kind == I1 else self.kind

    def address(self, builder: ir.IRBuilder, index: ir.Value | None = None) -> ir.Value:
        """The address of the element *index*."""
        if index is None or self.count == 1:
            return self.base
        return builder.gep(self.base, [index], inbounds=True, source_etype=self.stored)

    def load(self, builder: ir.IRBuilder, index: ir.Value | None = None) -> ir.Value:
        """The element *index*."""
        value = builder.load(self.address(builder, index), typ=self.stored)
        return builder.trunc(value, I1) if self.kind == I1 else value

    def store(self, builder: ir.IRBuilder, value: ir.Value, index: ir.Value | None = None) -> None:
        """Set the element *index*."""
        if self.kind == I1:
            value = builder.zext(value, I8)
        builder.store(value, self.address(builder, index))


class Storage:
    """The storage of one block function. Places are requested first, and then allocated, in one of two ways.

    A block that runs from start to end has them on the stack and, if they do not fit, on the heap. A block that is
    suspended at grid barriers has them in its *context*, which the launch allocates.
    """

    def __init__(self, threads: int, size_of: Callable[[ir.Type], int]) -> None:
        self._threads = threads
        self._size_of = cache(size_of)
        self._places: list[Slot] = []
        self._heap: ir.Value | None = None

    def per_thread(self, kind: ir.Type, name: str) -> Slot:
        """An array with an element for each thread of the block."""
        return self._place(kind, self._threads, name)

    def per_block(self, kind: ir.Type, name: str) -> Slot:
        """A single value."""
        return self._place(kind, 1, name)

    def private(self, kind: ir.Type, align: int, name: str, each: bool) -> Slot:
        """Private memory of type *kind*, for each thread or shared by all, of which only the address is used."""
        align = max(align, 1)
        nbytes = max(-(-self._size_of(kind) // align) * align, 1)
        place = self._place(ir.ArrayType(I8, nbytes), self._threads if each else 1, name)
        place.align = max(place.align, align)
        return place

    def interleaved(self, kind: ir.Type, count: int, name: str) -> Slot:
        """*count* elements of type *kind*, of which each thread has one in every row."""
        return self._place(kind, count, name)

    @property
    def is_per_thread(self) -> bool:
        """Whether a place has an element for each thread."""
        return any(place.count > 1 for place in self._places)

    def _place(self, kind: ir.Type, count: int, name: str) -> Slot:
        place = Slot(kind, count, name)
        place.nbytes = -(-count * self._size_of(place.stored) // ALIGNMENT) * ALIGNMENT
        self._places.append(place)
        return place

    def allocate(self, builder: ir.IRBuilder, word: Word) -> ir.Value | None:
        """Allocate all places at the start of the function. If heap memory is needed, returns whether there was any.
        Its address is recorded in *word*, so that it can be freed if the block is abandoned."""
        total = sum(place.nbytes for place in self._places)
        on_heap = []
        for place in sorted(self._places, key=lambda place: -place.nbytes):
            if total > STACK_LIMIT and place.align <= ALIGNMENT:
                total -= place.nbytes
                on_heap.append(place)
            else:
                place.base = allocate(builder, ir.ArrayType(place.stored, place.count), place.name)
                place.base.align = place.align
            remarks.place(place.name, place.nbytes, place in on_heap)
        if not on_heap:
            return None
        nbytes = sum(place.nbytes for place in on_heap)
        make = declare(builder, "aligned_alloc", PTR, I64, I64)
        self._heap = builder.call(make, [I64(ALIGNMENT), I64(nbytes)])
        store_atomic(builder, self._heap, word(builder))
        offset = 0
        for place in on_heap:
            place.base = builder.gep(self._heap, [I64(offset)], inbounds=True, source_etype=I8)
            offset += place.nbytes
        return builder.icmp_unsigned("!=", self._heap, PTR(None))

    @property
    def context_bytes(self) -> int:
        """The size of a context with all places, a multiple of their alignments; never zero. Those with single values
        alone share cache lines, too, as they are copied for each block that gangs reach over."""
        end, align = 1, 1
        for place, (_, behind) in self._offsets().items():
            end, align = max(end, behind), max(align, self._align(place))
        return -(-end // align) * align

    def place_in(self, builder: ir.IRBuilder, context: ir.Value) -> None:
        """Put all places into *context*, which has the alignment of each."""
        for place, (offset, _) in self._offsets().items():
            place.base = builder.gep(context, [I64(offset)], inbounds=True, source_etype=I8)

    def _offsets(self) -> dict[Slot, tuple[int, int]]:
        """Where each place begins and ends in a context. Single values share cache lines: those of Jacobi's method took
        a line each, and a step as long as it took to load these."""
        offsets: dict[Slot, tuple[int, int]] = {}
        end = 0
        for place in sorted(self._places, key=lambda place: (place.count > 1, -self._align(place))):
            if place.align > ALIGNMENT:
                raise UnsupportedError(
                    f"memory aligned to {place.align} bytes cannot be used in a kernel that waits for the grid; at "
                    f"most {ALIGNMENT} bytes can"
                )
            align = self._align(place)
            start = -(-end // align) * align
            end = start + (self._size_of(place.stored) if _is_single(place) else place.nbytes)
            offsets[place] = start, end
        return offsets

    def _align(self, place: Slot) -> int:
        """The alignment of *place* in a context."""
        if not _is_single(place):
            return ALIGNMENT
        return min(1 << max(self._size_of(place.stored) - 1, 0).bit_length(), ALIGNMENT)

    def free(self, builder: ir.IRBuilder, word: Word) -> None:
        """Free heap memory."""
        if self._heap is not None:
            store_atomic(builder, PTR(None), word(builder))
            builder.call(declare(builder, "free", VOID, PTR), [self._heap])


def _is_single(place: Slot) -> bool:
    return place.count == 1 and not isinstance(place.kind, ir.ArrayType)
