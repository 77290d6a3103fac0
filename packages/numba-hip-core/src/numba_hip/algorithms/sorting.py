"""Sorting: of values, of values by keys, of segments, and the largest or smallest values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.core import types

from hip_runtime import DeviceArray, is_device_array
from hip_runtime.array import StreamLike
from numba_hip.algorithms.argument_checks import is_count
from numba_hip.algorithms.array_parts import beginning, columns_of, share_memory
from numba_hip.algorithms.elementwise import THREADS, store_kernel
from numba_hip.algorithms.merging import sort_by
from numba_hip.algorithms.operands import Operands, Operator, Pair
from numba_hip.algorithms.radix_segments import MOST_IN_ONE, sort_segments
from numba_hip.algorithms.radix_selection import LEAST_SHARE, select_places
from numba_hip.algorithms.radix_sort import sort_pairs, uses_blocks
from numba_hip.algorithms.readers import count_of
from numba_hip.algorithms.segment_checks import check_offsets
from numba_hip.cooperative import values
from numba_hip.cooperative.arguments import checked_bits
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.orders import comparing
from numba_hip.cooperative.value_functions import rebuilt
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError

MEAN_OF_THREADS = 1 << 17
"""Longer segments than that on average are sorted together, by all threads of the CPU device."""


def sort(
    source: Any,
    less: Operator | None = None,
    *,
    descending: bool = False,
    out: Any = None,
    begin_bit: int = 0,
    end_bit: int | None = None,
    stream: StreamLike = None,
) -> Any:
    """The values of *source* in their order, or in that of *less*, which tells whether a value comes before another.

    Numbers are sorted by their bits if there is no *less*; NaN and NaT come last, with *descending* first. Values that
    are tuples, and complex numbers, need *less*. Equal values keep their order. *source* is an array with one axis, of
    the device or the host, or an iterator that has an end. Sorts in place if *out* is *source*.

    Without *less*, the bits from *begin_bit* up to and without *end_bit* are looked at alone, which takes less time:
    those of the unsigned integer that is in the same order, which has the sign bit of integers turned.
    """
    operands = Operands(stream)
    reader = operands.reader(source, "source")
    number = count_of(reader, None, "source")
    kind = operands.type_of(reader.read, "source")
    bits = _bits(kind, less, begin_bit, end_bit)
    target = operands.output(out, "out", number, kind, [source])
    result = beginning(target, number)
    read = _read_at_once(operands, [(source, "source")], [result], less)
    if read is None:
        _copy(operands, reader.read, number, operands.writer(target, kind))
    _sort(operands, result, [], kind, less, descending, "source", read, bits)
    return operands.finish(target, out)


def argsort(
    source: Any,
    less: Operator | None = None,
    *,
    descending: bool = False,
    out: Any = None,
    begin_bit: int = 0,
    end_bit: int | None = None,
    stream: StreamLike = None,
) -> Any:
    """The places of the values of *source* in their order (int64), in *out* if given. See `sort`."""
    operands = Operands(stream)
    reader = operands.reader(source, "source")
    number = count_of(reader, None, "source")
    kind = operands.type_of(reader.read, "source")
    bits = _bits(kind, less, begin_bit, end_bit)
    places = operands.output(out, "out", number, types.int64)
    keys = operands.values(number, kind)
    _copy(operands, reader.read, number, operands.writer(keys, kind))
    _number(operands, number, places)
    _sort(operands, keys, [beginning(places, number)], kind, less, descending, "source", bits=bits)
    return operands.finish(places, out)


def sort_by_key(
    keys: Any,
    source: Any,
    less: Operator | None = None,
    *,
    descending: bool = False,
    out: tuple[Any, Any] | None = None,
    begin_bit: int = 0,
    end_bit: int | None = None,
    stream: StreamLike = None,
) -> tuple[Any, Any]:
    """The *keys* in their order, and the values of *source* at the same places; in the two arrays of *out*, if given.

    Sorts in place if these are *keys* and *source*. See `sort`.
    """
    operands = Operands(stream)
    key_reader, reader = operands.reader(keys, "keys"), operands.reader(source, "source")
    number = count_of(key_reader, None, "keys")
    if reader.size is not None and reader.size != number:
        raise AlgorithmError(f"source has {reader.size} values for {number} keys")
    key_kind, kind = operands.type_of(key_reader.read, "keys"), operands.type_of(reader.read, "source")
    bits = _bits(key_kind, less, begin_bit, end_bit)
    key_target, target = targets = operands.outputs(out, (number, number), (key_kind, kind), ([keys], [source]))
    results = [beginning(key_target, number), beginning(target, number)]
    read = _read_at_once(operands, [(keys, "keys"), (source, "source")], results, less)
    if read is None:
        _copy(operands, key_reader.read, number, operands.writer(key_target, key_kind))
        _copy(operands, reader.read, number, operands.writer(target, kind))
    _sort(operands, results[0], columns_of(results[1]), key_kind, less, descending, "keys", read, bits)
    return operands.finish_both(targets, out)


def segmented_sort(
    source: Any, offsets: Any, *, descending: bool = False, out: Any = None, stream: StreamLike = None
) -> Any:
    """The values of *source*, numbers, in their order within each segment: segment k begins at ``offsets[k]`` and ends
    before ``offsets[k + 1]``. What is before the first segment is sorted as one of its own, and what is behind the
    last, too. *offsets* ascend, which is checked where they are on the host."""
    operands = Operands(stream)
    reader, bounds = operands.reader(source, "source"), operands.reader(offsets, "offsets")
    number, marks = count_of(reader, None, "source"), count_of(bounds, None, "offsets")
    kind = operands.type_of(reader.read, "source")
    check_offsets(operands, offsets, bounds.read)
    target = operands.output(out, "out", number, kind, [source])
    _copy(operands, reader.read, number, operands.writer(target, kind))
    if number and not uses_blocks(operands) and number <= (marks + 1) * MEAN_OF_THREADS and target.dtype.names is None:
        sort_segments(operands, beginning(target, number), bounds.read, marks, descending=descending, argument="source")
        return operands.finish(target, out)
    segments = operands.array(number, np.min_scalar_type(marks))  # the fewer bits, the fewer passes
    segment_of = _segment_of(bounds.read, operands.add(marks))
    _copy(operands, segment_of, number, operands.writer(segments, types.int64))
    part = beginning(target, number)
    _sort(operands, part, [segments], kind, None, descending, "source")
    sort_pairs(operands, segments, [part], descending=False)
    return operands.finish(target, out)


def topk(
    source: Any, k: int, *, largest: bool = True, out: tuple[Any, Any] | None = None, stream: StreamLike = None
) -> tuple[Any, Any]:
    """The *k* largest numbers of *source* (or smallest), in their order, and their places (int64), in the two arrays of
    *out* if given; of equal ones, those that come first. All of them if there are fewer. NaN counts as the largest."""
    if not is_count(k):
        raise AlgorithmError(f"k is {k!r}; pass how many values are wanted")
    operands = Operands(stream)
    reader = operands.reader(source, "source")
    number = count_of(reader, None, "source")
    kind = operands.type_of(reader.read, "source")
    if isinstance(kind, types.BaseTuple):
        raise AlgorithmError("source has records, which have no order of their own")
    wanted = min(int(k), number)
    targets = operands.outputs(out, (wanted, wanted), (kind, types.int64))
    if wanted:
        keys = source if _is_dense(source) and not _sorts_all(operands, number, wanted) else None
        if keys is None:
            keys = operands.values(number, kind)
            _copy(operands, reader.read, number, operands.writer(keys, kind))
        first, places = _first_in_order(operands, keys, wanted, kind, descending=largest)
        _copy_array(operands, first, wanted, kind, targets[0])
        _copy_array(operands, places, wanted, types.int64, targets[1])
    return operands.finish_both(targets, out)


def _is_dense(source: Any) -> bool:
    """Whether *source* is an array of the device whose elements lie one behind the other."""
    return isinstance(source, DeviceArray) and source.is_c_contiguous()


def _sorts_all(operands: Operands, count: int, wanted: int) -> bool:
    """Whether all of *count* elements are sorted for the first *wanted*, as that is faster."""
    return wanted * LEAST_SHARE > count or (count <= MOST_IN_ONE and not uses_blocks(operands))


def _first_in_order(operands: Operands, keys: DeviceArray, wanted: int, kind: types.Type, *, descending: bool) -> Pair:
    """The first *wanted* of *keys* in their order, and their places, at the beginning of two arrays; *keys* change
    where all are sorted."""
    if _sorts_all(operands, keys.size, wanted):
        places = operands.array(keys.size, "int64")
        _number(operands, keys.size, places)
        sort_pairs(operands, keys, [places], descending=descending, argument="source")
        return keys, places
    places = select_places(operands, keys, wanted, descending=descending, argument="source")
    chosen, found = Operands.like(operands), operands.values(wanted, kind)
    read = values.read_permuted(values.read_leaf(chosen.add(keys)), values.read_leaf(chosen.add(places)))
    _copy(chosen, read, wanted, chosen.writer(found, kind))
    sort_pairs(operands, found, [places], descending=descending, argument="source")
    return found, places


def _sort(
    operands: Operands,
    keys: DeviceArray,
    others: list[DeviceArray],
    kind: types.Type,
    less: Operator | None,
    descending: bool,
    argument: str,
    sources: Sequence[DeviceArray] | None = None,
    bits: tuple[int, int] | None = None,
) -> None:
    """Sort *keys* in place, and *others* with them, by *bits* of keys if given; or the numbers of *sources*, to
    there."""
    if less is None and keys.dtype.names is None:
        sort_pairs(operands, keys, others, descending=descending, argument=argument, sources=sources, bits=bits)
        return
    if keys.size < 2:
        return
    if less is None:
        raise AlgorithmError(f"{argument} has records, which have no order of their own: pass less=")
    function = comparing(less, (kind, kind))
    columns = [*columns_of(keys), *others]
    dense = [operands.array(column.size, column.dtype) for column in columns]
    for made, column in zip(dense, columns, strict=True):
        made.copy_to_device(column, stream=operands.stream)
    done = sort_by(operands, dense, rebuilt(kind), _reversed(function) if descending else function)
    for column, made in zip(columns, done, strict=True):
        column.copy_to_device(made, stream=operands.stream)


def _bits(kind: types.Type, less: Operator | None, begin: Any, end: Any) -> tuple[int, int] | None:
    """The bits of keys of *kind* that are looked at; ``None`` for all."""
    if begin == 0 and end is None:
        return None
    if less is not None:
        raise AlgorithmError(
            f"begin_bit is {begin!r} and end_bit {end!r}, but less compares whole values: leave one out"
        )
    dtypes = values.dtypes_of(kind, "source")
    if len(dtypes) > 1:
        return None  # records, which are refused where they are sorted
    width = dtypes[0].itemsize * 8
    if begin == end and is_count(begin) and begin <= width:
        return int(begin), int(begin)  # none, which leaves all as they are
    bits = checked_bits(width, begin, end)
    return None if bits == (0, width) else bits


def _read_at_once(
    operands: Operands, given: Sequence[tuple[Any, str]], targets: Sequence[DeviceArray], less: Operator | None
) -> list[DeviceArray] | None:
    """The arrays that are *given*, each with its argument's name, if the first pass of a sort to *targets* can read
    them where they are; ``None`` if their values have to be copied first."""
    if less is not None or not all(_is_on_device(operands, source) for source, _ in given):
        return None
    arrays = [operands.input_array(source, argument) for source, argument in given]
    for array, target in zip(arrays, targets, strict=True):
        if array.dtype != target.dtype or array.dtype.names is not None or not array.is_c_contiguous():
            return None
    return None if any(share_memory(array, target) for array in arrays for target in targets) else arrays


def _is_on_device(operands: Operands, source: Any) -> bool:
    """Whether *source* has memory that kernels read, which the host's is for the CPU device."""
    return is_device_array(source) or (operands.device.is_cpu and isinstance(source, np.ndarray))


def _number(operands: Operands, count: int, places: DeviceArray) -> None:
    """Store 0, 1, ... in *places*."""
    copied = Operands.like(operands)
    _copy(copied, values.read_counter(copied.add(np.int64(0))), count, copied.writer(places, types.int64))


def _copy_array(operands: Operands, source: DeviceArray, count: int, kind: types.Type, target: DeviceArray) -> None:
    copied = Operands.like(operands)
    _copy(copied, values.read_leaf(copied.add(source)), count, copied.writer(target, kind))


def _copy(operands: Operands, read: Any, count: int, write: Any) -> None:
    if count:
        store_kernel(read, write)[-(-count // THREADS), THREADS, operands.launch_stream](count, *operands.leaves)


@kept
def _reversed(less: Any) -> Any:
    return jit(device=True)(lambda a, b: less(b, a))


@kept
def _segment_of(read_offset: Any, marks: int) -> Any:
    """A function of (leaves, i): how many offsets are at i or before."""

    @jit(device=True)
    def segment_of(leaves, i):  # type: ignore[no-untyped-def]  # for kernels alone
        low, high = types.int64(0), types.int64(leaves[marks])
        while low < high:
            middle = (low + high) // 2
            if read_offset(leaves, middle) <= i:
                low = middle + 1
            else:
                high = middle
        return low

    return segment_of
