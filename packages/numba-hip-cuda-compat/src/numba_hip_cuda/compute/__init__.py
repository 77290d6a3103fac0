"""What programs find as `cuda.compute` while posing: its names, over `numba_hip.algorithms`."""

from __future__ import annotations

from numba_hip_cuda.compute.algorithms import (
    DoubleBuffer,
    SortOrder,
    binary_transform,
    exclusive_scan,
    histogram_even,
    inclusive_scan,
    lower_bound,
    make_binary_transform,
    make_exclusive_scan,
    make_histogram_even,
    make_inclusive_scan,
    make_lower_bound,
    make_merge_sort,
    make_radix_sort,
    make_reduce_into,
    make_segmented_reduce,
    make_segmented_sort,
    make_select,
    make_three_way_partition,
    make_unary_transform,
    make_unique_by_key,
    make_upper_bound,
    merge_sort,
    radix_sort,
    reduce_into,
    segmented_reduce,
    segmented_sort,
    select,
    three_way_partition,
    unary_transform,
    unique_by_key,
    upper_bound,
)
from numba_hip_cuda.compute.determinism import Determinism
from numba_hip_cuda.compute.iterators import (
    CacheModifiedInputIterator,
    ConstantIterator,
    CountingIterator,
    DiscardIterator,
    PermutationIterator,
    ReverseIterator,
    ShuffleIterator,
    TransformIterator,
    TransformOutputIterator,
    ZipIterator,
)
from numba_hip_cuda.compute.op import OpKind
from numba_hip_cuda.compute.prepared import clear_all_caches
from numba_hip_cuda.compute.struct import gpu_struct
from numba_hip_cuda.compute.unavailable import ProxyArray, ProxyValue, deserialize, serialize
from numba_hip_cuda.name_lookup import UnavailableNameError

__all__ = [
    "CacheModifiedInputIterator", "ConstantIterator", "CountingIterator", "Determinism", "DiscardIterator",
    "DoubleBuffer", "OpKind", "PermutationIterator", "ProxyArray", "ProxyValue", "ReverseIterator", "ShuffleIterator",
    "SortOrder", "TransformIterator", "TransformOutputIterator", "ZipIterator", "binary_transform", "clear_all_caches",
    "deserialize", "exclusive_scan", "gpu_struct", "histogram_even", "inclusive_scan", "lower_bound",
    "make_binary_transform", "make_exclusive_scan", "make_histogram_even", "make_inclusive_scan", "make_lower_bound",
    "make_merge_sort", "make_radix_sort", "make_reduce_into", "make_segmented_reduce", "make_segmented_sort",
    "make_select", "make_three_way_partition", "make_unary_transform", "make_unique_by_key", "make_upper_bound",
    "merge_sort", "radix_sort", "reduce_into", "segmented_reduce", "segmented_sort", "select", "serialize",
    "three_way_partition", "unary_transform", "unique_by_key", "upper_bound",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name == "types":
        raise UnavailableNameError(
            "cuda.compute.types has no counterpart on HIP: it describes values for compiled operators of NVIDIA's; "
            "pass functions of Python and NumPy's dtypes"
        )
    raise AttributeError(f"module 'cuda.compute' has no attribute {name!r} (numba_hip_cuda poses as cuda.compute)")
