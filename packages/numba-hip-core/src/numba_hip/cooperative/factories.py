"""Factories of the functions of `hip.block` and `hip.wave`: each is made for a type, a block and a number of items."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal

from numba.core import types

from numba_hip.cooperative import exchanges, histograms, neighbours, tile_scans, transfers, values
from numba_hip.cooperative.arguments import Extents, Threads, check_choice, checked_bits, checked_count, extents_of
from numba_hip.cooperative.groups import Group, wave_group
from numba_hip.cooperative.operators import in_kernels
from numba_hip.cooperative.orders import comparing, order_of
from numba_hip.cooperative.pair_sorts import merge_sort_keys, merge_sort_pairs, radix_sort_of
from numba_hip.cooperative.radix_ranks import ranking
from numba_hip.cooperative.runs import decoding
from numba_hip.errors import AlgorithmError

Operator = Callable[[Any, Any], Any]

EXCHANGES = ("striped_to_blocked", "blocked_to_striped", "scatter_to_blocked", "scatter_to_striped")
SHUFFLES = ("offset", "rotate", "up", "down")


class Factories:
    """Functions that make device functions for a kind of group: the block, or the waves of it."""

    def __init__(self, group_of: Callable[[Extents], Group]) -> None:
        self._group_of = group_of

    def _group(self, threads: Threads) -> Group:
        return self._group_of(extents_of(threads))

    # Reductions and scans.

    def make_reduce(
        self, dtype: Any, threads_per_block: Threads, binary_op: Operator, items_per_thread: int = 1
    ) -> Any:
        """A device function of (value, valid_items=None): the values of all threads combined by *binary_op*, in their
        order, for every thread; *valid_items* is how many count.

        With *items_per_thread* over 1 it takes an array of a thread's items in place of the value.
        """
        group, kind, items = self._group(threads_per_block), values.kind_of(dtype, "dtype"), _items(items_per_thread)
        combine = values.combining(in_kernels(binary_op, "binary_op"), kind, "binary_op")
        if items == 1:
            return tile_scans.value_reduction(group, kind, combine)
        return tile_scans.item_reduction(group, kind, items, combine)

    def make_sum(self, dtype: Any, threads_per_block: Threads, items_per_thread: int = 1) -> Any:
        """`make_reduce` with addition, for numbers."""
        _check_number(dtype)
        return self.make_reduce(dtype, threads_per_block, operator.add, items_per_thread)

    def make_inclusive_scan(
        self,
        dtype: Any,
        threads_per_block: Threads,
        scan_op: Operator,
        items_per_thread: int = 1,
        *,
        with_aggregate: bool = False,
    ) -> Any:
        """A device function of (value, initial=None): *initial* and the values up to this thread's combined by
        *scan_op*; with *with_aggregate*, that and what the values of all threads come to, without *initial*.

        With *items_per_thread* over 1 it takes an array of a thread's items, which it replaces, and returns what
        all items come to.
        """
        return self._scan(dtype, threads_per_block, scan_op, items_per_thread, True, with_aggregate)

    def make_exclusive_scan(
        self,
        dtype: Any,
        threads_per_block: Threads,
        scan_op: Operator,
        items_per_thread: int = 1,
        *,
        with_aggregate: bool = False,
    ) -> Any:
        """A device function of (value, initial): as that of `make_inclusive_scan`, without the thread's own value."""
        return self._scan(dtype, threads_per_block, scan_op, items_per_thread, False, with_aggregate)

    def make_inclusive_sum(
        self, dtype: Any, threads_per_block: Threads, items_per_thread: int = 1, *, with_aggregate: bool = False
    ) -> Any:
        """`make_inclusive_scan` with addition, for numbers."""
        _check_number(dtype)
        return self._scan(dtype, threads_per_block, operator.add, items_per_thread, True, with_aggregate)

    def make_exclusive_sum(
        self, dtype: Any, threads_per_block: Threads, items_per_thread: int = 1, *, with_aggregate: bool = False
    ) -> Any:
        """A device function of a value, or an array of items: `make_exclusive_scan` with addition, from 0 on."""
        _check_number(dtype)
        made = self._scan(dtype, threads_per_block, operator.add, items_per_thread, False, with_aggregate)
        return tile_scans.from_zero(made)

    def _scan(
        self, dtype: Any, threads: Threads, op: Operator, items_per_thread: int, inclusive: bool, aggregate: bool
    ) -> Any:
        group, kind, items = self._group(threads), values.kind_of(dtype, "dtype"), _items(items_per_thread)
        combine = values.combining(in_kernels(op, "scan_op"), kind, "scan_op")
        if items > 1:
            return tile_scans.item_scan(group, kind, items, combine, inclusive=inclusive)
        return tile_scans.value_scan(group, kind, combine, inclusive=inclusive, aggregate=bool(aggregate))

    # Sorts.

    def make_radix_sort_keys(
        self,
        dtype: Any,
        threads_per_block: Threads,
        items_per_thread: int,
        begin_bit: int = 0,
        end_bit: int | None = None,
        *,
        descending: bool = False,
        striped: bool = False,
    ) -> Any:
        """A device function of (keys, valid_items=None) that sorts the keys of all threads, numbers, stably, by their
        bits from *begin_bit* up to and without *end_bit*, by default all. NaN and NaT come last, with *descending*
        first. Keys from *valid_items* on stay behind. Keys are blocked, and with *striped* in the end striped."""
        group, kind, items = self._group(threads_per_block), _check_number(dtype), _items(items_per_thread)
        return radix_sort_of(group, kind, None, items, _bits(kind, begin_bit, end_bit), bool(descending), bool(striped))

    def make_radix_sort_pairs(
        self,
        key_dtype: Any,
        value_dtype: Any,
        threads_per_block: Threads,
        items_per_thread: int,
        begin_bit: int = 0,
        end_bit: int | None = None,
        *,
        descending: bool = False,
        striped: bool = False,
    ) -> Any:
        """A device function of (keys, values, valid_items=None): as that of `make_radix_sort_keys`, with values that
        go with the keys."""
        group, kind, items = self._group(threads_per_block), _check_number(key_dtype), _items(items_per_thread)
        value = values.kind_of(value_dtype, "value_dtype")
        bits = _bits(kind, begin_bit, end_bit)
        return radix_sort_of(group, kind, value, items, bits, bool(descending), bool(striped))

    def make_merge_sort_keys(
        self, dtype: Any, threads_per_block: Threads, items_per_thread: int, compare_op: Operator | None = None
    ) -> Any:
        """A device function of (keys, valid_items=None) that sorts the keys of all threads stably, blocked, where
        *compare_op* tells whether one comes before another: without it in the order of numbers, NaN and NaT last. Keys
        from *valid_items* on stay as they are."""
        group, kind, items = self._group(threads_per_block), values.kind_of(dtype, "dtype"), _items(items_per_thread)
        return merge_sort_keys(group, kind, items, _comparison(compare_op, kind, "dtype"))

    def make_merge_sort_pairs(
        self,
        key_dtype: Any,
        value_dtype: Any,
        threads_per_block: Threads,
        items_per_thread: int,
        compare_op: Operator | None = None,
    ) -> Any:
        """A device function of (keys, values, valid_items=None): as that of `make_merge_sort_keys`, with values that
        go with the keys."""
        group, items = self._group(threads_per_block), _items(items_per_thread)
        key, value = values.kind_of(key_dtype, "key_dtype"), values.kind_of(value_dtype, "value_dtype")
        return merge_sort_pairs(group, key, value, items, _comparison(compare_op, key, "key_dtype"))

    def make_radix_rank(self, threads_per_block: Threads, items_per_thread: int, bits: int = 4) -> Any:
        """A device function of (digits, ranks), arrays of a thread's items: where each digit, an integer of *bits*
        bits, goes if those of all threads are sorted stably."""
        bits = checked_count(bits, "bits", 8)
        return ranking(self._group(threads_per_block), _items(items_per_thread), bits)

    # Movements.

    def make_exchange(self, dtype: Any, threads_per_block: Threads, items_per_thread: int, pattern: str) -> Any:
        """A device function of an array of items that changes what each thread has: "striped_to_blocked" or
        "blocked_to_striped"; or, of (items, ranks), takes each item to the place that *ranks* has for it, of a blocked
        or a striped order: "scatter_to_blocked", "scatter_to_striped". Negative ranks take an item nowhere."""
        check_choice(pattern, "pattern", EXCHANGES)
        group, kind, items = self._group(threads_per_block), values.kind_of(dtype, "dtype"), _items(items_per_thread)
        source, _, target = pattern.partition("_to_")
        places = {"blocked": exchanges.blocked, "striped": exchanges.striped}
        if source == "scatter":
            return exchanges.scattering(group, kind, items, places[target])
        return exchanges.rearrangement(group, kind, items, places[source], places[target])

    def make_load(
        self, dtype: Any, threads_per_block: Threads, items_per_thread: int, algorithm: str = "direct"
    ) -> Any:
        """A device function of (source, items, valid_items=None, default=None) that loads a group's tile, from element
        0 of *source* on: give each wave its own part. From *valid_items* on, items are *default*, or undefined without
        one.

        *algorithm*: "direct" and "vectorize", in which each thread reads neighbours; "striped", which leaves items
        striped; "transpose" and "warp_transpose", which read striped and exchange, in the group or in each wave.
        """
        return self._transfer(transfers.loading, dtype, threads_per_block, items_per_thread, algorithm)

    def make_store(
        self, dtype: Any, threads_per_block: Threads, items_per_thread: int, algorithm: str = "direct"
    ) -> Any:
        """A device function of (target, items, valid_items=None): the opposite of that of `make_load`."""
        return self._transfer(transfers.storing, dtype, threads_per_block, items_per_thread, algorithm)

    def _transfer(self, make: Any, dtype: Any, threads: Threads, items_per_thread: int, algorithm: str) -> Any:
        check_choice(algorithm, "algorithm", transfers.ALGORITHMS)
        kind, items = values.kind_of(dtype, "dtype"), _items(items_per_thread)
        return make(self._group(threads), wave_group(extents_of(threads)), kind, items, algorithm)

    def make_shuffle(
        self,
        dtype: Any,
        threads_per_block: Threads,
        pattern: Literal["offset", "rotate", "up", "down"],
        items_per_thread: int = 1,
    ) -> Any:
        """A device function of (value, distance): the value of the thread that is *distance* higher, or this thread's
        own if there is none ("offset"), or around the end ("rotate"). With "up" and "down", of (items, shifted):
        each item goes to the next place, or the one before; the place at the end keeps its own."""
        check_choice(pattern, "pattern", SHUFFLES)
        group, kind, items = self._group(threads_per_block), values.kind_of(dtype, "dtype"), _items(items_per_thread)
        if pattern in ("up", "down"):
            return neighbours.shifting(group, kind, items, up=pattern == "up")
        if items != 1:
            raise AlgorithmError(f"items_per_thread is {items}; pattern {pattern!r} moves one value of each thread")
        return neighbours.moving_by(group, kind, around=pattern == "rotate")

    # Neighbours, runs and histograms.

    def make_discontinuity(
        self,
        dtype: Any,
        threads_per_block: Threads,
        items_per_thread: int,
        flag_op: Operator = operator.ne,
        *,
        tails: bool = False,
    ) -> Any:
        """A device function of (items, flags, outside=None): flags are 1 where *flag_op* of an item's neighbour before
        it and of the item is true, with *tails* of an item and the one behind it. For the first, or the last, the
        neighbour is *outside*, and its flag 1 without one."""
        group, kind, items = self._group(threads_per_block), values.kind_of(dtype, "dtype"), _items(items_per_thread)
        differ = values.deciding(in_kernels(flag_op, "flag_op"), (kind, kind), "flag_op")
        return neighbours.flagging(group, kind, items, differ, heads=not tails)

    def make_adjacent_difference(
        self,
        dtype: Any,
        threads_per_block: Threads,
        items_per_thread: int,
        difference_op: Operator = operator.sub,
        *,
        right: bool = False,
    ) -> Any:
        """A device function of (items, differences): *difference_op* of each item and the one before it, with *right*
        the one behind it; the first, or the last, stays as it is."""
        group, kind, items = self._group(threads_per_block), values.kind_of(dtype, "dtype"), _items(items_per_thread)
        return neighbours.subtracting(group, kind, items, in_kernels(difference_op, "difference_op"), left=not right)

    def make_run_length_decode(
        self, dtype: Any, threads_per_block: Threads, runs_per_thread: int, decoded_items_per_thread: int
    ) -> Any:
        """A device function of (values, lengths, decoded, start=0): each value as often as its length says, one behind
        the other; *decoded* gets those from *start* on, blocked, as many as fit. Returns how many there are."""
        group, kind = self._group(threads_per_block), values.kind_of(dtype, "dtype")
        runs = checked_count(runs_per_thread, "runs_per_thread", MOST_ITEMS)
        items = checked_count(decoded_items_per_thread, "decoded_items_per_thread", MOST_ITEMS)
        return decoding(group, kind, runs, items)

    def make_histogram(
        self,
        dtype: Any,
        threads_per_block: Threads,
        items_per_thread: int,
        bins: int,
        algorithm: Literal["atomic", "sort"] = "atomic",
    ) -> Any:
        """A device function of (items, counts) that adds to element b of *counts*, an array of *bins* elements that the
        group shares, how many items are b. "sort", which sorts the items, has one addition for each bin."""
        check_choice(algorithm, "algorithm", histograms.ALGORITHMS)
        kind = _check_number(dtype)
        if not isinstance(kind, types.Integer):
            raise AlgorithmError(f"dtype is {dtype!r}; items of a histogram are integers, the numbers of bins")
        count = checked_count(bins, "bins")
        return histograms.counting(self._group(threads_per_block), kind, _items(items_per_thread), count, algorithm)

    def make_histogram_init(self, threads_per_block: Threads, bins: int) -> Any:
        """A device function of *counts*, an array that the group shares: sets its *bins* elements to 0."""
        return histograms.filling(self._group(threads_per_block), checked_count(bins, "bins"))


MOST_ITEMS = 256


def _items(value: Any) -> int:
    return checked_count(value, "items_per_thread", MOST_ITEMS)


def _check_number(dtype: Any) -> types.Type:
    kind = values.kind_of(dtype, "dtype")
    if isinstance(kind, types.BaseTuple):
        raise AlgorithmError(f"dtype is {dtype!r}; this takes numbers: of tuples and records, pass an operator")
    return kind


def _bits(kind: types.Type, begin: Any, end: Any) -> tuple[int, int]:
    return checked_bits(values.dtypes_of(kind, "dtype")[0].itemsize * 8, begin, end)


def _comparison(compare_op: Operator | None, kind: types.Type, argument: str) -> Any:
    """What tells whether a key of *kind* comes before another."""
    if compare_op is None:
        return order_of(kind, kind, argument, "compare_op")
    return comparing(compare_op, (kind, kind), "compare_op")
