"""Loads and stores of every second, third or fourth element, or of each in the opposite order: contiguous vectors and
shuffles.

Under a mask, an element is accessed if it is that of an active lane: the bits of the mask are spread, one to each
*step* elements, which an instruction of the processor does for up to 64 elements at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from llvmlite import ir

from hip_runtime.drivers.cpu.llvmir import I1, I32, I64
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder, size_in_memory

REVERSED = -1
"""The number of elements from lane to lane if the last lane accesses the first one."""


def load_reversed(
    lanes: VectorBuilder, kind: ir.Type, place: ir.Value, mask: ir.Value | None, align: int
) -> ir.Value:  # fmt: skip
    """A load of neighbours, of which the first lane's, at *place*, is the last one."""
    loaded = lanes.load(kind, _last_place(lanes, kind, place, mask), _reverse_mask(lanes, mask), align)
    return _reverse(lanes, loaded)


def store_reversed(
    lanes: VectorBuilder, value: ir.Value, place: ir.Value, mask: ir.Value | None, align: int
) -> None:  # fmt: skip
    """The reverse of `load_reversed`."""
    at = _last_place(lanes, value.type.element, place, mask)
    lanes.store(_reverse(lanes, value), at, _reverse_mask(lanes, mask), align)


def _last_place(lanes: VectorBuilder, kind: ir.Type, place: ir.Value, mask: ir.Value | None) -> ir.Value:
    return _element(lanes, kind, place, 1 - lanes.width, mask)


def _reverse_mask(lanes: VectorBuilder, mask: ir.Value | None) -> ir.Value | None:
    return None if mask is None else _reverse(lanes, mask)


def _reverse(lanes: VectorBuilder, whole: ir.Value) -> ir.Value:
    return lanes.shuffle(whole, lanes.vector_of(I32, list(reversed(range(lanes.width)))))


def load_strided(
    lanes: VectorBuilder, kind: ir.Type, place: ir.Value, step: int, mask: ir.Value | None, align: int,
    members: Sequence[int] = (0,), member: int = 0,
) -> ir.Value:  # fmt: skip
    """A load of every *step*-th element from the one numbered *member* behind *place* on, undefined for lanes that are
    not in *mask*.

    *members* are the numbers, from 0 on, of all elements of the first lane that are loaded in this way, by whichever
    instructions: they load the same vectors. None of these ends behind the last member of the last lane: without a
    mask, no memory beyond that is accessed. With two lanes four elements apart, the third vector would."""
    width = lanes.width
    last = (step - 1) * (width - 1) + members[-1]
    whole = lanes.undefined(lanes.type_of(kind))
    for part in range(step):
        begin = min(part * width, last)
        at = _element(lanes, kind, place, begin, mask)
        active = None if mask is None else _spread_to(lanes, mask, step, begin, members)
        loaded = lanes.load(kind, at, active, _align_at(align, begin * size_in_memory(kind)))
        taken = range(part * width, begin + width)
        numbers = [lane * step + member for lane in range(width)]
        order = [width + number - begin if number in taken else lane for lane, number in enumerate(numbers)]
        whole = lanes.merge(whole, loaded, lanes.vector_of(I32, order))
    return whole


def store_strided(
    lanes: VectorBuilder, value: ir.Value, place: ir.Value, step: int, mask: ir.Value | None, align: int
) -> None:  # fmt: skip
    """The reverse of `load_strided`; the elements in between are not written."""
    width, kind = lanes.width, value.type.element
    count = width * step
    if mask is None:
        whole = lanes.shuffle(value, lanes.vector_of(I32, [number // step for number in range(count)]))
        written = lanes.vector_of(I1, [number % step == 0 for number in range(count)])
        lanes.store(whole, place, written, align)
        return
    for begin in range(0, count, width):
        spread = lanes.shuffle(value, lanes.vector_of(I32, [number // step for number in range(begin, begin + width)]))
        at = _element(lanes, kind, place, begin, mask)
        active = _spread_mask(lanes, mask, step, begin, 0)
        lanes.store(spread, at, active, _align_at(align, begin * size_in_memory(kind)))


def store_interleaved(lanes: VectorBuilder, values: Sequence[ir.Value], place: ir.Value, align: int) -> None:
    """Store what each lane has in *values* one after another, and what the next lane has behind it, from *place* on."""
    width, count = lanes.width, len(values)
    whole = values[0]
    for number, value in enumerate(values[1:], 1):  # the elements of a lane are neighbours in `whole`
        longer = lanes.shuffle(value, lanes.vector_of(I32, [min(lane, width - 1) for lane in range(width * number)]))
        order = [
            width * number + lane if member == number else lane * number + member
            for lane in range(width) for member in range(number + 1)
        ]  # fmt: skip
        whole = lanes.merge(whole, longer, lanes.vector_of(I32, order))
    assert whole.type.count == width * count
    lanes.store(whole, place, None, align)


def _element(lanes: VectorBuilder, kind: ir.Type, place: ir.Value, number: int, mask: ir.Value | None) -> ir.Value:
    """The address of an element behind *place*, which is that of the first lane: under a mask perhaps nowhere."""
    if not number:
        return place
    return lanes.builder.gep(place, [I64(number)], inbounds=mask is None, source_etype=kind)


def _align_at(align: int, offset: int) -> int:
    """The alignment at *offset* bytes from an address with that of *align*."""
    return min(align, offset & -offset or align)


def _spread_to(lanes: VectorBuilder, mask: ir.Value, step: int, begin: int, members: Sequence[int]) -> ir.Value:
    """Which of as many elements as there are lanes, from the one numbered *begin* on, are *members* of lanes in
    *mask*."""
    spread = [_spread_mask(lanes, mask, step, begin, member) for member in members]
    return reduce(lanes.builder.or_, spread)


def _spread_mask(lanes: VectorBuilder, mask: ir.Value, step: int, begin: int, member: int) -> ir.Value:
    """Which of as many elements as there are lanes, from the one numbered *begin* on, are those of lanes in *mask*:
    every *step*-th one from *member* on is a lane's."""
    builder, width = lanes.builder, lanes.width
    lane = -(-(begin - member) // step)
    places = sum(1 << number for number in range(lane * step + member - begin, width, step))
    bits = builder.bitcast(mask, ir.IntType(width))
    bits = bits if width == I64.width else builder.zext(bits, I64)
    spread = lanes.call("llvm.x86.bmi.pdep.64", I64, [builder.lshr(bits, I64(lane)), I64(places)])
    spread = spread if width == I64.width else builder.trunc(spread, ir.IntType(width))
    return builder.bitcast(spread, mask.type)
