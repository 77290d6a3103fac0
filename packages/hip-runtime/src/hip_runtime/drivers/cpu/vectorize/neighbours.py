"""Gathers and scatters of neighbours in memory, for all lanes at once: see `analyses.neighbours`."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.writer import typed
from hip_runtime.drivers.cpu.llvmir import I32, I64
from hip_runtime.drivers.cpu.vectorize.row_loads import load_rows, store_rows
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder, size_in_memory

_LARGEST = 8
"""Bytes of what is gathered, or scattered under a mask, for a lane, at most. Larger ones are loaded lane by lane, those
that are not active from a place on the stack."""

_DOUBLE = ir.DoubleType()


def most_neighbours(kind: ir.Type, width: int, is_masked: bool, is_load: bool) -> int:
    """How many elements of *kind* a lane of *width* accesses at once, 1 if no more than one."""
    nbytes = size_in_memory(kind)
    if not is_load:
        return 2 if 2 * nbytes <= _LARGEST or (not is_masked and width >= 2) else 1
    return min(4, width)


def load_neighbours(
    lanes: VectorBuilder, kind: ir.Type, count: int, places: ir.Value, mask: ir.Value | None, align: int
) -> list[ir.Value]:
    """*count* neighbours of *kind* from the address on that each lane has in *places*: a vector of the first ones, one
    of the second ones and so on."""
    nbytes = count * size_in_memory(kind)
    if nbytes > _LARGEST or count > 2:
        if mask is not None:
            places = lanes.keep_idle(places, mask, align)
        return load_rows(lanes, kind, count, places, align)
    whole = lanes.gather(_kind_of_pair(nbytes, mask), places, mask, align)
    pairs = lanes.builder.bitcast(whole, ir.VectorType(kind, 2 * lanes.width))
    every_second = range(0, 2 * lanes.width, 2)
    return [lanes.shuffle(pairs, lanes.vector_of(I32, [place + number for place in every_second])) for number in (0, 1)]


def store_neighbours(
    lanes: VectorBuilder, values: list[ir.Value], places: ir.Value, mask: ir.Value | None, align: int
) -> None:  # fmt: skip
    """The reverse of `load_neighbours`, of two."""
    one, two = values
    nbytes = 2 * size_in_memory(one.type.element)
    if nbytes > _LARGEST:
        assert mask is None
        store_rows(lanes, values, places, align)
        return
    order = [place + half * lanes.width for place in range(lanes.width) for half in (0, 1)]
    pairs = lanes.merge(one, two, lanes.vector_of(I32, order))
    whole = lanes.builder.bitcast(pairs, ir.VectorType(_kind_of_pair(nbytes, mask), lanes.width))
    lanes.scatter(whole, places, mask, align)


def shifted(lanes: VectorBuilder, places: ir.Value, distance: int) -> ir.Value:
    """The addresses that are *distance* bytes behind *places*."""
    if not distance:
        return places
    steps = lanes.vector_of(I64, [distance] * lanes.width)
    return lanes.emit(places.type, ["getelementptr i8, ", *typed(places), ", ", *typed(steps)])


def _kind_of_pair(nbytes: int, mask: ir.Value | None) -> ir.Type:
    """What is as long as two elements of *nbytes* together. Processors move doubles between memory and each half of a
    register, which is quicker than to take them for integers."""
    return _DOUBLE if nbytes == _LARGEST and mask is None else ir.IntType(8 * nbytes)
