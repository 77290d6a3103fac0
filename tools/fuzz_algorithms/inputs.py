"""The values of random calls."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from tools.fuzz_algorithms.operators import RECORDS, Values

DTYPES = tuple(map(np.dtype, ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")))
OTHERS = (np.dtype("c8"), np.dtype("c16"))
TIMES = (np.dtype("M8[s]"), np.dtype("m8[ms]"))

SIZES = (0, 1, 2, 3, 5, 31, 32, 33, 63, 64, 65, 127, 129, 256, 1023, 1024, 1025, 1500, 2047, 4095, 4097, 6001)
"""Nothing, one, odd ones, and those about rows of lanes, tiles, blocks and the limits of sorts."""

LARGE = (16_385, 33_001, 70_001)


def draw_size(data: np.random.Generator, *, large: bool) -> int:
    """How many values a call has."""
    return int(data.choice(LARGE if large else SIZES))


def draw_dtype(shape: Random, kinds: str) -> np.dtype[Any]:
    """One of the dtypes whose kind is among *kinds*, often records if they are."""
    records = [dtype for letter, some in RECORDS.items() if letter in kinds for dtype in some]
    numbers = [dtype for dtype in (*DTYPES, *OTHERS, *TIMES) if dtype.kind in kinds]
    return shape.choice(records if records and (not numbers or shape.random() < 0.25) else numbers)


def draw_keys(data: np.random.Generator, dtype: np.dtype[Any], size: int) -> Values:
    """Values for an algorithm that compares them: all bits, few different ones, sorted ones, NaN and zeros of both
    signs."""
    arrangement = data.choice(["any", "any", "few", "sorted", "falling", "constant", "nearly"])
    if arrangement == "constant":
        return np.repeat(draw_bits(data, dtype, 1), size)
    values = draw_bits(data, dtype, size)
    if arrangement == "few" and size:
        values = data.choice(values[: int(data.integers(1, 6))], size)
    if arrangement in ("sorted", "falling", "nearly") and dtype.names is None:
        values = np.sort(values)
        if arrangement == "falling":
            values = values[::-1].copy()
        if arrangement == "nearly" and size:
            chosen = data.integers(0, size, 4)
            values[chosen] = values[chosen[::-1]]
    return values


def draw_bits(data: np.random.Generator, dtype: np.dtype[Any], size: int) -> Values:
    """Any bits that a number of *dtype* may have."""
    values: Values
    if dtype.kind == "b":
        return data.integers(0, 2, size).astype(bool)
    values = np.frombuffer(data.bytes(size * dtype.itemsize), dtype).copy()
    if dtype.names is not None:
        values["slope"] %= 16
    if dtype.kind in "f" and size:
        special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, np.finfo(dtype).tiny], dtype)
        chosen = data.random(size) < 0.3
        values[chosen] = data.choice(special, int(chosen.sum()))
    if dtype.kind == "c":
        values = draw_numbers(data, dtype, size)
    if dtype.kind in "mM":
        values[data.random(size) < 0.1] = np.array("NaT", dtype)
    return values


def draw_numbers(data: np.random.Generator, dtype: np.dtype[Any], size: int) -> Values:
    """Numbers whose sums are exact, and never too large if they have a sign or a fraction."""
    if dtype.names is not None or dtype.kind in "b" or (dtype.kind in "iu" and dtype != "i8"):
        return draw_bits(data, dtype, size)
    if dtype == "f2":
        return (data.random(size) < 0.01).astype(dtype)
    whole = data.integers(-99, 100, size).astype(dtype)
    if dtype.kind == "c":
        whole += whole.dtype.type(1j) * data.integers(-99, 100, size).astype(dtype)
    return np.asarray(whole, dtype)


def draw_runs(data: np.random.Generator, dtype: np.dtype[Any], size: int) -> Values:
    """Values of which neighbours are often equal."""
    if not size:
        return draw_bits(data, dtype, 0)
    heads = data.random(size) < data.choice([0.003, 0.1, 0.5, 1.0])
    heads[0] = True
    values = draw_keys(data, dtype, int(heads.sum()))
    return np.asarray(values[np.cumsum(heads) - 1])


def draw_offsets(data: np.random.Generator, size: int, dtype: str, *, outside: bool) -> Values:
    """Where segments of *size* values begin, and the last one ends: ascending, some of them twice, and with *outside*
    some before and behind all values."""
    low, high = (-3, size + 4) if outside and dtype[0] == "i" else (0, size + 1)
    count = int(data.choice([0, 1, 2, 5, 40, 300]))
    return np.sort(data.integers(low, high, count)).astype(dtype)
