"""Inputs of algorithms that are computed where they are read, and take no memory.

They nest: a `ZipIterator` of a `TransformIterator` of an array and of a `CountingIterator` is an input like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hip_runtime import as_device_array, is_device_array
from numba_hip.errors import AlgorithmError


class Iterator:
    """An input that is computed where it is read. ``iterator + n`` has the values from place *n* on."""

    def __add__(self, offset: Any) -> Iterator:
        if not isinstance(offset, (int, np.integer)) or isinstance(offset, bool):
            return NotImplemented
        return self._from_place(int(offset))

    def _from_place(self, offset: int) -> Iterator:
        return PermutationIterator(self, CountingIterator(np.int64(offset)))


def _from_place(source: Any, offset: int) -> Any:
    """What *source*, an iterator or an array, has from place *offset* on."""
    if isinstance(source, Iterator):
        return source + offset
    if offset < 0:
        raise AlgorithmError(f"the offset of an iterator over an array is {offset}; pass one that is not negative")
    return (as_device_array(source) if is_device_array(source) else np.asarray(source))[offset:]


MODIFIERS = ("stream", "global", "volatile")


@dataclass(frozen=True, eq=False)
class CacheModifiedInputIterator(Iterator):
    """The elements of *array*, read past the caches of an AMD GPU: as what is read once (*modifier* ``"stream"``, which
    leaves the caches to other data), ``"global"``, as is fit for all threads, or ``"volatile"``, each time from memory.
    """

    array: Any
    modifier: str = "stream"

    def __post_init__(self) -> None:
        if self.modifier not in MODIFIERS:
            raise AlgorithmError(f"modifier is {self.modifier!r}; pass one of {', '.join(map(repr, MODIFIERS))}")

    def _from_place(self, offset: int) -> Iterator:
        return CacheModifiedInputIterator(_from_place(self.array, offset), self.modifier)


@dataclass(frozen=True, eq=False)
class CountingIterator(Iterator):
    """The numbers *start*, *start* + 1, and so on, of the type of *start*; as many as are asked for."""

    start: Any = 0

    def _from_place(self, offset: int) -> Iterator:
        return CountingIterator(type(self.start)(self.start + offset))


@dataclass(frozen=True, eq=False)
class ConstantIterator(Iterator):
    """One *value*, a number or a tuple of numbers, as often as it is asked for."""

    value: Any

    def _from_place(self, offset: int) -> Iterator:
        return self


@dataclass(frozen=True, eq=False)
class TransformIterator(Iterator):
    """What *function* makes of each value of *source*."""

    source: Any
    function: Callable[[Any], Any]

    def _from_place(self, offset: int) -> Iterator:
        return TransformIterator(_from_place(self.source, offset), self.function)


class ZipIterator(Iterator):
    """Tuples of the values of several *sources* at the same place; as long as the shortest of them."""

    def __init__(self, *sources: Any) -> None:
        self.sources = sources

    def _from_place(self, offset: int) -> Iterator:
        return ZipIterator(*(_from_place(source, offset) for source in self.sources))


@dataclass(frozen=True, eq=False)
class PermutationIterator(Iterator):
    """The values of *source* at the places that *indices* has, one after another."""

    source: Any
    indices: Any

    def _from_place(self, offset: int) -> Iterator:
        return PermutationIterator(self.source, _from_place(self.indices, offset))


@dataclass(frozen=True, eq=False)
class ReverseIterator(Iterator):
    """The values of *source* from the last to the first; from the first backwards if *source* has no end."""

    source: Any
