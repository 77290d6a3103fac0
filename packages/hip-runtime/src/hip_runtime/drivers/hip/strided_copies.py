"""Copies between two layouts of elements, planned as few rectangular copies.

A rectangle is `height` rows of `width` bytes, the rows `pitch` bytes apart. Bytes between the rows stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from hip_runtime.driver import Strided

LARGEST_PITCH = (1 << 31) - 1
"""Bytes; ``hipDeviceProp_t::memPitch`` of every AMD GPU."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a copy: how many, and bytes from one to the next at either side; the target's are positive."""

    extent: int
    target: int
    source: int


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """A copy as rectangles: *width* bytes at a time, over *axes* from the outermost on."""

    target: int
    source: int
    width: int
    axes: tuple[Axis, ...]

    @property
    def copies(self) -> int:
        """How many rectangles there are."""
        return prod(axis.extent for axis in self._outer)

    @property
    def _row(self) -> Axis | None:
        """The axis that the rows of a rectangle lie along: rows must not overlap, nor run backwards."""
        fitting = [
            axis
            for axis in self.axes
            if self.width <= min(axis.target, axis.source) and max(axis.target, axis.source) <= LARGEST_PITCH
        ]
        return max(fitting, key=lambda axis: axis.extent, default=None)

    @property
    def _outer(self) -> list[Axis]:
        row = self._row
        return [axis for axis in self.axes if axis is not row]

    def rectangles(self) -> Iterator[tuple[int, int, int, int, int, int]]:
        """Each as target, its pitch, source, its pitch, width and height."""
        row = self._row or Axis(1, self.width, self.width)
        outer = self._outer
        for index in product(*(range(axis.extent) for axis in outer)):
            target = self.target + sum(number * axis.target for number, axis in zip(index, outer, strict=True))
            source = self.source + sum(number * axis.source for number, axis in zip(index, outer, strict=True))
            yield target, row.target, source, row.source, self.width, row.extent


def plan_copy(target: Strided, source: Strided, shape: tuple[int, ...], itemsize: int) -> CopyPlan:
    """How to copy; axes are reversed so that the target's strides are positive, sorted, and merged where possible."""
    target_address, source_address = target.address, source.address
    axes = []
    for extent, into, found in zip(shape, target.strides, source.strides, strict=True):
        if extent == 1:
            continue
        if into < 0:
            target_address += (extent - 1) * into
            source_address += (extent - 1) * found
            into, found = -into, -found
        axes.append(Axis(extent, into, found))
    axes.sort(key=lambda axis: axis.target)
    width = itemsize
    merged: list[Axis] = []
    for axis in axes:  # from the innermost outwards
        if not merged and axis.target == axis.source == width:
            width *= axis.extent
        elif merged and _continues(merged[-1], axis):
            merged[-1] = Axis(merged[-1].extent * axis.extent, merged[-1].target, merged[-1].source)
        else:
            merged.append(axis)
    return CopyPlan(target_address, source_address, width, tuple(reversed(merged)))


def _continues(inner: Axis, outer: Axis) -> bool:
    return outer.target == inner.target * inner.extent and outer.source == inner.source * inner.extent


def span(place: Strided, shape: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """First byte of the elements, and how many bytes from there to the end of the last."""
    reach = [(extent - 1) * stride for extent, stride in zip(shape, place.strides, strict=True)]
    low = sum(step for step in reach if step < 0)
    high = sum(step for step in reach if step > 0)
    return place.address + low, high - low + itemsize


def forwards(place: Strided, shape: tuple[int, ...]) -> tuple[Strided, tuple[slice, ...]]:
    """The same elements with strides that are not negative, and the index that puts an array of them in that order."""
    first = sum((extent - 1) * min(stride, 0) for extent, stride in zip(shape, place.strides, strict=True))
    order = tuple(slice(None, None, -1 if stride < 0 else 1) for stride in place.strides)
    return Strided(place.address + first, tuple(map(abs, place.strides))), order


def dense_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of C order without gaps."""
    return tuple(itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape)))
