"""Merging of sorted values, and stable merge sorts by a function that compares two values.

Each thread finds by bisection where its part of the result begins in both inputs, and merges from there (Green,
McColl, Bader, "GPU merge path", 2012).
"""

from __future__ import annotations

import operator
from typing import Any

from numba.core import types

from hip_runtime.array import StreamLike
from numba_hip.algorithms.elementwise import THREADS
from numba_hip.algorithms.operands import Operands, Operator, count_of
from numba_hip.cooperative import values
from numba_hip.cooperative.operators import in_kernels, kept
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError
from numba_hip.language.untyped_names import grid

RUN = 16
"""Elements that a thread sorts by insertion, and that it merges."""


def merge(first: Any, second: Any, less: Operator = operator.lt, *, out: Any = None, stream: StreamLike = None) -> Any:
    """The values of *first* and *second*, each sorted by *less*, sorted together; of equal ones, *first*'s come
    before."""
    operands = Operands(stream)
    one, other = operands.reader(first, "first"), operands.reader(second, "second")
    ahead, behind = count_of(one, None, "first"), count_of(other, None, "second")
    kind = operands.type_of(one.read, "first")
    if len(values.dtypes_of(operands.type_of(other.read, "second"), "second")) != len(values.dtypes_of(kind, "first")):
        raise AlgorithmError("second has values of another kind than first")
    target = operands.output(out, "out", ahead + behind, kind)
    if ahead + behind:
        convert = values.converted_to(kind)
        reads = (values.read_transformed(one.read, convert), values.read_transformed(other.read, convert))
        kernel = _merge_kernel(*reads, operands.writer(target, kind), in_kernels(less, "less"))
        threads = -(-(ahead + behind) // RUN)
        kernel[-(-threads // THREADS), THREADS, operands.launch_stream](ahead, behind, *operands.leaves)
    return operands.finish(target, out)


def sort_by(operands: Operands, columns: list[Any], key_of: Any, less: Any) -> list[Any]:
    """Sort the elements of *columns*, arrays of the same size, stably; *less* compares what *key_of* makes of two
    elements, tuples of a number of each column. Returns the arrays that have the result: these, or others."""
    count = columns[0].size
    places = tuple(range(len(columns)))
    others = tuple(place + len(columns) for place in places)
    read = values.read_together(tuple(map(values.read_leaf, places)))
    write_here, write_there = (values.write_leaves(chosen, is_tuple=True) for chosen in (places, others))
    compare = values.compared(key_of, less)
    stream, threads = operands.launch_stream, -(-count // RUN)
    blocks = -(-threads // THREADS)
    _run_kernel(read, write_here, compare)[blocks, THREADS, stream](count, *columns)
    spare = [operands.array(count, column.dtype) for column in columns]
    width = RUN
    while width < count:
        merge_pass = _pass_kernel(read, write_there, compare)
        merge_pass[blocks, THREADS, stream](count, width, *columns, *spare)
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
def _pass_kernel(read: Any, write: Any, less: Any) -> Any:
    """A kernel that merges neighbouring sorted parts of *width* elements in pairs."""
    merge_part = _merge_part(read, read, write, less)

    @jit
    def merge_neighbours(count, width, *leaves):  # type: ignore[no-untyped-def]
        start = types.int64(grid(1)) * RUN
        if start < count:
            pair = start // (2 * width) * (2 * width)
            middle, end = min(pair + width, count), min(pair + 2 * width, count)
            merge_part(leaves, pair, middle - pair, middle, end - middle, start - pair, pair)

    return merge_neighbours


@kept
def _merge_kernel(read_first: Any, read_second: Any, write: Any, less: Any) -> Any:
    merge_part = _merge_part(read_first, read_second, write, less)

    @jit
    def merge_both(ahead, behind, *leaves):  # type: ignore[no-untyped-def]
        start = types.int64(grid(1)) * RUN
        if start < ahead + behind:
            merge_part(leaves, 0, ahead, 0, behind, start, 0)

    return merge_both


@kept
def _merge_part(read_first: Any, read_second: Any, write: Any, less: Any) -> Any:
    """A function that merges `RUN` elements from place *done* of the result on: *ahead* elements from *first* on are
    merged with *behind* from *second* on, into the places from *target* on."""

    @jit(device=True)
    def merge_part(leaves, first, ahead, second, behind, done, target):  # type: ignore[no-untyped-def]
        low, high = max(done - behind, 0), min(done, ahead)
        while low < high:  # how many of the elements before this part are of the first
            middle = (low + high) // 2
            if less(read_second(leaves, second + done - 1 - middle), read_first(leaves, first + middle)):
                high = middle
            else:
                low = middle + 1
        i, j = low, done - low
        for place in range(done, min(done + RUN, ahead + behind)):
            if i < ahead and (j >= behind or not less(read_second(leaves, second + j), read_first(leaves, first + i))):
                write(leaves, target + place, read_first(leaves, first + i))
                i += 1
            else:
                write(leaves, target + place, read_second(leaves, second + j))
                j += 1

    return merge_part
