"""Loads and stores of several neighbouring elements for each lane, turned into, or from, a vector of the first ones,
one of the second ones and so on."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.llvmir import I32
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder


def load_rows(lanes: VectorBuilder, kind: ir.Type, count: int, places: ir.Value, align: int) -> list[ir.Value]:
    """*count* elements of *kind*, a power of two, from the address on that each lane has in *places*, all of which are
    active; there are at least as many lanes.

    The first of *count* vectors has the rows of every *count*-th lane from the first one on, the second those of their
    neighbours. So they are turned by shuffles within as many bytes as a row has, of which processors have instructions:
    those of pairs of single elements, then of pairs of two.
    """
    builder = lanes.builder
    rows = []
    for lane in map(I32, range(lanes.width)):
        place = builder.extract_element(places, lane)
        rows.append(builder.load(place, typ=ir.VectorType(kind, count), align=align))
    return _turn(lanes, [_join(lanes, rows[number::count]) for number in range(count)])


def store_rows(lanes: VectorBuilder, values: list[ir.Value], places: ir.Value, align: int) -> None:
    """The reverse of `load_rows`."""
    count = len(values)
    rows = _turn(lanes, values)
    for lane in range(lanes.width):
        begin = lane // count * count
        row = lanes.shuffle(rows[lane % count], lanes.vector_of(I32, list(range(begin, begin + count))))
        lanes.builder.store(row, lanes.builder.extract_element(places, I32(lane)), align=align)


def _turn(lanes: VectorBuilder, parts: list[ir.Value]) -> list[ir.Value]:
    """Exchange rows and columns of the squares that as many elements of each of *parts* make as there are parts."""
    size = 1
    while size < len(parts):
        parts = _exchange(lanes, parts, len(parts), size)
        size *= 2
    return parts


def _join(lanes: VectorBuilder, vectors: list[ir.Value]) -> ir.Value:
    """One vector with the elements of all *vectors*, which are a power of two."""
    while len(vectors) > 1:
        length = 2 * vectors[0].type.count
        order = lanes.vector_of(I32, list(range(length)))
        vectors = [lanes.merge(*pair, order) for pair in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors[0]


def _exchange(lanes: VectorBuilder, parts: list[ir.Value], count: int, size: int) -> list[ir.Value]:
    """One step of turning *parts*. Before it, each part has in each of its *count* elements, *size* by *size*, what
    belongs together of *size* lanes; after it of twice as many."""
    whole: list[ir.Value] = [None] * count
    length = parts[0].type.count
    for first in range(0, count, 2 * size):
        for number in range(size):
            low, high = parts[first + number], parts[first + size + number]
            for half in range(2):
                order = _interleave(length, count, size, half)
                whole[first + 2 * number + half] = lanes.merge(low, high, lanes.vector_of(I32, order))
    return whole


def _interleave(length: int, count: int, size: int, half: int) -> list[int]:
    """Which elements of two vectors of *length* one has that takes *size* of the first and *size* of the second in
    turns, from one *half* of each of their groups of *count*."""
    order = []
    for group in range(0, length, count):
        begin = group + half * count // 2
        for element in range(begin, begin + count // 2, size):
            order += [*range(element, element + size), *range(length + element, length + element + size)]
    return order
