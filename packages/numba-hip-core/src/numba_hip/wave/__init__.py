"""Operations of a whole wave, CUDA's warp, for kernels: ``hip.wave``.

All lanes of a wave call a function together, as they do for ``hip.shfl``. Values are numbers of any type, or tuples of
numbers. An *operator* takes two values and is associative; it need not be commutative: lanes are combined in their
order. It is a device function, or a function of Python's or NumPy's such as ``max``, ``operator.add`` and
``np.minimum``.

Functions called ``make_...`` are those of `hip.block` for each wave of a block: what they make takes the threads of
the block for the shared memory of its waves.
"""

from __future__ import annotations

from numba_hip.cooperative.factories import Factories
from numba_hip.cooperative.groups import wave_group
from numba_hip.cooperative.lanes import (
    aggregate_of,
    broadcast,
    exclusive_scan,
    inclusive_scan,
    rank,
    reduce,
    shuffle,
    shuffle_down,
    shuffle_up,
    shuffle_xor,
)

_factories = Factories(wave_group)

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

__all__ = [
    "aggregate_of",
    "broadcast",
    "exclusive_scan",
    "inclusive_scan",
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
    "reduce",
    "shuffle",
    "shuffle_down",
    "shuffle_up",
    "shuffle_xor",
]
