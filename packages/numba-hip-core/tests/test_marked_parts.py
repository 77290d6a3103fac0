"""Selections and runs beside NumPy, where the parts of the CPU device's threads meet, and as GPUs make them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numba_hip as hip
from numba_hip import algorithms
from numba_hip.algorithms import marked_parts, runs, selections

Host = np.ndarray[Any, Any]
PART, WORD = marked_parts.LEAST_IN_PART, marked_parts.WORD
SIZES = [
    1,
    WORD - 1,
    WORD + 1,
    marked_parts.MOST_AT_ONCE,
    marked_parts.MOST_AT_ONCE + 1,
    PART - 1,
    PART,
    PART + 1,
    3 * PART,
    5 * PART + 4 * WORD + 3,
]
MAP = np.dtype([("slope", "u4"), ("shift", "u4")])

SHARES = (0, 0.001, 0.02, 0.5, 0.9, 1)
LIMIT = 500

pytestmark = pytest.mark.usefixtures("way")


@pytest.fixture(params=["as chosen", "parts", "tiles"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "parts":
        monkeypatch.setattr(marked_parts, "MOST_AT_ONCE", 0)
    if request.param == "tiles":
        for module in (runs, selections):
            monkeypatch.setattr(module, "goes_by_parts", lambda operands: False)


def same(found: Any, wanted: Host) -> None:
    np.testing.assert_array_equal(found.copy_to_host() if hip.is_device_array(found) else found, wanted)


def keys_of(size: int) -> list[Host]:
    """Keys with runs of all lengths: those of one element, some within a word, and longer ones than several parts."""
    generator = np.random.default_rng(size)
    chances = (1.0, 0.5, 0.1, 0.01, 1 / PART, 0.0)
    found = [np.cumsum(generator.random(size) < chance) for chance in chances]
    return [*found, np.arange(size) // PART, (np.arange(size) + 1) // PART, np.arange(size) // (2 * PART + 5)]


def follow(first: Any, second: Any) -> Any:
    return first[0] * second[0], first[1] * second[0] + second[1]


def followed(maps: Host) -> tuple[int, int]:
    """All of *maps*, one after another, in plain Python."""
    made = 1, 0
    for one in maps.tolist():
        slope, shift = follow(made, one)
        made = slope % 2**32, shift % 2**32
    return made


def is_below(value: Any) -> bool:
    return value < LIMIT


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("algorithm", ["reduce_by_key", "unique_by_key", "unique", "scan_by_key", "exclusive scan"])
@pytest.mark.sample(2)
def test_runs_where_parts_meet(algorithm: str, size: int) -> None:
    x = np.random.default_rng(1).integers(-99, 99, size)
    on_device = hip.to_device(x)
    for keys in keys_of(size):
        begins = np.flatnonzero(np.diff(keys, prepend=-1))
        if algorithm == "reduce_by_key":
            names, sums = algorithms.reduce_by_key(hip.to_device(keys), on_device)
            same(names, keys[begins])
            same(sums, np.add.reduceat(x, begins))
        elif algorithm == "unique_by_key":
            names, firsts = algorithms.unique_by_key(keys, x)
            same(names, keys[begins])
            same(firsts, x[begins])
        elif algorithm == "unique":
            same(algorithms.unique(keys), keys[begins])
        else:
            through = np.cumsum(x)
            within = through - np.repeat((through - x)[begins], np.diff(begins, append=size))
            if algorithm == "scan_by_key":
                same(algorithms.scan_by_key(keys, on_device), within)
            else:
                same(algorithms.scan_by_key(keys, on_device, init=3, inclusive=False), within - x + 3)


@pytest.mark.parametrize("way", ["as chosen", "parts", pytest.param("tiles", marks=pytest.mark.long)], indirect=True)
@pytest.mark.parametrize("size", [PART + 1, 2 * PART + 77])
@pytest.mark.sample(1)
def test_functions_within_runs_follow_one_another(size: int) -> None:
    """They are combined in their order, also those of runs that go through parts."""
    generator = np.random.default_rng(2)
    maps = np.zeros(size, MAP)
    maps["slope"], maps["shift"] = generator.integers(0, 2**32, (2, size))
    for keys in keys_of(size)[1:6]:
        wanted = [followed(run) for run in np.split(maps, np.flatnonzero(np.diff(keys)) + 1)]
        _, totals = algorithms.reduce_by_key(keys, maps, follow)
        same(totals, np.array(wanted, MAP))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.sample(2)
def test_selections_where_parts_meet(size: int) -> None:
    generator = np.random.default_rng(3)
    found = hip.to_device(np.full(2, -1))
    for share in SHARES:  # of the data, so that one kernel serves all
        is_chosen = generator.random(size) < share
        x = (generator.integers(0, LIMIT, size) + LIMIT * ~is_chosen).astype(np.uint16)
        on_device, room = hip.to_device(x), hip.to_device(np.full(size + 1, 7, np.int64))
        wanted = x[is_chosen]
        algorithms.select(on_device, is_below, out=room, found=found)
        assert found.copy_to_host().tolist() == [wanted.size, -1]
        same(room[: wanted.size], wanted)
        same(room[wanted.size :], np.full(size + 1 - wanted.size, 7))
        same(algorithms.select(on_device, flags=is_chosen), wanted)


@pytest.mark.sample(1)
def test_only_what_is_chosen_of_an_iterator_is_read() -> None:
    x = np.arange(PART + 9) % 3
    inverse = algorithms.TransformIterator(x, lambda value: 6 // value)
    same(algorithms.select(inverse, flags=x > 0), 6 // x[x > 0])


@pytest.mark.sample(1)
def test_sums_of_runs_repeat_to_the_last_bit() -> None:
    keys = np.cumsum(np.random.default_rng(4).random(7 * PART) < 0.003)
    x = hip.to_device(np.random.default_rng(5).normal(size=keys.size).astype(np.float32))
    first, again = (algorithms.reduce_by_key(keys, x)[1].copy_to_host() for _ in range(2))
    assert first.tobytes() == again.tobytes()
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    np.testing.assert_allclose(first, np.add.reduceat(x.copy_to_host().astype(np.float64), begins), atol=1e-2)
