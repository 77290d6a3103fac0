"""Reductions and scans."""

from __future__ import annotations

from typing import Any

import numpy as np

from numba_hip import algorithms
from numba_hip_cuda.compute.determinism import Determinism
from numba_hip_cuda.compute.op import function_of
from numba_hip_cuda.compute.operands import (
    count_of,
    counter,
    first_of,
    initial_of,
    new_array,
    run_into,
    source_of,
    stream_of,
)
from numba_hip_cuda.compute.prepared import maker


def reduce_into(
    *,
    d_in: Any,
    d_out: Any,
    num_items: int,
    op: Any,
    h_init: Any,
    stream: Any = None,
    determinism: Determinism = Determinism.RUN_TO_RUN,
) -> None:
    """Store *h_init* and *num_items* values of *d_in*, combined by *op*, in *d_out*."""
    number, on, initial = count_of(num_items, "num_items"), stream_of(stream), initial_of(h_init, "h_init")
    combine, source = function_of(op, "op"), source_of(d_in, number, "d_in", h_init)

    def run(out: Any) -> Any:
        target = new_array(1, _dtype_of(initial)) if out is None else out
        algorithms.reduce(source, combine, initial, count=number, out=target, stream=on)
        return target

    run_into(d_out, 1, "d_out", on, run)


def _dtype_of(initial: Any) -> Any:
    return np.asarray(initial).dtype


def segmented_reduce(
    *,
    d_in: Any,
    d_out: Any,
    num_segments: int,
    start_offsets_in: Any,
    end_offsets_in: Any,
    op: Any,
    h_init: Any,
    max_segment_size: int | None = None,
    stream: Any = None,
) -> None:
    """Store *h_init* and the values of *d_in* of each segment, from its start up to its end, combined, in *d_out*."""
    number, on, initial = count_of(num_segments, "num_segments"), stream_of(stream), initial_of(h_init, "h_init")
    combine = function_of(op, "op")
    if not number:
        return
    # Starts and ends by turns are the borders of twice as many segments: each second one is what is between two.
    borders = new_array(2 * number, np.int64)
    for offsets, place in ((start_offsets_in, _even), (end_offsets_in, _odd)):
        places = algorithms.TransformIterator(counter(), place)
        algorithms.scatter(offsets, places, borders, count=number, check=False, stream=on)
    source = source_of(d_in, 0, "d_in", h_init)
    if isinstance(source, algorithms.Iterator):
        source = first_of(source, max(int(borders.copy_to_host(stream=on).max()), 0), "d_in", on)
    every = algorithms.segmented_reduce(source, borders, combine, initial, stream=on)
    places = algorithms.TransformIterator(counter(), _even)
    wanted = algorithms.PermutationIterator(every, places)

    def run(out: Any) -> Any:
        return algorithms.transform(_same, wanted, count=number, out=out, stream=on)

    run_into(d_out, number, "d_out", on, run)


def _even(i: Any) -> Any:
    return 2 * i


def _odd(i: Any) -> Any:
    return 2 * i + 1


def _same(value: Any) -> Any:
    return value


def inclusive_scan(
    *, d_in: Any, d_out: Any, op: Any, init_value: Any = None, num_items: int, stream: Any = None
) -> None:
    """Store for each value of *d_in* what *init_value* (if given), all before it and it come to, in *d_out*."""
    number, on, initial = count_of(num_items, "num_items"), stream_of(stream), initial_of(init_value, "init_value")
    combine, source = function_of(op, "op"), source_of(d_in, number, "d_in", init_value)

    def run(out: Any) -> Any:
        return algorithms.inclusive_scan(source, combine, init=initial, count=number, out=out, stream=on)

    run_into(d_out, number, "d_out", on, run)


def exclusive_scan(*, d_in: Any, d_out: Any, op: Any, init_value: Any, num_items: int, stream: Any = None) -> None:
    """Store for each value of *d_in* what *init_value* and all before it come to, in *d_out*."""
    number, on, initial = count_of(num_items, "num_items"), stream_of(stream), initial_of(init_value, "init_value")
    combine, source = function_of(op, "op"), source_of(d_in, number, "d_in", init_value)

    def run(out: Any) -> Any:
        return algorithms.exclusive_scan(source, combine, initial, count=number, out=out, stream=on)

    run_into(d_out, number, "d_out", on, run)


make_reduce_into = maker(reduce_into)
make_segmented_reduce = maker(segmented_reduce)
make_inclusive_scan = maker(inclusive_scan)
make_exclusive_scan = maker(exclusive_scan)
