"""Dates, times between them, NaN and integers of two types: the orders and combinations of ``hip.algorithms`` beside
NumPy."""

from __future__ import annotations

import itertools
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


DATES = np.random.default_rng(1).integers(-500, 500, 3001)
BEGINS = np.arange(0, 3001, 7)
COMBINATIONS = {
    "reduce": lambda x: (algorithms.reduce(hip.to_device(x), max), x.max()),
    "reduce in order": lambda x: (algorithms.reduce(x, np.minimum, commutative=False), x.min()),
    "scan": lambda x: (algorithms.inclusive_scan(hip.to_device(x), np.maximum), np.maximum.accumulate(x)),
    "exclusive scan": lambda x: (
        algorithms.exclusive_scan(x, min, x[0]), np.minimum.accumulate(np.append(x[:1], x[:-1])),
    ),
    "reduce by key": lambda x: (
        algorithms.reduce_by_key(np.arange(3001) // 7, x, max)[1], np.maximum.reduceat(x, BEGINS),
    ),
    "segmented reduce": lambda x: (
        algorithms.segmented_reduce(x, [*BEGINS, 3001], max, x.min()), np.maximum.reduceat(x, BEGINS),
    ),
    "merge": lambda x: (algorithms.merge(np.sort(x[:2000]), np.sort(x[2000:])), np.sort(x)),
}  # fmt: skip
"""A result of ``hip.algorithms`` for dates or times *x*, and NumPy's."""
COMBINATIONS_WITH_NAT = {
    "reduce to NaT": lambda x: (algorithms.reduce(x, np.maximum), x.max()),
    "reduce without NaT": lambda x: (algorithms.reduce(x, np.fmax), np.fmax.reduce(x)),
    "scan without NaT": lambda x: (algorithms.inclusive_scan(x, np.fmin), np.fmin.accumulate(x)),
}


MINUTE = np.timedelta64(1, "m")
SUMS = {
    "sum": lambda x: (algorithms.reduce(x), x.sum()),
    "sums": lambda x: (algorithms.inclusive_scan(hip.to_device(x), init=MINUTE), np.cumsum(x) + MINUTE),
    "sums before": lambda x: (algorithms.exclusive_scan(x), np.cumsum(x) - x),
}
"""The same for times *x* alone: dates have no sum."""

ANY = COMBINATIONS | COMBINATIONS_WITH_NAT


@pytest.mark.parametrize(
    ("name", "dtype"), [*itertools.product(ANY, ["M8[s]", "m8[ns]"]), *((name, "m8[s]") for name in SUMS)]
)
@pytest.mark.sample(1)
def test_dates_and_times_are_combined(name: str, dtype: str) -> None:
    x = DATES.astype(dtype)
    if name in COMBINATIONS_WITH_NAT:
        x[5] = "NaT"
    same(*(ANY | SUMS)[name](x))


TIMES = np.random.default_rng(1).integers(0, 500, 3001).astype("m8[s]")


@pytest.mark.long
def test_pairs_of_times_are_combined() -> None:
    x = TIMES
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


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("finds_signed", [False, True])
@pytest.mark.sample(2)
def test_integers_of_two_types_are_compared_as_they_are(finds_signed: bool, side: Any) -> None:
    unsigned = np.array([0, 2**53, 2**53 + 1, 2**63, 2**63 + 1, 2**64 - 1], np.uint64)
    signed = np.array([-1, 0, 2**53 + 1, 2**62, 2**63 - 1], np.int64)
    source, wanted = (unsigned, signed) if finds_signed else (signed, unsigned)
    comes_before = operator.lt if side == "left" else operator.le
    places = [sum(comes_before(int(one), int(other)) for one in source) for other in wanted]
    assert algorithms.searchsorted(source, wanted, side).tolist() == places


@pytest.mark.parametrize("is_by_thread", [True, False])
@pytest.mark.sample(1)
def test_merges_put_nan_last(is_by_thread: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba_hip.algorithms.merging.merges_by_thread", lambda operands: is_by_thread)
    first, second = np.array([-1, 0, 2, NAN, NAN], np.float32), np.array([-2, 1, NAN], np.float32)
    for one, other in ((first, second), (second, first)):
        same(algorithms.merge(one, hip.to_device(other)), np.sort(np.concatenate([first, second])))


@pytest.mark.parametrize(
    ("first", "second", "compare", "wanted"),
    [
        (np.array([1, 5], np.int32), np.array([2**40]), (), np.array([1, 5, 2**40])),
        (np.array([1, 5], np.int32), np.array([1.5, 4.5]), (), np.array([1, 1.5, 4.5, 5])),
        (np.array([1.5], np.float32), np.array([1, 5], np.int32), (operator.lt,), np.array([1, 1.5, 5])),
    ],
    ids=["i4-i8", "i4-f8", "f4-i4"],
)
@pytest.mark.sample(1)
def test_merges_of_two_types_have_both(first: Host, second: Host, compare: Any, wanted: Host) -> None:
    same(algorithms.merge(first, second, *compare), wanted)


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
