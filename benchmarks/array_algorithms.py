"""``python -m benchmarks.array_algorithms [--elements N] [--rounds N]``: `hip.algorithms` on the CPU device beside
NumPy, loops of ``njit``, and polars and pyarrow where they are installed.

Prints a table: milliseconds of processor time and, in brackets, of time on the clock, the least of all rounds, in which
all take turns. Results of all are compared before. Arrays have uint32; results go to arrays that are used again where a
library can do that, as a program would.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numba import hip
from numba.hip import algorithms

from benchmarks.comparison import MISSING, Call, Comparison, library, measure
from benchmarks.keyed_algorithms import keyed_comparisons

BINS = 256
SMALL = 1000


def is_large(value: Any) -> Any:
    """What is selected: a half."""
    return value >= SMALL // 2


def comparisons(elements: int) -> list[Comparison]:
    """All comparisons, on *elements* elements."""
    generator = np.random.default_rng(1)
    small = generator.integers(0, SMALL, elements).astype(np.uint32)
    large = generator.integers(0, 1 << 32, elements, dtype=np.uint32)
    ordered = np.sort(small)
    return [
        *_scans(small),
        *_sorts("sort", large),
        *_sorts("sort of small numbers", small),
        *_selections(small, ordered),
        *keyed_comparisons(elements),
    ]


def _scans(x: np.ndarray[Any, Any]) -> list[Comparison]:
    on_device, out, host = hip.to_device(x), hip.device_array(x.size, np.uint32), np.empty_like(x)
    counts, scale = hip.device_array(BINS, np.int64), SMALL // BINS + 1

    def scan() -> Any:
        algorithms.inclusive_scan(on_device, out=out)
        return out

    def histogram() -> Any:
        algorithms.histogram_even(on_device, BINS, 0, BINS * scale, out=counts)
        return counts

    return [
        Comparison("inclusive_scan", {"ours": scan, "NumPy": lambda: np.cumsum(x, dtype=np.uint32, out=host)}),
        Comparison(
            "reduce", {"ours": lambda: algorithms.reduce(on_device), "NumPy": lambda: np.sum(x, dtype=np.uint32)}
        ),
        Comparison(
            f"histogram_even, {BINS} bins",
            {"ours": histogram, "NumPy": lambda: np.histogram(x, BINS, (0, BINS * scale))[0]},
        ),
    ]


def _sorts(name: str, x: np.ndarray[Any, Any]) -> list[Comparison]:
    on_device, out = hip.to_device(x), hip.device_array(x.size, np.uint32)

    def sort() -> Any:
        algorithms.sort(on_device, out=out)
        return out

    calls: dict[str, Call] = {"ours": sort, "NumPy": lambda: np.sort(x)}
    polars, compute = library("polars"), library("pyarrow.compute")
    if polars is not MISSING:
        series = polars.Series(x)
        calls["polars"] = lambda: series.sort().to_numpy()
    if compute is not MISSING:
        arrow = library("pyarrow").array(x)
        calls["pyarrow"] = lambda: arrow.take(compute.sort_indices(arrow)).to_numpy()
    return [Comparison(name, calls)]


def _selections(x: np.ndarray[Any, Any], ordered: np.ndarray[Any, Any]) -> list[Comparison]:
    on_device, sorted_on_device = hip.to_device(x), hip.to_device(ordered)
    out, found = hip.device_array(x.size, np.uint32), hip.device_array(1, np.int64)

    def unique() -> Any:
        algorithms.unique(sorted_on_device, out=out, found=found)
        return out[: int(found.copy_to_host()[0])]

    def select() -> Any:
        algorithms.select(on_device, is_large, out=out, found=found)
        return out[: int(found.copy_to_host()[0])]

    of_sorted: dict[str, Call] = {"ours": unique, "NumPy": lambda: np.unique(ordered)}
    polars, compute = library("polars"), library("pyarrow.compute")
    if polars is not MISSING:
        series = polars.Series(ordered)
        of_sorted["polars"] = lambda: series.unique(maintain_order=True).to_numpy()
    if compute is not MISSING:
        arrow = library("pyarrow").array(ordered)
        of_sorted["pyarrow"] = lambda: compute.unique(arrow).to_numpy()
    chosen = {"ours": select, "NumPy": lambda: x[x >= SMALL // 2]}
    return [Comparison("unique of sorted values", of_sorted), Comparison("select, one half", chosen)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=1 << 24)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    libraries = ("ours", "NumPy", "njit", "polars", "pyarrow")
    print(f"| {options.elements:,} uint32 | {' | '.join(libraries)} |\n|{' --- |' * (len(libraries) + 1)}")
    with algorithms.Workspace():
        for comparison in comparisons(options.elements):
            found = measure(comparison, options.rounds)
            cells = [f"{found[one][0]:.1f} ({found[one][1]:.1f})" if one in found else "" for one in libraries]
            print(f"| {comparison.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
