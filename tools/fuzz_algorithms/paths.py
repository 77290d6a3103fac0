"""What implementations decide by sizes and devices, decided otherwise: so that each way is taken with few values.

Only what the host decides can change: kernels are kept, with the numbers that they were compiled with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

import numba_hip as hip
from hip_runtime import config

ALGORITHMS = "numba_hip.algorithms"
PATHS: dict[str, dict[str, Any]] = {
    "many tiles": {"tiles.LEAST_ROWS": 1, "tiles.MOST_TILES": 70},
    "one row in a tile": {"tiles.LEAST_ROWS": 1},
    "rows ahead": {"tiled_scan.reads_ahead": lambda device: True, "reductions.reads_ahead": lambda device: True},
    "blocks sort": {
        "radix_sort.uses_blocks": lambda operands: True,
        "sorting.uses_blocks": lambda operands: True,
        "sorting.MEAN_OF_THREADS": 0,
    },
    "blocks sort longer parts": {
        "radix_sort.uses_blocks": lambda operands: True,
        "sorting.uses_blocks": lambda operands: True,
        "radix_sort.MOST_BLOCKS": 2,
    },
    "threads sort parts": {"radix_sort.MOST_IN_ONE": 1, "sorting.MOST_IN_ONE": 1, "radix_sort.LEAST_ON_CPU": 100},
    "wide digits": {"radix_sort.MOST_IN_ONE": 1, "sorting.MOST_IN_ONE": 1, "radix_sort.LEAST_OF_WIDE_DIGITS": 2},
    "segments together": {"sorting.MEAN_OF_THREADS": 0},
    "threads of GPUs merge": {"merging.merges_by_thread": lambda operands: False},
    "short merges": {"merging.RUN_ON_CPU": 16},
    "blocks count": {"histograms.counts_by_thread": lambda operands, bins: False},
    "the grid counts": {"histograms.MOST_BINS_IN_LDS": 0},
    "few blocks": {"histograms.MOST_BLOCKS": 1, "runs.MOST_BLOCKS": 1, "radix_selection.MOST_BLOCKS": 1},
    "short parts": {"histograms.LEAST_ON_CPU": 300, "selection_threads.LEAST_IN_PART": 300},
    "waves select": {"radix_selection.by_threads": lambda operands: False, "sorting.MOST_IN_ONE": 1},
    "all are sorted": {"sorting.LEAST_SHARE": 1 << 30},
    "few are selected": {"sorting.LEAST_SHARE": 1, "sorting.MOST_IN_ONE": 1},
}
"""What each way changes, in modules of `numba_hip.algorithms`."""

OF = {
    "sort": ("blocks sort", "blocks sort longer parts", "threads sort parts", "wide digits", "segments together"),
    "merge": ("threads of GPUs merge", "short merges"),
    "histogram": ("blocks count", "the grid counts", "few blocks", "short parts"),
    "topk": ("waves select", "all are sorted", "few are selected", "short parts", "few blocks"),
    "scan": ("many tiles", "one row in a tile", "rows ahead", "few blocks"),
}
"""The ways that kinds of algorithms may take."""


def draw_paths(shape: Random, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Some of the ways of algorithms of *kinds*."""
    possible = [path for kind in kinds for path in OF[kind]]
    return tuple(shape.sample(possible, min(shape.choice([0, 0, 1, 1, 2]), len(possible))))


@contextmanager
def forced(paths: tuple[str, ...], lanes: int | None) -> Iterator[None]:
    """Take *paths*, with waves of *lanes*, if the current device is the CPU device: others have ways of their own."""
    if not hip.get_current_device().is_cpu:
        yield
        return
    with ExitStack() as stack:
        for path in paths:
            for name, value in PATHS[path].items():
                stack.enter_context(patch(f"{ALGORITHMS}.{name}", value))
        if lanes is not None:
            stack.enter_context(config.cpu_wave_size.scope(lanes))
        yield
