"""Results of algorithms that go to memory that they read: the array itself, in another order, or some elements on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hip_runtime import DeviceArray
from numba_hip import algorithms, to_device

SIZE = 300_000
X = np.random.default_rng(1).integers(0, 1000, SIZE).astype(np.int32)
PLACES = np.random.default_rng(2).permutation(SIZE)
CHANGES = np.concatenate([[True], X[1:] != X[:-1]])


def is_large(value: Any) -> Any:
    return value > 500


def after(value: Any) -> Any:
    return value + 1


CALLS: dict[str, tuple[Callable[[DeviceArray, DeviceArray], Any], np.ndarray[Any, Any]]] = {
    "transform": (lambda x, out: algorithms.transform(after, x, out=out), X + 1),
    "reversed": (lambda x, out: algorithms.transform(after, algorithms.ReverseIterator(x), out=out), X[::-1] + 1),
    "scan": (lambda x, out: algorithms.inclusive_scan(x, out=out), np.cumsum(X, dtype=np.int32)),
    "select": (lambda x, out: algorithms.select(x, is_large, out=out), X[X > 500]),
    "partition": (lambda x, out: algorithms.partition(x, is_large, out=out)[0],
                  np.concatenate([X[X > 500], X[X <= 500]])),
    "unique": (lambda x, out: algorithms.unique(x, out=out), X[CHANGES]),
    "sort": (lambda x, out: algorithms.sort(x, out=out), np.sort(X)),
    "gather": (lambda x, out: algorithms.gather(x, to_device(PLACES), out=out), X[PLACES]),
    "scatter": (lambda x, out: algorithms.scatter(x, to_device(PLACES), out), X[np.argsort(PLACES)]),
}  # fmt: skip


@pytest.mark.parametrize("shift", [0, 500, -500])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.sample(1)
def test_results_where_the_source_is(name: str, shift: int) -> None:
    call, expected = CALLS[name]
    room = to_device(np.concatenate([np.full(500, -1, np.int32), X, np.full(500, -2, np.int32)]))
    out = room[500 + shift : 500 + shift + SIZE]
    found = call(room[500 : 500 + SIZE], out)
    np.testing.assert_array_equal(found.copy_to_host(), expected)
    assert found.address == out.address
    around = room.copy_to_host()
    np.testing.assert_array_equal(around[: min(500, 500 + shift)], -1)
    np.testing.assert_array_equal(around[max(500, 500 + shift) + SIZE :], -2)


def test_what_is_behind_fewer_results_stays() -> None:
    x = to_device(X)
    count = len(algorithms.select(x, is_large, out=x))
    np.testing.assert_array_equal(x.copy_to_host()[count:], X[count:])


def test_what_is_behind_fewer_results_on_the_host_stays() -> None:
    """Where kernels cannot work in the memory of the host, as it is read or has steps."""
    x, room = X[:5000].copy(), np.full(10_000, -1, np.int32)
    chosen, lengths = X[:5000][X[:5000] > 500], np.flatnonzero(CHANGES[:5000]).size
    assert len(algorithms.select(x, is_large, out=x)) == chosen.size
    np.testing.assert_array_equal(x, np.concatenate([chosen, X[chosen.size : 5000]]))
    found, _ = algorithms.run_length_encode(X[:5000], out=(room[::2], np.zeros(5000, np.int64)))
    assert len(found) == lengths
    np.testing.assert_array_equal(room[::2], np.where(np.arange(5000) < lengths, room[::2], -1))
    np.testing.assert_array_equal(found, X[:5000][CHANGES[:5000]])


def test_keys_and_values_that_change_places() -> None:
    keys, values = to_device(X), to_device(np.arange(SIZE, dtype=np.int32))
    algorithms.sort_by_key(keys, values, out=(values, keys))
    order = np.argsort(X, kind="stable")
    np.testing.assert_array_equal(values.copy_to_host(), X[order])
    np.testing.assert_array_equal(keys.copy_to_host(), order)


def test_a_sum_in_the_first_place_of_what_is_summed_up() -> None:
    x = to_device(X)
    algorithms.reduce(x, out=x[:1])
    np.testing.assert_array_equal(x.copy_to_host(), np.concatenate([[X.sum()], X[1:]]))


@pytest.mark.parametrize("step", [1, -1])
def test_neighbours_in_turns_share_no_element(step: int) -> None:
    x = to_device(X)
    algorithms.transform(after, x[::2], out=x[1::2][::step])
    np.testing.assert_array_equal(x.copy_to_host()[1::2], (X[::2] + 1)[::step])
