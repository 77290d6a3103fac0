"""Sorts of segments, and of as few elements as one thread of the CPU device sorts alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import numba_hip as hip
from numba_hip import algorithms
from numba_hip.algorithms import radix_segments, sorting

Host = np.ndarray[Any, Any]
LENGTHS = [0, 1, 2, 23, 24, 25, 0, 255, 256, 257, 3000, 7]
"""Segments that are empty, sorted by insertion, and by digits; there are some before the first and behind the last."""


def values_of(dtype: str, size: int, seed: int = 1) -> Host:
    generator = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "f":
        x = (generator.normal(size=size) * 10.0 ** generator.integers(-3, 4, size)).astype(dtype)
        x[::7], x[1::11], x[2::13], x[3::17], x[4::19] = np.nan, -0.0, 0.0, np.inf, -np.inf
        return x
    if kind == "b":
        return generator.integers(0, 2, size).astype(dtype)
    if kind == "M":
        x = generator.integers(-1000, 1000, size).astype(dtype)
        x[::9] = "NaT"
        return x
    info = np.iinfo(dtype)
    return generator.integers(info.min, info.max, size, dtype=dtype, endpoint=True)


def sorted_segments(x: Host, offsets: Host) -> Host:
    return np.concatenate([np.sort(part) for part in np.split(x, offsets)])


def same(found: Any, wanted: Host) -> None:
    np.testing.assert_array_equal(found.copy_to_host() if hip.is_device_array(found) else found, wanted)


TYPES = ["f4", "u1", "i8", "f2", "i2", "u4", "f8", "b1", "M8[s]"]
WAYS = itertools.product(["of the host", "of the device"], TYPES)


@pytest.mark.parametrize(("way", "dtype"), [*WAYS, *(("descending", dtype) for dtype in TYPES if dtype[0] in "fi")])
@pytest.mark.sample(1)
def test_segments_of_all_lengths(way: str, dtype: str) -> None:
    offsets = np.cumsum([5, *LENGTHS])
    x = values_of(dtype, int(offsets[-1]) + 30)
    if way == "of the host":
        same(algorithms.segmented_sort(x, offsets), sorted_segments(x, offsets))
    elif way == "of the device":
        room = hip.to_device(np.repeat(x, 2))
        algorithms.segmented_sort(hip.to_device(x), hip.to_device(offsets.astype(np.int32)), out=room[::2])
        same(room[::2], sorted_segments(x, offsets))
        same(room[1::2], x)
    else:
        falling = np.concatenate([np.sort(part)[::-1] for part in np.split(x, offsets)])
        same(algorithms.segmented_sort(x, offsets, descending=True), falling)


def test_segments_in_place_and_equal_digits() -> None:
    x = hip.to_device(values_of("i4", 5000) % 200 + (5 << 20))
    given, offsets = x.copy_to_host(), np.array([0, 1000, 1010, 5000])
    assert algorithms.segmented_sort(x, offsets, out=x) is x
    same(x, sorted_segments(given, offsets))


def test_offsets_that_lie_outside_or_turn_back_harm_nothing() -> None:
    x = values_of("i4", 4000)
    same(algorithms.segmented_sort(x, np.array([-5, 100, 9000])), sorted_segments(x, np.array([100])))
    room = hip.to_device(np.concatenate([np.full(9, 7, np.int32), x, np.full(9, 7, np.int32)]))
    turned = hip.to_device(np.array([3000, 20, 2000, -1, 8000]))
    algorithms.segmented_sort(room[9:-9], turned, out=room[9:-9])
    around = room.copy_to_host()
    assert (around[:9] == 7).all()
    assert (around[-9:] == 7).all()


def test_long_segments_are_sorted_by_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "MEAN_OF_THREADS", 10)
    x, offsets = values_of("u4", 5000), np.array([7, 2000, 2001])
    same(algorithms.segmented_sort(x, offsets), sorted_segments(x, offsets))


@pytest.mark.long
@pytest.mark.parametrize("size", [2, 3, 1000, radix_segments.MOST_IN_ONE, radix_segments.MOST_IN_ONE + 1])
def test_few_elements_with_what_goes_with_them(size: int) -> None:
    keys = np.random.default_rng(size).integers(-50, 50, size)
    for dtype, payload in (("i4", "u4"), ("f8", "c16"), ("i1", "u1")):
        x, given = keys.astype(dtype), np.arange(size).astype(payload)
        order = np.argsort(x, kind="stable")
        found, moved = algorithms.sort_by_key(x, given)
        same(found, x[order])
        same(moved, given[order])
        falling = size - 1 - np.argsort(x[::-1], kind="stable")[::-1]
        same(algorithms.argsort(x, descending=True), falling)
        most, places = algorithms.topk(x, min(size, 9))
        same(most, x[falling[:9]])
        same(places, falling[:9])
    pairs = np.zeros(size, [("a", "i2"), ("b", "f4"), ("c", "i8")])
    pairs["a"], pairs["c"] = np.arange(size) % 1000, np.arange(size)
    _, moved = algorithms.sort_by_key(keys, pairs)
    same(moved, pairs[np.argsort(keys, kind="stable")])
