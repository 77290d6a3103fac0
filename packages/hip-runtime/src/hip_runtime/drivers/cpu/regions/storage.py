"""Memory of a block that lives as long as the block runs: one place for each thread, or one for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.grid_context import ALIGNMENT
from hip_runtime.drivers.cpu.llvmir import I1, I8, I64, PTR, VOID, allocate, store_atomic
from hip_runtime.errors import UnsupportedError

STACK_LIMIT = 256 << 10
"""Bytes of the stack that the memory of a block may take; what is larger comes from the heap."""


Word = Callable[[ir.IRBuilder], ir.Value]
"""Gives the address of the word in which the worker's memory of the heap is noted."""


@dataclass(eq=False)
class Place:
    """Memory for values of type *kind*: *count* of them next to each other."""

    kind: ir.Type
    count: int
    name: str
    nbytes: int = 0
    align: int = ALIGNMENT
    base: ir.Value = field(init=False)

    @property
    def stored(self) -> ir.Type:
        """The type in memory: bits are bytes there, as loops over them can be vectorised then."""
        return I8 if self.kind == I1 else self.kind

    def address(self, builder: ir.IRBuilder, index: ir.Value | None = None) -> ir.Value:
        """Where value number *index* is."""
        if index is None or self.count == 1:
            return self.base
        return builder.gep(self.base, [index], inbounds=True, source_etype=self.stored)

    def load(self, builder: ir.IRBuilder, index: ir.Value | None = None) -> ir.Value:
        """Value number *index*."""
        value = builder.load(self.address(builder, index), typ=self.stored)
        return builder.trunc(value, I1) if self.kind == I1 else value

    def store(self, builder: ir.IRBuilder, value: ir.Value, index: ir.Value | None = None) -> None:
        """Set value number *index*."""
        if self.kind == I1:
            value = builder.zext(value, I8)
        builder.store(value, self.address(builder, index))


class Storage:
    """All memory of one block function: places are asked for first, and then made, in one of two ways.

    A block that runs from start to end has them on the stack and, what does not fit there, on the heap. A block that
    stops to wait for the grid has them in a *context*, memory that it is given, with room for a number at its start.
    """

    def __init__(self, threads: int, size_of: Callable[[ir.Type], int]) -> None:
        self._threads = threads
        self._size_of = cache(size_of)
        self._places: list[Place] = []
        self._heap: ir.Value | None = None

    def per_thread(self, kind: ir.Type, name: str) -> Place:
        """A place with a value for each thread of the block."""
        return self._place(kind, self._threads, name)

    def per_block(self, kind: ir.Type, name: str) -> Place:
        """A place with one value."""
        return self._place(kind, 1, name)

    def private(self, kind: ir.Type, align: int, name: str, each: bool) -> Place:
        """Room for private memory of type *kind*, for each thread or once; only its address is of use."""
        align = max(align, 1)
        nbytes = max(-(-self._size_of(kind) // align) * align, 1)
        place = self._place(ir.ArrayType(I8, nbytes), self._threads if each else 1, name)
        place.align = max(place.align, align)
        return place

    def _place(self, kind: ir.Type, count: int, name: str) -> Place:
        place = Place(kind, count, name)
        place.nbytes = -(-count * self._size_of(place.stored) // ALIGNMENT) * ALIGNMENT
        self._places.append(place)
        return place

    def make(self, builder: ir.IRBuilder, word: Word) -> ir.Value | None:
        """Make all places, at the start of the function. Where memory of the heap is needed: whether there was any. It
        is noted in *word*, for it to be freed where the block does not come to its end."""
        total = sum(place.nbytes for place in self._places)
        on_heap = []
        for place in sorted(self._places, key=lambda place: -place.nbytes):
            if total > STACK_LIMIT and place.align <= ALIGNMENT:
                total -= place.nbytes
                on_heap.append(place)
            else:
                place.base = allocate(builder, ir.ArrayType(place.stored, place.count), place.name)
                place.base.align = place.align
        if not on_heap:
            return None
        nbytes = sum(place.nbytes for place in on_heap)
        make = _function(builder, "aligned_alloc", PTR, I64, I64)
        self._heap = builder.call(make, [I64(ALIGNMENT), I64(nbytes)])
        store_atomic(builder, self._heap, word(builder))
        offset = 0
        for place in on_heap:
            place.base = builder.gep(self._heap, [I64(offset)], inbounds=True, source_etype=I8)
            offset += place.nbytes
        return builder.icmp_unsigned("!=", self._heap, PTR(None))

    @property
    def context_bytes(self) -> int:
        """What a context for the places that were asked for needs."""
        return ALIGNMENT + sum(place.nbytes for place in self._places)

    def make_in(self, builder: ir.IRBuilder, context: ir.Value) -> None:
        """Make all places in *context*, which is aligned to `ALIGNMENT`."""
        offset = ALIGNMENT
        for place in self._places:
            if place.align > ALIGNMENT:
                raise UnsupportedError(
                    f"memory aligned to {place.align} bytes cannot be used in a kernel that waits for the grid; at "
                    f"most {ALIGNMENT} bytes can"
                )
            place.base = builder.gep(context, [I64(offset)], inbounds=True, source_etype=I8)
            offset += place.nbytes

    def give_back(self, builder: ir.IRBuilder, word: Word) -> None:
        """Free what came from the heap."""
        if self._heap is not None:
            store_atomic(builder, PTR(None), word(builder))
            builder.call(_function(builder, "free", VOID, PTR), [self._heap])


def _function(builder: ir.IRBuilder, name: str, result: ir.Type, *arguments: ir.Type) -> ir.Value:
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(result, arguments), name)
