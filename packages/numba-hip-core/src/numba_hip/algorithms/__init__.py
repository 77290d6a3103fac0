"""Algorithms over whole arrays, on any device: ``hip.algorithms``.

They take arrays of the device or the host and iterators, and functions of Python as operators. Names and behaviour
follow Thrust's and those of ``cuda.compute``. Results are the same, to the last bit, each time.
"""

from numba_hip.algorithms.elementwise import gather, scatter, transform
from numba_hip.algorithms.histograms import histogram_even, histogram_range
from numba_hip.algorithms.iterators import (
    CacheModifiedInputIterator,
    ConstantIterator,
    CountingIterator,
    Iterator,
    PermutationIterator,
    ReverseIterator,
    TransformIterator,
    ZipIterator,
)
from numba_hip.algorithms.merging import merge
from numba_hip.algorithms.reductions import reduce, segmented_reduce, transform_reduce
from numba_hip.algorithms.runs import (
    reduce_by_key,
    run_length_encode,
    scan_by_key,
    segmented_scan,
    unique,
    unique_by_key,
)
from numba_hip.algorithms.scans import exclusive_scan, inclusive_scan
from numba_hip.algorithms.searching import searchsorted
from numba_hip.algorithms.selections import partition, select
from numba_hip.algorithms.sorting import argsort, segmented_sort, sort, sort_by_key, topk
from numba_hip.algorithms.workspaces import Workspace
from numba_hip.errors import AlgorithmError

__all__ = [
    "AlgorithmError", "CacheModifiedInputIterator", "ConstantIterator", "CountingIterator", "Iterator",
    "PermutationIterator", "ReverseIterator", "TransformIterator", "Workspace", "ZipIterator", "argsort",
    "exclusive_scan", "gather", "histogram_even", "histogram_range", "inclusive_scan", "merge", "partition", "reduce",
    "reduce_by_key", "run_length_encode", "scan_by_key", "scatter", "searchsorted", "segmented_reduce",
    "segmented_scan", "segmented_sort", "select", "sort", "sort_by_key", "topk", "transform", "transform_reduce",
    "unique", "unique_by_key",
]  # fmt: skip
