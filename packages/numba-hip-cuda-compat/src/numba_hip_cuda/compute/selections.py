"""Selections, partitions, and unique keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from hip_runtime import as_device_array
from numba_hip import algorithms
from numba_hip.cooperative.operators import in_kernels
from numba_hip_cuda.compute.op import function_of
from numba_hip_cuda.compute.operands import array_of, count_of, first_of, new_array, store, stream_of
from numba_hip_cuda.compute.prepared import maker


def select(*, d_in: Any, d_out: Any, d_num_selected_out: Any, cond: Any, num_items: int, stream: Any = None) -> None:
    """Store the values of *d_in* for which *cond* is true in *d_out*, in their order, and how many there are in
    *d_num_selected_out*. *cond* is called once for each, so it may count what it sees."""
    number, on = count_of(num_items, "num_items"), stream_of(stream)
    source = first_of(d_in, number, "d_in", on)
    found = array_of(d_num_selected_out, 1, "d_num_selected_out")[:1]
    _select(source, function_of(cond, "cond"), d_out, "d_out", found, number, on)


def _select(source: Any, test: Any, target: Any, argument: str, found: Any, number: int, on: Any) -> None:
    flags = new_array(max(number, 1), np.bool_)[:number]
    algorithms.transform(test, source, count=number, out=flags, stream=on)
    if _has_room(target, number):
        algorithms.select(source, flags=flags, out=array_of(target, number, argument), found=found, stream=on)
        return
    results = algorithms.select(source, flags=flags, found=found, stream=on)
    store(results, target, int(found.copy_to_host(stream=on)[0]), argument, on)


def _has_room(target: Any, number: int) -> bool:
    """Whether *target* is an array for *number* results. A smaller one may do: how many there are is found first."""
    return hasattr(target, "__cuda_array_interface__") and as_device_array(target).size >= number


def three_way_partition(
    *,
    d_in: Any,
    d_first_part_out: Any,
    d_second_part_out: Any,
    d_unselected_out: Any,
    d_num_selected_out: Any,
    select_first_part_op: Any,
    select_second_part_op: Any,
    num_items: int,
    stream: Any = None,
) -> None:
    """Store the values of *d_in* for which *select_first_part_op* is true, those of the others for which
    *select_second_part_op* is, and the rest, in an output each; and how many the first two got in
    *d_num_selected_out*."""
    number, on = count_of(num_items, "num_items"), stream_of(stream)
    source = first_of(d_in, number, "d_in", on)
    counts = array_of(d_num_selected_out, 2, "d_num_selected_out")
    first = in_kernels(function_of(select_first_part_op, "select_first_part_op"), "select_first_part_op", 1)
    second = in_kernels(function_of(select_second_part_op, "select_second_part_op"), "select_second_part_op", 1)
    rest = new_array(1, np.int64)
    _select(source, first, d_first_part_out, "d_first_part_out", counts[0:1], number, on)
    _select(source, _only(first, second), d_second_part_out, "d_second_part_out", counts[1:2], number, on)
    _select(source, _neither(first, second), d_unselected_out, "d_unselected_out", rest, number, on)


def _only(first: Any, second: Any) -> Any:
    return lambda value: not first(value) and second(value)


def _neither(first: Any, second: Any) -> Any:
    return lambda value: not first(value) and not second(value)


def unique_by_key(
    *,
    d_in_keys: Any,
    d_in_items: Any,
    d_out_keys: Any,
    d_out_items: Any,
    d_out_num_selected: Any,
    op: Any,
    num_items: int,
    stream: Any = None,
) -> None:
    """Store the first key of each run of keys that are equal by *op*, and the item at its place; how many there are
    goes to *d_out_num_selected*."""
    number, on, equal = count_of(num_items, "num_items"), stream_of(stream), function_of(op, "op")
    keys, items = first_of(d_in_keys, number, "d_in_keys", on), first_of(d_in_items, number, "d_in_items", on)
    found = array_of(d_out_num_selected, 1, "d_out_num_selected")[:1]
    targets = (d_out_keys, "d_out_keys"), (d_out_items, "d_out_items")
    given = tuple(array_of(out, number, name) if _has_room(out, number) else None for out, name in targets)
    results = algorithms.unique_by_key(keys, items, equal, out=given, found=found, stream=on)  # type: ignore[arg-type]
    for result, direct, (target, name) in zip(results, given, targets, strict=True):
        if direct is None:
            store(result, target, int(found.copy_to_host(stream=on)[0]), name, on)


make_select = maker(select)
make_three_way_partition = maker(three_way_partition)
make_unique_by_key = maker(unique_by_key)
