"""Operations of a whole block, for kernels: ``hip.block``.

Functions called ``make_...`` make device functions for a type of values, a block shape and a number of items of each
thread; shared memory is part of what they make. All threads of the block call these together. Names follow
``cuda.coop``'s.
"""

from __future__ import annotations

from numba_hip.cooperative.groups import block_group, block_size, linear_rank
from numba_hip.cooperative.makers import Makers

_makers = Makers(block_group)

make_adjacent_difference = _makers.make_adjacent_difference
make_discontinuity = _makers.make_discontinuity
make_exchange = _makers.make_exchange
make_exclusive_scan = _makers.make_exclusive_scan
make_exclusive_sum = _makers.make_exclusive_sum
make_histogram = _makers.make_histogram
make_histogram_init = _makers.make_histogram_init
make_inclusive_scan = _makers.make_inclusive_scan
make_inclusive_sum = _makers.make_inclusive_sum
make_load = _makers.make_load
make_merge_sort_keys = _makers.make_merge_sort_keys
make_merge_sort_pairs = _makers.make_merge_sort_pairs
make_radix_rank = _makers.make_radix_rank
make_radix_sort_keys = _makers.make_radix_sort_keys
make_radix_sort_pairs = _makers.make_radix_sort_pairs
make_reduce = _makers.make_reduce
make_run_length_decode = _makers.make_run_length_decode
make_shuffle = _makers.make_shuffle
make_store = _makers.make_store
make_sum = _makers.make_sum
rank = linear_rank
size = block_size

__all__ = [
    "make_adjacent_difference",
    "make_discontinuity",
    "make_exchange",
    "make_exclusive_scan",
    "make_exclusive_sum",
    "make_histogram",
    "make_histogram_init",
    "make_inclusive_scan",
    "make_inclusive_sum",
    "make_load",
    "make_merge_sort_keys",
    "make_merge_sort_pairs",
    "make_radix_rank",
    "make_radix_sort_keys",
    "make_radix_sort_pairs",
    "make_reduce",
    "make_run_length_decode",
    "make_shuffle",
    "make_store",
    "make_sum",
    "rank",
    "size",
]
