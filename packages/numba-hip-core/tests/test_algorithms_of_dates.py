"""Dates, times between them, NaN and integers of two types: the orders and combinations of ``hip.algorithms`` beside
NumPy."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import numba_hip as hip
from numba_hip import algorithms

Host = np.ndarray[Any, Any]
NAN = np.nan


def same(found: Any, wanted: Any) -> None:
    host = found.copy_to_host() if hip.is_device_array(found) else np.asarray(found)
    assert host.dtype == np.asarray(wanted).dtype
    np.testing.assert_array_equal(host, wanted)


@pytest.mark.parametrize("dtype", ["M8[s]", "m8[ns]"])
@pytest.mark.sample(1)
def test_dates_are_combined(dtype: str) -> None:
    x = np.random.default_rng(1).integers(-500, 500, 3001).astype(dtype)
    keys, on_device = np.arange(3001) // 7, hip.to_device(x)
    begins = np.arange(0, 3001, 7)
    same(algorithms.reduce(on_device, max), x.max())
    same(algorithms.reduce(on_device, np.minimum, commutative=False), x.min())
    same(algorithms.inclusive_scan(on_device, np.maximum), np.maximum.accumulate(x))
    same(algorithms.exclusive_scan(x, min, x[0]), np.minimum.accumulate(np.append(x[:1], x[:-1])))
    same(algorithms.reduce_by_key(keys, x, max)[1], np.maximum.reduceat(x, begins))
    same(algorithms.segmented_reduce(x, [*begins, 3001], max, x.min()), np.maximum.reduceat(x, begins))
    same(algorithms.merge(np.sort(x[:2000]), np.sort(x[2000:])), np.sort(x))
    x[5] = "NaT"
    same(algorithms.reduce(x, np.maximum), x.max())
    same(algorithms.reduce(x, np.fmax), np.fmax.reduce(x))
    same(algorithms.inclusive_scan(x, np.fmin), np.fmin.accumulate(x))


def test_times_are_summed_up() -> None:
    x = np.random.default_rng(1).integers(0, 500, 3001).astype("m8[s]")
    same(algorithms.reduce(x), x.sum())
    minute = np.timedelta64(1, "m")
    same(algorithms.inclusive_scan(hip.to_device(x), init=minute), np.cumsum(x) + minute)
    same(algorithms.exclusive_scan(x), np.cumsum(x) - x)
    pairs = algorithms.inclusive_scan(algorithms.ZipIterator(x, x), lambda a, b: (a[0] + b[0], max(a[1], b[1])))
    same(pairs["f0"], np.cumsum(x))
    same(pairs["f1"], np.maximum.accumulate(x))


ORDERED = [
    (np.array([-1, 0, 2, NAN, NAN], np.float32), np.array([NAN, 3, -5, 0, -0.0, 2, np.inf], np.float32)),
    (np.array(["2000-01-01", "2001-01-01", "NaT"], "M8[D]"), np.array(["1999-01-01", "2000-06-01", "NaT"], "M8[D]")),
    (np.array([-3, 1], np.int64), np.array([NAN, 0.5, 1, -np.inf])),
]


@pytest.mark.parametrize(("source", "wanted"), ORDERED)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.sample(2)
def test_searches_have_the_order_of_sorts(source: Host, wanted: Host, side: Any) -> None:
    same(algorithms.searchsorted(source, hip.to_device(wanted), side), np.searchsorted(source, wanted, side))


def test_integers_of_two_types_are_compared_as_they_are() -> None:
    unsigned = np.array([0, 2**53, 2**53 + 1, 2**63, 2**63 + 1, 2**64 - 1], np.uint64)
    signed = np.array([-1, 0, 2**53 + 1, 2**62, 2**63 - 1], np.int64)
    for source, wanted in ((unsigned, signed), (signed, unsigned)):
        left = [sum(int(one) < int(other) for one in source) for other in wanted]
        right = [sum(int(one) <= int(other) for one in source) for other in wanted]
        assert algorithms.searchsorted(source, wanted).tolist() == left
        assert algorithms.searchsorted(source, wanted, "right").tolist() == right


@pytest.mark.parametrize("is_by_thread", [True, False])
@pytest.mark.sample(1)
def test_merges_put_nan_last(is_by_thread: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba_hip.algorithms.merging.merges_by_thread", lambda operands: is_by_thread)
    first, second = np.array([-1, 0, 2, NAN, NAN], np.float32), np.array([-2, 1, NAN], np.float32)
    for one, other in ((first, second), (second, first)):
        same(algorithms.merge(one, hip.to_device(other)), np.sort(np.concatenate([first, second])))


def test_merges_of_two_types_have_both() -> None:
    few = np.array([1, 5], np.int32)
    same(algorithms.merge(few, np.array([2**40])), np.array([1, 5, 2**40]))
    same(algorithms.merge(few, np.array([1.5, 4.5])), np.array([1, 1.5, 4.5, 5]))
    same(algorithms.merge(np.array([1.5], np.float32), few, operator.lt), np.array([1, 1.5, 5]))


@pytest.mark.parametrize("makers", [hip.block, hip.wave])
@pytest.mark.sample(1)
def test_merge_sorts_of_a_group_put_nan_last(makers: Any) -> None:
    load, store = hip.block.make_load(np.float32, 32, 3), hip.block.make_store(np.float32, 32, 3)
    sort = makers.make_merge_sort_keys(np.float32, 32, 3)

    @hip.jit
    def sort_tile(x: Any) -> None:
        items = hip.local.array(3, np.float32)
        load(x, items)
        sort(items)
        store(x, items)

    x = np.random.default_rng(3).normal(size=96).astype(np.float32)
    x[::5] = NAN
    wanted = np.sort(x)
    sort_tile[1, 32](x)
    same(x, wanted)
    with pytest.raises(algorithms.AlgorithmError, match="dtype has values of type complex64, .*: pass compare_op="):
        makers.make_merge_sort_keys(np.complex64, 32, 3)


def test_what_counts_may_be_a_float() -> None:
    same(algorithms.inclusive_scan(algorithms.CountingIterator(0.5), count=4), np.array([0.5, 2, 4.5, 8]))


def test_bins_of_dates() -> None:
    x = np.arange(10).astype("M8[s]")
    assert algorithms.histogram_range(x, np.array([0, 5000, 20000], "M8[ms]")).tolist() == [5, 5]
