"""Lists that threads append to, at places that an atomic counter gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import hip


@hip.jit
def choose(values, limit, chosen, origins, count):
    i = hip.grid(1)
    if i < values.size and values[i] > limit:
        place = hip.atomic.add(count, 0, 1)
        chosen[place] = values[i]
        origins[place] = i


@hip.jit
def part(values, limit, low, high, counts):
    i = hip.grid(1)
    if i < values.size:
        if values[i] <= limit:
            low[hip.atomic.add(counts, 0, 1)] = values[i]
        else:
            high[hip.atomic.add(counts, 1, 1)] = values[i]


@hip.jit
def choose_up_to_a_capacity(values, chosen, count):
    i = hip.grid(1)
    if i < values.size and values[i] % 3 == 0:
        place = hip.atomic.add(count, 0, 1)
        if place < chosen.size:
            chosen[place] = values[i]


@pytest.mark.parametrize("dtype", ["i1", "u2", "f4", "i8", "f8"])
@pytest.mark.parametrize("counter", ["i4", "u4", "i8", "u8"])
@pytest.mark.sample(2)
def test_chosen_values_and_where_they_were(dtype: str, counter: str) -> None:
    values = np.random.default_rng(9).integers(0, 100, 3001).astype(dtype)
    for limit in (-1, 20, 50, 99, 100):
        chosen, origins, count = np.zeros_like(values), np.full(values.size, -1), np.zeros(1, counter)
        choose[-(-values.size // 192), 192](values, limit, chosen, origins, count)
        expected = np.flatnonzero(values.astype(float) > limit)
        assert count[0] == expected.size
        np.testing.assert_array_equal(np.sort(origins[: expected.size]), expected)
        np.testing.assert_array_equal(chosen[: expected.size], values[origins[: expected.size]])
        assert (origins[expected.size :] == -1).all()


def test_two_lists() -> None:
    values = np.random.default_rng(3).random(5000, np.float32)
    low, high, counts = np.full(5000, -1, np.float32), np.full(5000, -1, np.float32), np.zeros(2, np.int32)
    part[20, 256](values, np.float32(0.3), low, high, counts)
    for found, count, expected in zip(
        (low, high), counts, (values[values <= 0.3], values[values > 0.3]), strict=True
    ):  # fmt: skip
        np.testing.assert_array_equal(np.sort(found[:count]), np.sort(expected))
        assert (found[count:] == -1).all()


@pytest.mark.parametrize("capacity", [0, 1, 100, 2000])
def test_lists_that_are_full(capacity: int) -> None:
    values = np.arange(3000, dtype=np.int32)
    whole = np.full(capacity + 64, -5, np.int32)
    count: Any = np.zeros(1, np.int64)
    choose_up_to_a_capacity[12, 256](values, whole[:capacity], count)
    assert count[0] == 1000
    taken = min(capacity, 1000)
    assert np.unique(whole[:taken]).size == taken
    assert (whole[:taken] % 3 == 0).all()
    assert (whole[taken:] == -5).all()
