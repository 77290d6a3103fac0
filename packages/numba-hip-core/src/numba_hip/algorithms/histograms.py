"""Histograms: how many values fall into each bin."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from numba.core import types

from hip_runtime.array import StreamLike
from numba_hip.algorithms.argument_checks import check_ascending, is_count
from numba_hip.algorithms.array_parts import beginning
from numba_hip.algorithms.guided_bins import can_guide, guided_kernel, reaching
from numba_hip.algorithms.operands import Operands
from numba_hip.algorithms.readers import count_of
from numba_hip.algorithms.tiles import ROWS_AHEAD
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.value_parts import is_date
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError
from numba_hip.language.untyped_names import (
    atomic_add,
    blockDim,
    blockIdx,
    grid,
    gridsize,
    local_array,
    shared_array,
    syncthreads,
    threadIdx,
)

THREADS = 256
MOST_BLOCKS = 1024
MOST_BINS_IN_LDS = 4096
"""More bins than that are counted in device memory, without a copy for each block."""

MOST_BINS = 2**60 - 1
MOST_PARTS_ON_CPU = 64
LEAST_ON_CPU = 16384
TABLES = 4
AT_ONCE = 256
TINY = 2.0**-500
"""Bounds that are closer are those of tiny numbers, or so many bins in 1 that float64 has no number for it."""


def histogram_even(
    source: Any, bins: int, lower: float, upper: float, *, out: Any = None, stream: StreamLike = None
) -> Any:
    """How many values of *source* are in each of *bins* equal parts from *lower* up to, and without, *upper* (int64).

    Values outside, and NaN, are not counted. Values and bounds are compared as float64.
    """
    if not is_count(bins) or bins < 1:
        raise AlgorithmError(f"bins is {bins!r}; pass the number of bins, 1 or more")
    if bins > MOST_BINS:
        raise AlgorithmError(f"bins is {bins!r}; pass at most {MOST_BINS}: no more counters of 8 bytes have an address")
    begin, end = _finite(lower, "lower"), _finite(upper, "upper")
    if not begin < end:
        equal = f"pass bounds that differ as float64, where both are {end!r}"
        advice = equal if begin == end else "pass the lower one first"
        raise AlgorithmError(f"lower is {lower!r} and upper {upper!r}; {advice}")
    operands = Operands(stream)
    reader = operands.reader(source, "source")
    kind = operands.type_of(reader.read, "source")
    if not isinstance(kind, (types.Integer, types.Float, types.Boolean)):
        raise AlgorithmError(
            f"source has values of type {kind}; bins are for real numbers: see histogram_range for dates"
        )
    unit = _unit_of(end - begin)
    scale = bins / (end * unit - begin * unit)
    places = operands.add(begin), operands.add(end), operands.add(scale), operands.add(int(bins))
    find = _even_bin(*places) if unit == 1 else _scaled_bin(*places, operands.add(unit))
    return _count(operands, reader, find, int(bins), out)


def _finite(bound: Any, argument: str) -> float:
    """*bound* as float64. Raises `AlgorithmError` for what is no finite number."""
    try:
        found = float(bound) if isinstance(bound, Real) else math.nan
    except OverflowError:
        found = math.inf
    except TypeError:  # of a time of NumPy's
        found = math.nan
    if not math.isfinite(found):
        raise AlgorithmError(f"{argument} is {bound!r}; pass a finite number of float64")
    return found


def _unit_of(width: float) -> float:
    """A power of two: bounds of bins that are *width* together are multiplied by it, so that neither their difference
    nor the number of bins in it is out of range."""
    if math.isinf(width):
        return 2.0**-2
    return 1.0 if width >= TINY else 2.0**500


def histogram_range(source: Any, edges: Any, *, out: Any = None, stream: StreamLike = None) -> Any:
    """How many values of *source* are in each bin: from ``edges[k]`` up to, and without, ``edges[k + 1]`` (int64).

    *edges* ascend, which is checked where they are on the host. Values outside, and NaN, are not counted.
    """
    operands = Operands(stream)
    reader, edge_reader = operands.reader(source, "source"), operands.reader(edges, "edges")
    marks = count_of(edge_reader, None, "edges")
    if marks < 2:
        raise AlgorithmError(f"edges has {marks} values; a bin needs two")
    kind, edge_kind = operands.type_of(reader.read, "source"), operands.type_of(edge_reader.read, "edges")
    _check_line(kind, edge_kind)
    check_ascending(edges, "edges", "the bounds of the bins")
    bins = marks - 1
    if counts_by_thread(operands, bins) and can_guide(kind, edge_kind):
        return _count_guided(operands, reader, edge_reader, kind, edge_kind, bins, out)
    find = _bin_between(edge_reader.read, reaching(kind, edge_kind), operands.add(marks), marks.bit_length())
    return _count(operands, reader, find, bins, out)


def _check_line(kind: types.Type, edge_kind: types.Type) -> None:
    """Raise `AlgorithmError` unless values of *kind* and edges of *edge_kind* are of one line."""
    for argument, one in (("source", kind), ("edges", edge_kind)):
        if isinstance(one, (types.BaseTuple, types.Complex)):
            raise AlgorithmError(f"{argument} has values of type {one}; bins are for real numbers, and for dates")
    if (is_date(kind) or is_date(edge_kind)) and type(kind) is not type(edge_kind):
        raise AlgorithmError(f"edges has values of type {edge_kind}, and source of {kind}: convert one of them")


def counts_by_thread(operands: Operands, bins: int) -> bool:
    """Whether threads count a part each in memory of their own, rather than blocks in shared memory."""
    return operands.device.is_cpu and bins <= MOST_BINS_IN_LDS


def _count_guided(operands: Operands, reader: Any, edges: Any, kind: Any, edge_kind: Any, bins: int, out: Any) -> Any:
    number = count_of(reader, None, "source")
    target = operands.output(out, "out", bins, types.int64)
    beginning(target, bins).fill(0, operands.stream)
    if number:
        length = max(-(-number // MOST_PARTS_ON_CPU), LEAST_ON_CPU)
        kernel = guided_kernel(reader.read, edges.read, kind, edge_kind, bins, operands.add(target))
        kernel[-(-number // length), 1, operands.launch_stream](number, length, *operands.leaves)
    return operands.finish(target, out)


def _count(operands: Operands, reader: Any, find: Any, bins: int, out: Any) -> Any:
    number = count_of(reader, None, "source")
    target = operands.output(out, "out", bins, types.int64)
    beginning(target, bins).fill(0, operands.stream)
    if number and counts_by_thread(operands, bins):
        length = max(-(-number // MOST_PARTS_ON_CPU), LEAST_ON_CPU)
        kernel = _thread_kernel(reader.read, find, operands.add(target), bins)
        kernel[-(-number // length), 1, operands.launch_stream](number, length, *operands.leaves)
    elif number:
        blocks = min(-(-number // THREADS), MOST_BLOCKS)
        place = operands.add(target)
        if bins <= MOST_BINS_IN_LDS:
            kernel = _block_kernel(reader.read, find, place, bins)
        else:
            kernel = _grid_kernel(reader.read, find, place)
        kernel[blocks, THREADS, operands.launch_stream](number, *operands.leaves)
    return operands.finish(target, out)


@jit(device=True)
def _add_one(found, chosen):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
    if chosen >= 0:
        atomic_add(found, chosen, 1)


@kept
def _block_kernel(read: Any, find: Any, place: int, bins: int) -> Any:
    """A kernel in which each block counts in its shared memory."""

    @jit
    def count_in_blocks(count, *leaves):  # type: ignore[no-untyped-def]
        found = shared_array(bins, types.int32)
        for one in range(threadIdx.x, bins, blockDim.x):
            found[one] = 0
        syncthreads()
        i, step = grid(1), gridsize(1)
        while i + (ROWS_AHEAD - 1) * step < count:
            one, two = read(leaves, i), read(leaves, i + step)  # all of them before the first is waited for
            three, four = read(leaves, i + 2 * step), read(leaves, i + 3 * step)
            _add_one(found, find(leaves, one))
            _add_one(found, find(leaves, two))
            _add_one(found, find(leaves, three))
            _add_one(found, find(leaves, four))
            i += ROWS_AHEAD * step
        for last in range(i, count, step):
            _add_one(found, find(leaves, read(leaves, last)))
        syncthreads()
        for one in range(threadIdx.x, bins, blockDim.x):
            if found[one] > 0:
                atomic_add(leaves[place], one, types.int64(found[one]))

    return count_in_blocks


@kept
def _thread_kernel(read: Any, find: Any, place: int, bins: int) -> Any:
    """A kernel in which each thread counts its part: first it finds the bins of some values, in vectors of LLVM's, and
    then counts neighbours in different tables, as often they have the same bin. What has none is counted at 0."""
    width = bins + 1
    counters = TABLES * width

    @jit
    def count_in_parts(count, length, *leaves):  # type: ignore[no-untyped-def]
        found, chosen = local_array(counters, types.int32), local_array(AT_ONCE, types.int32)
        for one in range(counters):
            found[one] = 0
        start, end = blockIdx.x * length, min((blockIdx.x + 1) * length, count)
        for first in range(start, end, AT_ONCE):
            number = min(end - first, AT_ONCE)
            for k in range(number):
                chosen[k] = find(leaves, read(leaves, first + k)) + 1
            for k in range(number):
                found[types.uint64(k % TABLES * width + chosen[k])] += 1
        for one in range(bins):
            total = types.int64(0)
            for table in range(TABLES):
                total += found[table * width + one + 1]
            if total > 0:
                atomic_add(leaves[place], one, total)

    return count_in_parts


@kept
def _grid_kernel(read: Any, find: Any, place: int) -> Any:
    @jit
    def count_in_memory(count, *leaves):  # type: ignore[no-untyped-def]
        for i in range(grid(1), count, gridsize(1)):
            chosen = find(leaves, read(leaves, i))
            if chosen >= 0:
                atomic_add(leaves[place], chosen, types.int64(1))

    return count_in_memory


@kept
def _even_bin(lower: int, upper: int, scale: int, bins: int) -> Any:
    @jit(device=True)
    def find(leaves, given):  # type: ignore[no-untyped-def]
        value = types.float64(given)
        chosen = types.int64(-1)
        if leaves[lower] <= value < leaves[upper]:
            chosen = min(types.int64((value - leaves[lower]) * leaves[scale]), leaves[bins] - 1)
        return chosen

    return find


@kept
def _scaled_bin(lower: int, upper: int, scale: int, bins: int, unit: int) -> Any:
    """What `_even_bin` makes, for bounds that are multiplied by a unit first."""

    @jit(device=True)
    def find(leaves, given):  # type: ignore[no-untyped-def]
        value = types.float64(given)
        chosen = types.int64(-1)
        if leaves[lower] <= value < leaves[upper]:
            part = (value * leaves[unit] - leaves[lower] * leaves[unit]) * leaves[scale]
            chosen = min(types.int64(part), leaves[bins] - 1)
        return chosen

    return find


@kept
def _bin_between(read_edge: Any, reaches: Any, marks: int, halvings: int) -> Any:
    """A function of (leaves, value): its bin by bisection, without a branch so that it can run in vectors; less than
    2**halvings edges. What is not below the last edge comes out at more edges than there are, and NaN at none."""

    @jit(device=True)
    def find(leaves, value):  # type: ignore[no-untyped-def]
        limit = types.int64(leaves[marks])
        below = types.int64(0)  # edges that are not above the value
        for step in range(halvings):
            more = below + (types.int64(1) << types.int64(halvings - 1 - step))
            is_below = reaches(value, read_edge(leaves, min(more, limit) - 1))
            below = more if is_below else below
        return below - 1 if below < limit else types.int64(-1)

    return find
