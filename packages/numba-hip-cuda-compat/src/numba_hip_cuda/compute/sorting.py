"""Sorts: of numbers by their bits, by an operator, and within segments."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from hip_runtime import to_device
from numba_hip import algorithms
from numba_hip.errors import AlgorithmError
from numba_hip_cuda.compute.op import function_of
from numba_hip_cuda.compute.operands import array_of, count_of, first_of, stream_of
from numba_hip_cuda.compute.prepared import maker


class SortOrder(Enum):
    """From the least to the largest, or the other way."""

    ASCENDING = 0
    DESCENDING = 1


class DoubleBuffer:
    """Two arrays of the same size: `current` has what is sorted, `alternate` may be written. Sorting may swap them."""

    def __init__(self, d_current: Any, d_alternate: Any) -> None:
        self.d_buffers = [d_current, d_alternate]
        self.selector = 0

    def current(self) -> Any:
        """The array with the values."""
        return self.d_buffers[self.selector]

    def alternate(self) -> Any:
        """The other array."""
        return self.d_buffers[1 - self.selector]


def _pair(given: Any, out: Any, argument: str) -> tuple[Any, Any]:
    """The input and the output of *given* and *out*."""
    if not isinstance(given, DoubleBuffer):
        if given is not None and out is None:
            raise AlgorithmError(f"d_out_{argument} is None: pass an array, or a DoubleBuffer as d_in_{argument}")
        return given, out
    if out is not None:
        raise AlgorithmError(f"d_out_{argument} is given beside a DoubleBuffer, which has the output: pass None")
    return given.current(), given.alternate()


def _swap(*given: Any) -> None:
    for buffer in given:
        if isinstance(buffer, DoubleBuffer):
            buffer.selector = 1 - buffer.selector


def _is_descending(order: Any) -> bool:
    if not isinstance(order, SortOrder):
        raise AlgorithmError(f"order is {order!r}; pass SortOrder.ASCENDING or SortOrder.DESCENDING")
    return order is SortOrder.DESCENDING


def radix_sort(
    *,
    d_in_keys: Any,
    d_out_keys: Any = None,
    d_in_values: Any = None,
    d_out_values: Any = None,
    num_items: int,
    order: SortOrder,
    begin_bit: int | None = None,
    end_bit: int | None = None,
    stream: Any = None,
) -> None:
    """Sort *num_items* keys, with a value for each if given; equal keys keep their order. The bits from
    *begin_bit* up to and without *end_bit* are looked at, by default all."""
    descending = _is_descending(order)
    keys, keys_out = _pair(d_in_keys, d_out_keys, "keys")
    number, on = count_of(num_items, "num_items"), stream_of(stream)
    key_array = array_of(keys, number, "d_in_keys")[:number]
    values, values_out = _pair(d_in_values, d_out_values, "values")
    bits = {"begin_bit": 0 if begin_bit is None else begin_bit, "end_bit": end_bit}
    _sort(key_array, keys_out, values, values_out, number, on, descending=descending, **bits)
    _swap(d_in_keys, d_in_values)


def merge_sort(
    *,
    d_in_keys: Any,
    d_in_values: Any = None,
    d_out_keys: Any,
    d_out_values: Any = None,
    num_items: int,
    op: Any,
    stream: Any = None,
) -> None:
    """Sort *num_items* keys by *op*, which is true if its first argument is before its second; stable."""
    if (d_in_values is None) != (d_out_values is None):
        raise AlgorithmError("d_in_values and d_out_values: pass both, or neither")
    number, on = count_of(num_items, "num_items"), stream_of(stream)
    keys = first_of(d_in_keys, number, "d_in_keys", on)
    _sort(keys, d_out_keys, d_in_values, d_out_values, number, on, less=function_of(op, "op"))


def _sort(keys: Any, keys_out: Any, values: Any, values_out: Any, number: int, on: Any, **how: Any) -> None:
    out = array_of(keys_out, number, "d_out_keys")[:number]
    if values is None:
        algorithms.sort(keys, out=out, stream=on, **how)
        return
    items = first_of(values, number, "d_in_values", on)
    items_out = array_of(values_out, number, "d_out_values")[:number]
    algorithms.sort_by_key(keys, items, out=(out, items_out), stream=on, **how)


def segmented_sort(
    *,
    d_in_keys: Any,
    d_out_keys: Any = None,
    d_in_values: Any = None,
    d_out_values: Any = None,
    num_items: int,
    num_segments: int,
    start_offsets_in: Any,
    end_offsets_in: Any,
    order: SortOrder,
    stream: Any = None,
) -> None:
    """Sort the keys of each segment, from its start up to its end, with a value for each if given; equal keys keep
    their order. What is in no segment is not written. It waits for the offsets."""
    descending = _is_descending(order)
    number, on = count_of(num_items, "num_items"), stream_of(stream)
    segments = count_of(num_segments, "num_segments")
    keys, keys_out = _pair(d_in_keys, d_out_keys, "keys")
    values, values_out = _pair(d_in_values, d_out_values, "values")
    starts = _on_host(start_offsets_in, segments, "start_offsets_in", on)
    places, owners = _places(starts, _on_host(end_offsets_in, segments, "end_offsets_in", on), number)
    if len(places):
        key_array = array_of(keys, number, "d_in_keys")[:number]
        where = to_device(places)
        # Sorting is stable: by keys first, and then by segments.
        by_key = algorithms.argsort(algorithms.PermutationIterator(key_array, where), descending=descending, stream=on)
        owner = algorithms.gather(to_device(owners), by_key, check=False, stream=on)
        by_segment = algorithms.argsort(owner, stream=on)
        chain = algorithms.PermutationIterator(by_key, by_segment)
        sorted_from = algorithms.gather(where, chain, check=False, stream=on)
        _move(key_array, sorted_from, where, keys_out, number, "d_out_keys", on)
        if values is not None:
            items = array_of(values, number, "d_in_values")[:number]
            _move(items, sorted_from, where, values_out, number, "d_out_values", on)
    _swap(d_in_keys, d_in_values)


def _move(source: Any, sorted_from: Any, where: Any, out: Any, number: int, argument: str, on: Any) -> None:
    """Store what *source* has at *sorted_from* in *out*, at *where*."""
    moved = algorithms.gather(source, sorted_from, check=False, stream=on)
    algorithms.scatter(moved, where, array_of(out, number, argument), check=False, stream=on)


def _on_host(offsets: Any, count: int, argument: str, on: Any) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = first_of(offsets, count, argument, on).copy_to_host(stream=on)
    if on is not None:
        on.synchronize()
    return found.astype(np.int64)


def _places(starts: Any, ends: Any, number: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The places that belong to a segment, and its number for each. Raises `AlgorithmError` for places outside."""
    lengths = np.maximum(ends - starts, 0)
    used = lengths > 0
    if used.any() and (starts[used].min() < 0 or ends[used].max() > number):
        raise AlgorithmError(
            f"start_offsets_in and end_offsets_in reach from {starts[used].min()} to {ends[used].max()}; there are "
            f"{number} items"
        )
    owners = np.repeat(np.arange(len(starts)), lengths)
    before = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths), owners


make_radix_sort = maker(radix_sort, "order")
make_merge_sort = maker(merge_sort)
make_segmented_sort = maker(segmented_sort, "order")
