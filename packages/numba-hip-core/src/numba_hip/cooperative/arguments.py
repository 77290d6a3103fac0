"""Arguments of the functions that make cooperative functions, checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numba_hip.errors import AlgorithmError

MOST_THREADS = 1024

Extents = tuple[int, ...]
Threads = int | Sequence[int]
"""Threads of a block: their number, or the shape of the block."""


def is_whole(value: object) -> bool:
    """Whether *value* is an integer."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))


def extents_of(threads: Threads) -> Extents:
    """The shape of a block of *threads*. Raises `AlgorithmError` for what is none."""
    shape = tuple(threads) if isinstance(threads, (tuple, list)) else (threads,)
    if not 1 <= len(shape) <= 3 or not all(is_whole(extent) and extent >= 1 for extent in shape):
        raise AlgorithmError(f"threads_per_block is {threads!r}; pass their number, or a tuple of up to three")
    if math.prod(shape) > MOST_THREADS:
        raise AlgorithmError(f"threads_per_block is {threads!r}; a block has at most {MOST_THREADS} threads")
    return tuple(int(extent) for extent in shape)


def checked_count(value: Any, argument: str, most: int = 2**16, least: int = 1) -> int:
    """*value* as an integer from *least* to *most*; raises `AlgorithmError` for others, which callers know as
    *argument*."""
    if not is_whole(value) or not least <= value <= most:
        raise AlgorithmError(f"{argument} is {value!r}; pass an integer from {least} to {most}")
    return int(value)


def checked_bits(width: int, begin_bit: Any, end_bit: Any) -> tuple[int, int]:
    """The first of the bits of keys of *width* bits that are looked at, and the one behind the last, by default all.
    Raises `AlgorithmError` for bits that keys have not, and for none."""
    end = checked_count(width if end_bit is None else end_bit, "end_bit", width)
    return checked_count(begin_bit, "begin_bit", end - 1, least=0), end


def check_choice(value: Any, argument: str, choices: Sequence[str]) -> None:
    """Raise `AlgorithmError` unless *value* is one of *choices*."""
    if value not in choices:
        raise AlgorithmError(f"{argument} is {value!r}; pass one of {', '.join(map(repr, choices))}")
