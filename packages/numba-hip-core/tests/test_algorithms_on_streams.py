"""Every algorithm on a stream, behind what the stream does before, and in a graph; and the same bits each time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numba_hip as hip
from numba_hip import algorithms

SIZE = 3000
OFFSETS = np.array([0, 5, 5, 700, 701, SIZE])


def is_odd(value: Any) -> Any:
    return value % 2 == 1


def is_behind(first: Any, second: Any) -> Any:
    return first > second


def doubled(value: Any) -> Any:
    return 2 * value


Call = Callable[["Setting"], Any]
"""Calls an algorithm with arrays and the stream of a setting."""

CALLS: dict[str, Call] = {
    "argsort": lambda s: algorithms.argsort(s.x, out=s.wide, stream=s.stream),
    "argsort by a function": lambda s: algorithms.argsort(s.x, is_behind, out=s.wide, stream=s.stream),
    "exclusive_scan": lambda s: algorithms.exclusive_scan(s.x, out=s.out, stream=s.stream),
    "gather": lambda s: algorithms.gather(s.x, s.places, check=False, out=s.out, stream=s.stream),
    "histogram_even": lambda s: algorithms.histogram_even(s.x, 9, 0, 100, out=s.bins, stream=s.stream),
    "histogram_range": lambda s: algorithms.histogram_range(s.x, s.edges, out=s.bins, stream=s.stream),
    "inclusive_scan": lambda s: algorithms.inclusive_scan(s.x, max, out=s.out, stream=s.stream),
    "merge": lambda s: algorithms.merge(s.ordered, s.ordered, out=s.twice, stream=s.stream),
    "partition": lambda s: algorithms.partition(s.x, is_odd, out=s.out, found=s.found, stream=s.stream),
    "reduce": lambda s: algorithms.reduce(s.x, out=s.one, stream=s.stream),
    "reduce_by_key": lambda s: algorithms.reduce_by_key(
        s.ordered, s.x, out=(s.out, s.wide), found=s.found, stream=s.stream
    ),
    "run_length_encode": lambda s: algorithms.run_length_encode(
        s.ordered, out=(s.out, s.wide), found=s.found, stream=s.stream
    ),
    "scan_by_key": lambda s: algorithms.scan_by_key(s.ordered, s.x, out=s.wide, stream=s.stream),
    "scatter": lambda s: algorithms.scatter(s.x, s.places, s.out, check=False, stream=s.stream),
    "searchsorted": lambda s: algorithms.searchsorted(s.ordered, s.x, out=s.wide, stream=s.stream),
    "segmented_reduce": lambda s: algorithms.segmented_reduce(s.x, s.offsets, out=s.segments, stream=s.stream),
    "segmented_scan": lambda s: algorithms.segmented_scan(s.x, s.offsets, out=s.wide, stream=s.stream),
    "segmented_sort": lambda s: algorithms.segmented_sort(s.x, s.offsets, out=s.out, stream=s.stream),
    "select": lambda s: algorithms.select(s.x, is_odd, out=s.out, found=s.found, stream=s.stream),
    "sort": lambda s: algorithms.sort(s.x, out=s.out, stream=s.stream),
    "sort by a function": lambda s: algorithms.sort(s.x, is_behind, out=s.out, stream=s.stream),
    "sort_by_key": lambda s: algorithms.sort_by_key(s.x, s.places, out=(s.out, s.wide), stream=s.stream),
    "topk": lambda s: algorithms.topk(s.x, 40, out=(s.few, s.few_places), stream=s.stream),
    "transform": lambda s: algorithms.transform(doubled, s.x, out=s.out, stream=s.stream),
    "transform_reduce": lambda s: algorithms.transform_reduce(s.x, doubled, out=s.one, stream=s.stream),
    "unique": lambda s: algorithms.unique(s.ordered, out=s.out, found=s.found, stream=s.stream),
    "unique_by_key": lambda s: algorithms.unique_by_key(
        s.ordered, s.x, out=(s.out, s.wide), found=s.found, stream=s.stream
    ),
}


class Setting:
    """Arrays on the device that a call reads, those that it may write to, and a stream, None for the default one."""

    def __init__(self, stream: Any = None) -> None:
        self.stream = stream
        self.x, self.ordered = hip.zeros(SIZE, np.int32), hip.zeros(SIZE, np.int32)
        self.places = hip.to_device(np.random.default_rng(3).permutation(SIZE))
        self.offsets, self.edges = hip.to_device(OFFSETS), hip.to_device(np.array([-9, 0, 3, 50, 51, 200], np.int32))
        self.out, self.twice, self.wide = hip.zeros(SIZE, np.int32), hip.zeros(2 * SIZE, np.int32), zeros(SIZE)
        self.bins, self.one, self.segments = zeros(9), zeros(1), zeros(5)
        self.few, self.few_places, self.found = hip.zeros(40, np.int32), zeros(40), zeros(1)
        stream.synchronize() if stream else hip.synchronize()

    def give(self, seed: int, stream: Any = None) -> None:
        values = np.random.default_rng(seed).integers(0, 100, SIZE, np.int32)
        for target, source in ((self.x, values), (self.ordered, np.sort(values))):
            target.copy_to_device(source, stream=stream) if stream else target.copy_to_device(source)

    def results(self) -> list[np.ndarray]:
        names = ("out", "twice", "wide", "bins", "one", "segments", "few", "few_places", "found")
        return [getattr(self, name).copy_to_host() for name in names]


def zeros(count: int) -> Any:
    return hip.zeros(count, np.int64)


def expect(call: Call, seed: int) -> list[np.ndarray]:
    """What the call gives on the default stream."""
    plain = Setting()
    plain.give(seed)
    call(plain)
    hip.synchronize()
    results = plain.results()
    assert any(found.any() for found in results)
    return results


def test_all_algorithms_are_here() -> None:
    functions = {name for name in algorithms.__all__ if callable(getattr(algorithms, name)) and name.islower()}
    assert functions == {name.split(" ")[0] for name in CALLS}


@hip.jit
def fill_late(source: Any, target: Any, turns: int) -> None:
    """Copies after a while, which depends on what it copies."""
    i = hip.grid(1)
    if i < target.size:
        value = source[i]
        for _ in range(turns):
            value = (value * 1103515245 + 12345) & 0x7FFFFFFF
        target[i] = source[i] if value >= 0 else -1


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CALLS)
def test_a_stream_does_one_thing_after_another(name: str) -> None:
    """The elements arrive on the stream, by a kernel that takes its time, when the algorithm has been called."""
    stream = hip.stream()
    setting, late = Setting(stream), Setting()
    late.give(8)
    hip.synchronize()
    CALLS[name](setting)  # compiled
    stream.synchronize()
    turns = 2000 if hip.get_current_device().is_cpu else 2
    for source, target in ((late.x, setting.x), (late.ordered, setting.ordered)):
        fill_late[SIZE // 100, 100, stream](source, target, turns)
    CALLS[name](setting)
    stream.synchronize()
    for found, wanted in zip(setting.results(), expect(CALLS[name], 8), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CALLS)
def test_a_graph_of_each_runs_with_what_is_there_then(name: str) -> None:
    stream = hip.stream()
    setting = Setting(stream)
    setting.give(8, stream)
    with algorithms.Workspace():
        CALLS[name](setting)
        stream.synchronize()
        with stream.capture() as graph:
            CALLS[name](setting)
    fresh = Setting(stream)
    for kept in ("out", "twice", "wide", "bins", "one", "segments", "few", "few_places", "found"):
        getattr(setting, kept).copy_to_device(getattr(fresh, kept).copy_to_host())
    setting.give(21, stream)
    graph.instantiate().launch(stream)
    stream.synchronize()
    for found, wanted in zip(setting.results(), expect(CALLS[name], 21), strict=True):
        np.testing.assert_array_equal(found, wanted)


SUMS = """
import hashlib, numpy as np, numba_hip as hip
from numba_hip import algorithms
random = np.random.default_rng(5)
x = hip.to_device((random.random(300_001) * 10.0 ** random.integers(-9, 9, 300_001)).astype(np.float32))
keys = hip.to_device(np.sort(random.integers(0, 900, 300_001)).astype(np.int32))
offsets = np.array([0, 7, 100_000, 300_001])
digest = hashlib.sha256()
for turn in range(3):
    results = (
        np.float32(algorithms.reduce(x)), algorithms.inclusive_scan(x),
        algorithms.segmented_reduce(x, offsets), algorithms.reduce_by_key(keys, x)[1], algorithms.scan_by_key(keys, x),
    )
    made = b"".join(np.asarray(result).tobytes() for result in results)
    print(hashlib.sha256(made).hexdigest())
"""


@pytest.mark.long
@pytest.mark.cpu_device("processes with other numbers of threads are started")
def test_sums_have_the_same_bits_each_time_and_on_any_number_of_threads() -> None:
    found = []
    for threads in (1, 2, 5):
        environment = {**os.environ, "NUMBA_HIP_DEVICE": "cpu", "NUMBA_HIP_CPU_THREADS": str(threads)}
        run = subprocess.run(
            [sys.executable, "-c", SUMS], capture_output=True, text=True, env=environment, check=True, timeout=120
        )
        found.append(run.stdout.split())
    assert len(found[0]) == 3
    assert len(set(found[0])) == len(set(found[1])) == len(set(found[2])) == 1
    assert found[0] == found[1] == found[2]
