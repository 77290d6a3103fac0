"""Operations of a whole block, for kernels: ``hip.block``.

Functions called ``make_...`` make device functions for a type of values, a block shape and a number of items of each
thread; shared memory is part of what they make. All threads of the block call these together. Names follow
``cuda.coop``'s.
"""

from __future__ import annotations

from numba_hip.cooperative.factories import Factories
from numba_hip.cooperative.groups import block_group, block_size, linear_rank

_factories = Factories(block_group)

make_adjacent_difference = _factories.make_adjacent_difference
make_discontinuity = _factories.make_discontinuity
make_exchange = _factories.make_exchange
make_exclusive_scan = _factories.make_exclusive_scan
make_exclusive_sum = _factories.make_exclusive_sum
make_histogram = _factories.make_histogram
make_histogram_init = _factories.make_histogram_init
make_inclusive_scan = _factories.make_inclusive_scan
make_inclusive_sum = _factories.make_inclusive_sum
make_load = _factories.make_load
make_merge_sort_keys = _factories.make_merge_sort_keys
make_merge_sort_pairs = _factories.make_merge_sort_pairs
make_radix_rank = _factories.make_radix_rank
make_radix_sort_keys = _factories.make_radix_sort_keys
make_radix_sort_pairs = _factories.make_radix_sort_pairs
make_reduce = _factories.make_reduce
make_run_length_decode = _factories.make_run_length_decode
make_shuffle = _factories.make_shuffle
make_store = _factories.make_store
make_sum = _factories.make_sum
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
