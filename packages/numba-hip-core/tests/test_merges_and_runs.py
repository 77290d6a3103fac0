"""Merges, sorts by a function and lengths of runs, where parts of threads and of tiles meet, beside NumPy."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import numba_hip as hip
from numba_hip import algorithms
from numba_hip.algorithms import merging

Host = np.ndarray[Any, Any]
RUN = merging.RUN_ON_CPU
SIZES = [(0, 5), (5, 0), (1, 1), (RUN, RUN), (RUN - 1, 2), (3 * RUN + 7, 5), (5, 3 * RUN + 7), (40_000, 30_001)]


def by_tens(first: Any, second: Any) -> Any:
    return first // 10 < second // 10


def same(found: Any, wanted: Host) -> None:
    np.testing.assert_array_equal(found.copy_to_host() if hip.is_device_array(found) else found, wanted)


@pytest.mark.parametrize("is_of_gpus", [False, True])
@pytest.mark.sample(1)
def test_merges_keep_the_order_of_equal_elements(is_of_gpus: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_of_gpus:
        monkeypatch.setattr(merging, "merges_by_thread", lambda operands: False)
    generator = np.random.default_rng(3)
    for ahead, behind in SIZES:
        first, second = (generator.integers(0, max(size // 3, 9), size) for size in (ahead, behind))
        first, second = (one[np.argsort(one // 10, kind="stable")] for one in (first, second))
        both = np.concatenate([first, second])
        same(algorithms.merge(first, hip.to_device(second)[:], by_tens), both[np.argsort(both // 10, kind="stable")])
        same(algorithms.sort(both, by_tens), both[np.argsort(both // 10, kind="stable")])


def test_merges_of_other_numbers_and_views() -> None:
    first, second = np.sort(np.random.default_rng(1).normal(size=(2, 5000)).astype(np.float32))
    first[:9], second[-9:] = -np.inf, np.inf
    room = hip.to_device(np.zeros(20_000, np.float64))
    algorithms.merge(hip.to_device(first)[::-1], second[::-1], operator.gt, out=room[::2])
    same(room[::2], np.sort(np.concatenate([first, second]))[::-1])
    same(room[1::2], np.zeros(10_000))
    tail = hip.to_device(np.concatenate([np.sort(first), second]))
    algorithms.merge(tail[:5000], tail[5000:], out=tail)
    same(tail, np.sort(np.concatenate([first, second])))


@pytest.mark.parametrize("size", [0, 1, 2, 1023, 1025, 70_001, 300_000])
@pytest.mark.sample(1)
def test_lengths_of_runs(size: int) -> None:
    generator = np.random.default_rng(size)
    few, many = np.repeat(generator.integers(0, 3, size // 50 + 1), 50)[:size], generator.integers(0, 2, size)
    for x in (few, many, np.arange(size), np.zeros(size, int)):
        begins = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]])[:size])
        names, lengths = algorithms.run_length_encode(x.astype(np.int32))
        assert lengths.dtype == np.int64
        same(names, x[begins])
        same(lengths, np.diff(np.append(begins, size)))
        room = hip.to_device(np.full(2 * size + 2, -1, np.int32))
        found = hip.to_device(np.zeros(2, np.int32))
        algorithms.run_length_encode(hip.to_device(x), out=(None, room[::2]), found=found)
        assert found.copy_to_host().tolist() == [begins.size, 0]
        same(room[::2][: begins.size], lengths)
        assert (room[::2].copy_to_host()[begins.size :] == -1).all()
        assert (room[1::2].copy_to_host() == -1).all()


def test_nan_is_a_run_of_its_own() -> None:
    x = np.array([np.nan, np.nan, 0.0, -0.0, np.inf, np.inf, np.nan])
    names, lengths = algorithms.run_length_encode(x)
    np.testing.assert_array_equal(names, [np.nan, np.nan, 0.0, np.inf, np.nan])
    assert lengths.tolist() == [1, 1, 2, 2, 1]
    np.testing.assert_array_equal(algorithms.unique(x), names)
    keys, values = algorithms.unique_by_key(x, np.arange(7))
    np.testing.assert_array_equal(keys, names)
    assert values.tolist() == [0, 1, 2, 4, 6]


def test_lengths_go_where_the_values_were() -> None:
    x = hip.to_device(np.repeat(np.arange(100), 50))
    algorithms.run_length_encode(x, out=(None, x))
    same(x[:100], np.full(100, 50))
    same(x[100:], np.repeat(np.arange(100), 50)[100:])


MAP = np.dtype([("slope", "u4"), ("shift", "u4")])


def follow(first: Any, second: Any) -> Any:
    return first[0] * second[0], first[1] * second[0] + second[1]


@pytest.mark.parametrize("algorithm", ["reduce_by_key", "scan_by_key", "segmented_scan"])
@pytest.mark.long
def test_runs_of_records(algorithm: str) -> None:
    """What is combined within runs and segments are records, over several tiles."""
    generator = np.random.default_rng(4)
    maps, keys = np.zeros(3001, MAP), np.sort(generator.integers(0, 9, 3001))
    maps["slope"], maps["shift"] = generator.integers(0, 2**32, (2, 3001))
    through, state = np.zeros_like(maps), (1, 0)
    for place, (slope, shift) in enumerate(maps.tolist()):
        is_first = place == 0 or keys[place] != keys[place - 1]
        state = (slope, shift) if is_first else (state[0] * slope % 2**32, (state[1] * slope + shift) % 2**32)
        through[place] = state
    ends = np.append(np.flatnonzero(np.diff(keys)), keys.size - 1)
    if algorithm == "reduce_by_key":
        found, totals = algorithms.reduce_by_key(keys, maps, follow)
        same(found, keys[ends])
        same(totals, through[ends])
    elif algorithm == "scan_by_key":
        same(algorithms.scan_by_key(keys, hip.to_device(maps), follow), through)
    else:
        same(algorithms.segmented_scan(maps, ends[:-1] + 1, follow), through)
