"""Comparisons for `benchmarks.array_algorithms`: sorts with values, searches, segments and runs."""

from __future__ import annotations

import itertools
from typing import Any

import numba
import numpy as np
from numba import hip
from numba.hip import algorithms

from benchmarks.comparison import MISSING, Call, Comparison, library

Host = np.ndarray[Any, Any]
BINS = 256
WANTED = 100
SEGMENTS = 1000


def keyed_comparisons(elements: int) -> list[Comparison]:
    """All comparisons of this module, on *elements* elements."""
    generator = np.random.default_rng(2)
    x = generator.integers(0, 1 << 32, elements, dtype=np.uint32)
    numbers = generator.random(elements, dtype=np.float32)
    ordered = np.sort(generator.integers(0, SEGMENTS, elements).astype(np.uint32))
    return [
        _histogram(numbers),
        _sort_of_floats(numbers),
        _argsort(x),
        _sort_by_key(x),
        _topk(x),
        _segmented_sort(x),
        _merge(np.sort(x), np.sort(generator.integers(0, 1 << 32, elements, dtype=np.uint32))),
        *(_search(x, count) for count in (SEGMENTS, max(elements // 16, 1))),
        _lengths(ordered),
        _unique_by_key(ordered),
        _sums_by_key(ordered),
    ]


def _histogram(x: Host) -> Comparison:
    edges = np.sort(np.random.default_rng(3).random(BINS + 1, dtype=np.float32))
    edges[-1] = 1.0  # which no value is: NumPy counts what is the last edge
    on_device, of_bins, out = hip.to_device(x), hip.to_device(edges), hip.device_array(BINS, np.int64)
    calls: dict[str, Call] = {
        "ours": lambda: algorithms.histogram_range(on_device, of_bins, out=out),
        "NumPy": lambda: np.histogram(x, edges)[0],
    }
    return Comparison(f"histogram_range, {BINS} bins, float32", calls)


def _sort_of_floats(x: Host) -> Comparison:
    on_device, out = hip.to_device(x), hip.device_array(x.size, x.dtype)
    calls: dict[str, Call] = {"ours": lambda: algorithms.sort(on_device, out=out), "NumPy": lambda: np.sort(x)}
    polars = library("polars")
    if polars is not MISSING:
        series = polars.Series(x)
        calls["polars"] = lambda: series.sort().to_numpy()
    return Comparison("sort of float32", calls)


def _argsort(x: Host) -> Comparison:
    on_device, out = hip.to_device(x), hip.device_array(x.size, np.int64)
    calls: dict[str, Call] = {
        "ours": lambda: algorithms.argsort(on_device, out=out),
        "NumPy": lambda: np.argsort(x, kind="stable"),
    }
    compute = library("pyarrow.compute")
    if compute is not MISSING:
        arrow = library("pyarrow").array(x)
        calls["pyarrow"] = lambda: compute.sort_indices(arrow).to_numpy()
    return Comparison("argsort", calls)


def _sort_by_key(x: Host) -> Comparison:
    given = np.arange(x.size, dtype=np.uint32)
    keys, values = hip.to_device(x), hip.to_device(given)
    out = hip.device_array(x.size, np.uint32), hip.device_array(x.size, np.uint32)

    def with_numpy() -> Any:
        order = np.argsort(x, kind="stable")
        return x[order], given[order]

    calls: dict[str, Call] = {"ours": lambda: algorithms.sort_by_key(keys, values, out=out), "NumPy": with_numpy}
    polars = library("polars")
    if polars is not MISSING:
        frame = polars.DataFrame({"key": x, "value": given})
        calls["polars"] = lambda: _columns(frame.sort("key", maintain_order=True))
    return Comparison("sort_by_key, uint32 values", calls)


def _columns(frame: Any) -> tuple[Any, ...]:
    return tuple(column.to_numpy() for column in frame.get_columns())


def _topk(x: Host) -> Comparison:
    count = min(WANTED, x.size)
    on_device, out = hip.to_device(x), (hip.device_array(count, np.uint32), hip.device_array(count, np.int64))
    calls: dict[str, Call] = {
        "ours": lambda: algorithms.topk(on_device, count, out=out)[0],
        "NumPy": lambda: np.sort(x[np.argpartition(x, x.size - count)[x.size - count :]])[::-1],
    }
    polars, compute = library("polars"), library("pyarrow.compute")
    if polars is not MISSING:
        series = polars.Series(x)
        calls["polars"] = lambda: series.top_k(count).sort(descending=True).to_numpy()
    if compute is not MISSING:
        arrow = library("pyarrow").array(x)
        options = compute.SelectKOptions(k=count, sort_keys=[("", "descending")])
        calls["pyarrow"] = lambda: arrow.take(compute.select_k_unstable(arrow, options=options)).to_numpy()
    return Comparison(f"topk, {WANTED}", calls)


def _segmented_sort(x: Host) -> Comparison:
    offsets = np.linspace(0, x.size, SEGMENTS + 1).astype(np.int64)
    on_device, bounds, out = hip.to_device(x), hip.to_device(offsets), hip.device_array(x.size, np.uint32)

    def with_numpy() -> Any:
        made = x.copy()
        for start, end in itertools.pairwise(offsets):
            made[start:end].sort()
        return made

    calls: dict[str, Call] = {
        "ours": lambda: algorithms.segmented_sort(on_device, bounds, out=out),
        "NumPy": with_numpy,
    }
    return Comparison(f"segmented_sort, {SEGMENTS:,} segments", calls)


@numba.njit
def merge_loop(first: Any, second: Any, out: Any) -> Any:
    """What one writes by hand."""
    i = j = 0
    for place in range(out.size):
        if j == second.size or (i < first.size and first[i] <= second[j]):
            out[place] = first[i]
            i += 1
        else:
            out[place] = second[j]
            j += 1
    return out


def _merge(first: Host, second: Host) -> Comparison:
    one, other, out = hip.to_device(first), hip.to_device(second), hip.device_array(2 * first.size, np.uint32)
    host = np.empty(2 * first.size, np.uint32)
    calls: dict[str, Call] = {
        "ours": lambda: algorithms.merge(one, other, out=out),
        "NumPy": lambda: np.sort(np.concatenate([first, second]), kind="stable"),
        "njit": lambda: merge_loop(first, second, host),
    }
    polars = library("polars")
    if polars is not MISSING:
        frames = [polars.DataFrame({"key": x}) for x in (first, second)]
        calls["polars"] = lambda: frames[0].merge_sorted(frames[1], key="key")["key"].to_numpy()
    return Comparison("merge of two such", calls)


def _search(x: Host, count: int) -> Comparison:
    ordered = np.sort(np.random.default_rng(4).integers(0, 1 << 32, count, dtype=np.uint32))
    source, wanted, out = hip.to_device(ordered), hip.to_device(x), hip.device_array(x.size, np.int64)
    calls: dict[str, Call] = {
        "ours": lambda: algorithms.searchsorted(source, wanted, out=out),
        "NumPy": lambda: np.searchsorted(ordered, x),
    }
    polars = library("polars")
    if polars is not MISSING:
        series = polars.Series(ordered)
        calls["polars"] = lambda: series.search_sorted(x, side="left").to_numpy()
    return Comparison(f"searchsorted in {count:,}", calls)


@numba.njit
def runs_loop(x: Any, total: Any, names: Any, numbers: Any) -> Any:
    """Where runs begin, their lengths or sums of *total*, by hand."""
    found = -1
    for i in range(x.size):
        if i == 0 or x[i] != x[i - 1]:
            found += 1
            names[found], numbers[found] = x[i], 0
        numbers[found] += total[i]
    return names[: found + 1], numbers[: found + 1]


def _begins(x: Host) -> Host:
    return np.flatnonzero(np.concatenate([np.ones(1, bool), x[1:] != x[:-1]]))


def _lengths(x: Host) -> Comparison:
    on_device, found = hip.to_device(x), hip.device_array(1, np.int64)
    out = hip.device_array(x.size, np.uint32), hip.device_array(x.size, np.int64)

    def ours() -> Any:
        algorithms.run_length_encode(on_device, out=out, found=found)
        count = int(found.copy_to_host()[0])
        return out[0][:count], out[1][:count]

    def with_numpy() -> Any:
        begins = _begins(x)
        return x[begins], np.diff(np.append(begins, x.size))

    calls: dict[str, Call] = {"ours": ours, "NumPy": with_numpy}
    polars, compute = library("polars"), library("pyarrow.compute")
    if polars is not MISSING:
        series = polars.Series(x)
        calls["polars"] = lambda: _columns(series.rle().struct.unnest())[::-1]
    if compute is not MISSING:
        arrow = library("pyarrow").array(x)

        def with_arrow() -> Any:
            encoded = compute.run_end_encode(arrow)
            return encoded.values.to_numpy(), np.diff(encoded.run_ends.to_numpy(), prepend=0)

        calls["pyarrow"] = with_arrow
    return Comparison("run_length_encode of sorted values", calls)


def _unique_by_key(x: Host) -> Comparison:
    given = np.arange(x.size, dtype=np.uint32)
    keys, values, found = hip.to_device(x), hip.to_device(given), hip.device_array(1, np.int64)
    out = hip.device_array(x.size, np.uint32), hip.device_array(x.size, np.uint32)

    def ours() -> Any:
        algorithms.unique_by_key(keys, values, out=out, found=found)
        count = int(found.copy_to_host()[0])
        return out[0][:count], out[1][:count]

    def with_numpy() -> Any:
        begins = _begins(x)
        return x[begins], given[begins]

    calls: dict[str, Call] = {"ours": ours, "NumPy": with_numpy}
    polars = library("polars")
    if polars is not MISSING:
        frame = polars.DataFrame({"key": x, "value": given})
        calls["polars"] = lambda: _columns(frame.unique("key", keep="first", maintain_order=True))
    return Comparison("unique_by_key of sorted keys", calls)


def _sums_by_key(x: Host) -> Comparison:
    given = np.arange(x.size, dtype=np.uint32)
    keys, values, found = hip.to_device(x), hip.to_device(given), hip.device_array(1, np.int64)
    out = hip.device_array(x.size, np.uint32), hip.device_array(x.size, np.uint32)
    names, sums = np.empty_like(x), np.empty_like(x)

    def ours() -> Any:
        algorithms.reduce_by_key(keys, values, out=out, found=found)
        count = int(found.copy_to_host()[0])
        return out[0][:count], out[1][:count]

    def with_numpy() -> Any:
        begins = _begins(x)
        return x[begins], np.add.reduceat(given, begins, dtype=np.uint32)

    calls: dict[str, Call] = {"ours": ours, "NumPy": with_numpy, "njit": lambda: runs_loop(x, given, names, sums)}
    return Comparison("reduce_by_key of sorted keys", calls)
