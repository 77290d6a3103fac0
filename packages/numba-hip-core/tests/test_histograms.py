"""Histograms of `hip.algorithms`: every value is counted where a comparison with the edges has it, and nowhere else."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import numba_hip as hip
from numba_hip import algorithms
from numba_hip.algorithms import histograms

Host = np.ndarray[Any, Any]
BINS = 40
SIZES = [0, 1, 2, 255, 256, 257, 16_383, 16_385, 70_001]
"""Nothing, what is found at once and what is left of it, and parts of several threads."""


def counted(x: Host, edges: Host) -> list[int]:
    return [int(((x >= a) & (x < b)).sum()) for a, b in itertools.pairwise(edges)]


def edges_of(kind: str) -> dict[str, Host]:
    """Edges that ascend, as each of these is for 40 bins."""
    generator, marks = np.random.default_rng(7), BINS + 1
    if kind[0] not in "f":
        info = np.iinfo(kind) if kind != "?" else np.iinfo("u1")
        low, high = int(info.min), int(info.max)
        whole = sorted(generator.integers(low // 2, high // 2, marks).tolist())
        return {
            "anywhere": np.array(whole, kind),
            "one after the other": np.arange(marks).astype("u1" if kind == "?" else kind),
            "of the type": np.array([low + (high - low) * k // BINS for k in range(marks)], kind),
            "the same": np.full(marks, 3, kind),
        }
    largest, least = np.finfo(kind).max, np.finfo(kind).smallest_subnormal
    around = np.geomspace(1e-3, 1e4, BINS // 2)
    return {
        "anywhere": np.sort(generator.normal(size=marks)).astype(kind),
        "alike": np.linspace(-2, 2, marks).astype(kind),
        "ratios": np.geomspace(1e-4, 1e4, marks).astype(kind),
        "ratios on both sides": np.concatenate([-around[::-1], [0], around]).astype(kind),
        "twice": np.repeat(np.linspace(-1, 1, BINS // 2 + 1), 2)[:marks].astype(kind),
        "the same": np.full(marks, 0.5, kind),
        "one far off": np.concatenate([np.linspace(0, 1, BINS), [largest]]).astype(kind),
        "as far as can be": np.concatenate(
            [[-np.inf, -largest], np.linspace(-1, 1, BINS - 3), [largest, np.inf]]
        ).astype(kind),
        "infinite": np.repeat([-np.inf, np.inf], [BINS // 2, BINS // 2 + 1]).astype(kind),
        "tiny": (np.arange(marks) * np.float64(least)).astype(kind),
        "around nothing": (np.repeat([-2.0, -1.0, -0.0, 0.0, 1.0], [1, 1, 19, 19, 1]) * np.float64(least)).astype(kind),
        "zeros": np.concatenate([[-1.0], np.full(BINS // 2, -0.0), np.full(BINS // 2, 0.0)]).astype(kind),
    }


def values_of(kind: str, size: int, edges: Host) -> Host:
    """Numbers around *edges*, these themselves and their neighbours, and what compares with nothing."""
    generator = np.random.default_rng(size)
    if kind == "?":
        return generator.integers(0, 2, size).astype(kind)
    if kind[0] != "f":
        near = np.concatenate([edges, edges - edges.dtype.type(1), edges + edges.dtype.type(1)]).astype(kind)
        info = np.iinfo(kind)
        anywhere = generator.integers(info.min, info.max, size, dtype=kind, endpoint=True)
        return np.where(generator.random(size) < 0.5, generator.choice(near, size), anywhere)
    with np.errstate(over="ignore", invalid="ignore"):
        same = edges.astype(kind)
        near = np.concatenate(
            [same, np.nextafter(same, same.dtype.type(np.inf)), np.nextafter(same, same.dtype.type(-np.inf))]
        )
        special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0]).astype(kind)
        anywhere = (generator.normal(size=size) * 10.0 ** generator.integers(-6, 5, size)).astype(kind)
    which = generator.integers(0, 8, size)
    return np.choose(which, [*[anywhere] * 4, *[generator.choice(near, size)] * 3, generator.choice(special, size)])


@pytest.mark.parametrize("kind", ["f4", "f8", "i4", "u1"])
@pytest.mark.sample(1)
def test_values_are_counted_between_their_edges(kind: str) -> None:
    for edges in edges_of(kind).values():
        for size in SIZES:
            x = values_of(kind, size, edges)
            found = algorithms.histogram_range(x, edges)
            assert found.dtype == np.int64
            assert found.tolist() == counted(x, edges)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["f2", "?", "i1", "i2", "u2", "u4", "i8", "u8"])
def test_values_of_other_types(kind: str) -> None:
    for edges in edges_of(kind).values():
        x = values_of(kind, 3001, edges)
        assert algorithms.histogram_range(x, edges).tolist() == counted(x, edges)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "of_edges"), [("f4", "f8"), ("i8", "u8"), ("u8", "i8"), ("i4", "f4"), ("f8", "i2")])
def test_edges_of_another_type(kind: str, of_edges: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value and an edge are compared in the type that has room for both, as NumPy does."""
    for edges in edges_of(of_edges).values():
        with np.errstate(over="ignore", invalid="ignore"):
            x = values_of(kind, 3001, edges)
        assert algorithms.histogram_range(x, edges).tolist() == counted(x, edges)
    if kind[0] != "f":
        monkeypatch.setattr(histograms, "MOST_BINS_IN_LDS", 1)
        assert algorithms.histogram_range(x, edges).tolist() == counted(x, edges)


@pytest.mark.long
@pytest.mark.parametrize("bins", [1, 2, 255, 256, histograms.MOST_BINS_IN_LDS, histograms.MOST_BINS_IN_LDS + 1])
def test_few_and_many_bins(bins: int) -> None:
    generator = np.random.default_rng(bins)
    x = generator.normal(size=70_001).astype(np.float32)
    edges = np.sort(generator.normal(size=bins + 1)).astype(np.float32)
    wanted = np.histogram(x[x != edges[-1]], edges)[0]
    np.testing.assert_array_equal(algorithms.histogram_range(x, edges), wanted)
    np.testing.assert_array_equal(algorithms.histogram_range(x[::-2], edges), np.histogram(x[::-2], edges)[0])


@pytest.mark.parametrize("bins", [BINS, 300, histograms.MOST_BINS_IN_LDS + 1])
@pytest.mark.parametrize("are_even", [False, True])
@pytest.mark.sample(1)
def test_what_gpus_do(are_even: bool, bins: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks count in shared memory, if that has room, on the CPU device as well as there."""
    monkeypatch.setattr(histograms, "counts_by_thread", lambda operands, bins: False)
    generator = np.random.default_rng(bins)
    for size in (1, 257, 70_001):
        if not are_even:
            x = generator.normal(size=size)
            x[1::5], x[2::7] = np.nan, np.inf
            edges = np.sort(generator.choice(x[np.isfinite(x)], bins + 1))
            assert algorithms.histogram_range(x, edges).tolist() == counted(x, edges)
            continue
        whole = generator.integers(-3, bins + 3, size)
        wanted = np.bincount(whole[(whole >= 0) & (whole < bins)], minlength=bins)
        np.testing.assert_array_equal(algorithms.histogram_even(whole, bins, 0, bins), wanted)


def test_edges_that_do_not_ascend_harm_nothing() -> None:
    """Those of the device, which are not looked at: each value is counted once or not at all, and nothing beside the
    bins changes."""
    generator = np.random.default_rng(1)
    x = values_of("f4", 5000, edges_of("f4")["anywhere"])
    for edges in (generator.normal(size=BINS + 1), np.linspace(1, -1, BINS + 1), np.full(BINS + 1, np.nan),
                  np.where(np.arange(BINS + 1) % 3, np.linspace(-1, 1, BINS + 1), np.nan)):  # fmt: skip
        room = hip.to_device(np.full(BINS + 20, -5))
        algorithms.histogram_range(x, hip.to_device(edges.astype(np.float32)), out=room[10:-10])
        around = room.copy_to_host()
        assert (around[:10] == -5).all()
        assert (around[-10:] == -5).all()
        assert around[10:-10].min() >= 0
        assert around[10:-10].sum() <= x.size


def test_dates_are_counted() -> None:
    x = np.arange("2024-01-01", "2024-03-01", dtype="M8[D]")
    x[7] = np.datetime64("NaT", "D")
    edges = np.array(["2024-01-01", "2024-02-01", "2024-02-28"], "M8[D]")
    assert algorithms.histogram_range(x, edges).tolist() == [30, 27]


def test_counts_are_of_this_call_alone() -> None:
    x, out = hip.to_device(np.arange(10, dtype=np.int32)), hip.to_device(np.full(5, 99))
    for _ in range(2):
        algorithms.histogram_range(x, np.array([2, 4, 9], np.int32), out=out)
        assert out.copy_to_host().tolist() == [2, 5, 99, 99, 99]
        algorithms.histogram_even(x, 2, 0, 8, out=out)
        assert out.copy_to_host().tolist() == [4, 4, 99, 99, 99]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("bins", [1, 7, 256])
@pytest.mark.sample(1)
def test_equal_parts(bins: int, size: int) -> None:
    generator = np.random.default_rng(size)
    x = generator.integers(-40, 300, size).astype(np.float64) / 4
    x[::11], x[1::13], x[2::17] = np.nan, np.inf, -np.inf
    within = x[(x >= -2) & (x < 64)]
    places = np.minimum((within + 2) * (bins / 66), bins - 1).astype(np.int64)
    wanted = np.bincount(places, minlength=bins)
    np.testing.assert_array_equal(algorithms.histogram_even(x, bins, -2, 64), wanted)
    np.testing.assert_array_equal(
        algorithms.histogram_even(hip.to_device(x)[::-1], bins, -2, 64).copy_to_host(), wanted
    )


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (-1.5 * 2.0**1023, 1.5 * 2.0**1023),
        (0.0, 64 * 5e-324),
        (-(2.0**-1000), 2.0**-1000),
        (2.0**-1020, 3 * 2.0**-1020),
    ],
)
def test_parts_of_what_is_too_wide_or_too_narrow_for_a_difference(lower: float, upper: float) -> None:
    """The difference of the bounds, or the number of parts in 1, is no number of float64."""
    edges = np.array([lower * (1 - part) + upper * part for part in (0, 0.25, 0.5, 0.75, 1)])
    sixteenth = upper / 16 - lower / 16
    x = np.concatenate([edges, edges - sixteenth, edges + sixteenth, [0.0, np.inf, -np.inf, np.nan, 1.0]])
    np.testing.assert_array_equal(algorithms.histogram_even(x, 4, lower, upper), counted(x, edges))


@pytest.mark.parametrize(
    ("lower", "upper", "told"),
    [
        (0, 2**1100, "upper is .*; pass a finite number of float64"),
        (-math.inf, 0, "lower is -inf; pass a finite number of float64"),
        ("0", 1, "lower is '0'; pass"),
        (0, 1j, "upper is 1j; pass"),
        (0, None, "upper is None; pass"),
        (2**80, 2**79, "pass the lower one first"),
        (2**60, 2**60 + 1, "pass bounds that differ as float64, where both are 1.15"),
        (math.nan, 0, "lower is nan; pass"),
    ],
    ids=range(8),
)
def test_bounds_that_are_no_numbers(lower: Any, upper: Any, told: str) -> None:
    with pytest.raises(algorithms.AlgorithmError, match=told):
        algorithms.histogram_even(np.ones(3), 4, lower, upper)


def test_bounds_that_are_large_integers() -> None:
    found = algorithms.histogram_even(np.array([2.0**70, 1.5 * 2**70, 2.0**71]), 2, 2**70, 2**71)
    np.testing.assert_array_equal(found, [1, 1])


@pytest.mark.parametrize(("bins", "lower", "upper"), [(3, -1.9, -0.2), (7, -1.1, 0.2), (100, -0.8, 1.0)])
@pytest.mark.sample(1)
def test_the_last_part_has_what_rounds_to_its_end(bins: int, lower: float, upper: float) -> None:
    below = np.nextafter(upper, lower)
    assert int((below - lower) * (bins / (upper - lower))) == bins
    room = hip.to_device(np.zeros(bins + 1, np.int64))
    algorithms.histogram_even(np.array([below, upper, lower]), bins, lower, upper, out=room)
    assert room.copy_to_host().tolist() == [1, *[0] * (bins - 2), 1, 0]
