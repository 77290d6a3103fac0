"""Merging of sorted values, and stable merge sorts by a function that compares two values.

Each thread finds by bisection where its part of the result begins in both inputs, and merges from there (Green,
McColl, Bader, "GPU merge path", 2012).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numba.core import types

from hip_runtime.array import StreamLike
from numba_hip.algorithms.elementwise import THREADS
from numba_hip.algorithms.operands import Operands, Operator
from numba_hip.algorithms.readers import count_of
from numba_hip.cooperative import values
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.orders import comparing, order_of
from numba_hip.cooperative.value_functions import converted_to
from numba_hip.cooperative.value_parts import is_date, is_like, is_number
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError
from numba_hip.language.untyped_names import grid

RUN = 16
"""Elements that a thread sorts by insertion, and that it merges on a GPU."""

RUN_ON_CPU = 1024
"""Elements that a thread merges on the CPU device, at most: finding where they begin takes longer than some merging."""


def merge(first: Any, second: Any, less: Operator | None = None, *, out: Any = None, stream: StreamLike = None) -> Any:
    """The values of *first* and *second*, each sorted by *less*, sorted together; of equal ones, *first*'s come
    before. Without *less* the order is that of `sort`, NaN and NaT last. Numbers of two types become one that has
    both."""
    operands = Operands(stream)
    one, other = operands.reader(first, "first"), operands.reader(second, "second")
    ahead, behind = count_of(one, None, "first"), count_of(other, None, "second")
    kind = _common_type(operands.type_of(one.read, "first"), operands.type_of(other.read, "second"))
    compare = order_of(kind, kind, "first") if less is None else comparing(less, (kind, kind))
    target = operands.output(out, "out", ahead + behind, kind)
    if ahead + behind:
        convert = converted_to(kind)
        reads = (values.read_transformed(one.read, convert), values.read_transformed(other.read, convert))
        part = merge_part_of(operands, *reads, operands.writer(target, kind), compare)
        run = RUN_ON_CPU if merges_by_thread(operands) else RUN
        _merge_kernel(part)[_shape(operands, ahead + behind, run)](ahead, behind, run, *operands.leaves)
    return operands.finish(target, out)


def _common_type(first: types.Type, second: types.Type) -> types.Type:
    """The type of values that has those of *first* and *second*. Raises `AlgorithmError` if there is none."""
    one, other = values.dtypes_of(first, "first"), values.dtypes_of(second, "second")
    if one == other and is_like(second, first):
        return first
    if is_number(first) and is_number(second) and not (is_date(first) or is_date(second)):
        with suppress(TypeError):
            made = np.promote_types(one[0], other[0])
            if made.kind != "f" or "f" in (one[0].kind, other[0].kind):  # but not of uint64 and int64
                return values.kind_of(made, "second")
    raise AlgorithmError(f"second has values of type {second}, and first of {first}: convert one of them")


def merges_by_thread(operands: Operands) -> bool:
    """Whether blocks have a single thread, which merges many elements."""
    return operands.device.is_cpu


def merge_part_of(operands: Operands, read_first: Any, read_second: Any, write: Any, less: Any) -> Any:
    """The function that merges a part, see `_merge_part`."""
    make = _merge_in_order if merges_by_thread(operands) else _merge_part
    return make(read_first, read_second, write, less)


def _shape(operands: Operands, count: int, run: int) -> tuple[Any, ...]:
    """The grid, the block and the stream for a thread for each *run* of *count* elements."""
    threads, block = -(-count // run), 1 if merges_by_thread(operands) else THREADS
    return -(-threads // block), block, operands.launch_stream


def sort_by(operands: Operands, columns: list[Any], key_of: Any, less: Any) -> list[Any]:
    """Sort the elements of *columns*, arrays of the same size, stably; *less* compares what *key_of* makes of two
    elements, tuples of a number of each column. Returns the arrays that have the result: these, or others."""
    count = columns[0].size
    places = tuple(range(len(columns)))
    others = tuple(place + len(columns) for place in places)
    read = values.read_together(tuple(map(values.read_leaf, places)))
    kind = types.UniTuple(types.int64, len(columns))  # a tuple without names: of what numbers, the arrays say
    write_here, write_there = (values.write_parts(chosen, kind) for chosen in (places, others))
    compare = values.compared(key_of, less)
    threads = -(-count // RUN)
    _run_kernel(read, write_here, compare)[-(-threads // THREADS), THREADS, operands.launch_stream](count, *columns)
    merge_pass = _pass_kernel(merge_part_of(operands, read, read, write_there, compare))
    spare = [operands.array(count, column.dtype) for column in columns]
    width = RUN
    while width < count:
        run = min(2 * width, RUN_ON_CPU) if merges_by_thread(operands) else RUN
        merge_pass[_shape(operands, count, run)](count, width, run, *columns, *spare)
        columns, spare = spare, columns
        width *= 2
    return columns


@kept
def _run_kernel(read: Any, write: Any, less: Any) -> Any:
    """A kernel in which each thread sorts a run by insertion."""

    @jit
    def sort_runs(count, *leaves):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        start = types.int64(grid(1)) * RUN
        for i in range(start + 1, min(start + RUN, count)):
            value = read(leaves, i)
            place = i
            while place > start and less(value, read(leaves, place - 1)):
                write(leaves, place, read(leaves, place - 1))
                place -= 1
            write(leaves, place, value)

    return sort_runs


@kept
def _pass_kernel(merge_part: Any) -> Any:
    """A kernel that merges neighbouring sorted parts of *width* elements in pairs, *run* elements a thread; a pair has
    a whole number of runs."""

    @jit
    def merge_neighbours(count, width, run, *leaves):  # type: ignore[no-untyped-def]
        start = types.int64(grid(1)) * run
        if start < count:
            pair = start // (2 * width) * (2 * width)
            middle, end = min(pair + width, count), min(pair + 2 * width, count)
            merge_part(leaves, pair, middle - pair, middle, end - middle, start - pair, run, pair)

    return merge_neighbours


@kept
def _merge_kernel(merge_part: Any) -> Any:
    @jit
    def merge_both(ahead, behind, run, *leaves):  # type: ignore[no-untyped-def]
        start = types.int64(grid(1)) * run
        if start < ahead + behind:
            merge_part(leaves, 0, ahead, 0, behind, start, run, 0)

    return merge_both


@kept
def _merge_part(read_first: Any, read_second: Any, write: Any, less: Any) -> Any:
    """A function that merges *run* elements from place *done* of the result on: *ahead* elements from *first* on are
    merged with *behind* from *second* on, into the places from *target* on."""
    find_start = _find_start(read_first, read_second, less)

    @jit(device=True)
    def merge_part(leaves, first, ahead, second, behind, done, run, target):  # type: ignore[no-untyped-def]
        i = find_start(leaves, first, ahead, second, behind, done)
        j = done - i
        for place in range(done, min(done + run, ahead + behind)):
            if i < ahead and (j >= behind or not less(read_second(leaves, second + j), read_first(leaves, first + i))):
                write(leaves, target + place, read_first(leaves, first + i))
                i += 1
            else:
                write(leaves, target + place, read_second(leaves, second + j))
                j += 1

    return merge_part


@kept
def _merge_in_order(read_first: Any, read_second: Any, write: Any, less: Any) -> Any:
    """What `_merge_part` makes, for one thread: what comes next is no branch, as no processor would foresee it."""
    find_start = _find_start(read_first, read_second, less)

    @jit(device=True)
    def merge_part(leaves, first, ahead, second, behind, done, run, target):  # type: ignore[no-untyped-def]
        i = find_start(leaves, first, ahead, second, behind, done)
        j, place, end = done - i, done, min(done + run, ahead + behind)
        while place < end and i < ahead and j < behind:
            one, other = read_first(leaves, first + i), read_second(leaves, second + j)
            is_other = bool(less(other, one))
            write(leaves, target + place, other if is_other else one)
            j += types.int64(is_other)
            i += types.int64(1) - types.int64(is_other)
            place += 1
        for rest in range(place, end):
            if i < ahead:
                write(leaves, target + rest, read_first(leaves, first + i + rest - place))
            else:
                write(leaves, target + rest, read_second(leaves, second + j + rest - place))

    return merge_part


@kept
def _find_start(read_first: Any, read_second: Any, less: Any) -> Any:
    """A function that tells how many of the *done* elements before a part are of the first."""

    @jit(device=True)
    def find_start(leaves, first, ahead, second, behind, done):  # type: ignore[no-untyped-def]
        low, high = max(done - behind, 0), min(done, ahead)
        while low < high:
            middle = (low + high) // 2
            if less(read_second(leaves, second + done - 1 - middle), read_first(leaves, first + middle)):
                high = middle
            else:
                low = middle + 1
        return low

    return find_start
