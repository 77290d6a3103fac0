"""Inputs of algorithms that are computed where they are read, and take no memory.

They nest: a `ZipIterator` of a `TransformIterator` of an array and of a `CountingIterator` is an input like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class CountingIterator:
    """The numbers *start*, *start* + 1, and so on, of the type of *start*; as many as are asked for."""

    start: Any = 0


@dataclass(frozen=True, eq=False)
class ConstantIterator:
    """One *value*, a number or a tuple of numbers, as often as it is asked for."""

    value: Any


@dataclass(frozen=True, eq=False)
class TransformIterator:
    """What *function* makes of each value of *source*."""

    source: Any
    function: Callable[[Any], Any]


class ZipIterator:
    """Tuples of the values of several *sources* at the same place; as long as the shortest of them."""

    def __init__(self, *sources: Any) -> None:
        self.sources = sources


@dataclass(frozen=True, eq=False)
class PermutationIterator:
    """The values of *source* at the places that *indices* has, one after another."""

    source: Any
    indices: Any


@dataclass(frozen=True, eq=False)
class ReverseIterator:
    """The values of *source* from the last to the first; *source* has an end."""

    source: Any
