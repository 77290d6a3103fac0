"""Runs of equal neighbours, and segments: what is combined within each, and where they begin."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numba.core import types

from hip_runtime.array import StreamLike
from numba_hip.algorithms.argument_checks import is_array
from numba_hip.algorithms.elementwise import THREADS, store_kernel
from numba_hip.algorithms.initial_values import accumulator_type, add_initial
from numba_hip.algorithms.marked_parts import Test, goes_by_parts, is_few, mark_parts
from numba_hip.algorithms.operands import Operands, Operator
from numba_hip.algorithms.readers import Reader, count_of
from numba_hip.algorithms.result_counts import NUMBER, Found
from numba_hip.algorithms.run_parts import reduce_few, reduce_marked
from numba_hip.algorithms.segment_checks import check_offsets
from numba_hip.algorithms.selections import emit_into, emit_where
from numba_hip.algorithms.tiled_scan import scan_tiles
from numba_hip.algorithms.tiles import tiles_of
from numba_hip.cooperative import values
from numba_hip.cooperative.operators import in_kernels, kept
from numba_hip.cooperative.value_functions import converted_to, flattened, rebuilt
from numba_hip.cooperative.value_parts import leaf_kinds
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError
from numba_hip.language.untyped_names import grid, gridsize

MOST_BLOCKS = 1024
NUMBER_ZERO = np.int64(0)


def unique(
    source: Any, equal: Operator = operator.eq, *, out: Any = None, found: Any = None, stream: StreamLike = None
) -> Any:
    """The first value of each run of *source*, neighbours that *equal* takes as the same: of sorted values, each value
    once. Returns as many as there are: the beginning of *out* if that is given, which has room for all.

    With *found*, an array of an integer, nothing waits: how many there are is stored there, and all of *out* is
    returned, or a new array with room for all. So it is with the other functions of runs.
    """
    operands = Operands(stream)
    reader = operands.reader(source, "source")
    number = count_of(reader, None, "source")
    kind = operands.type_of(reader.read, "source")
    target = operands.output(out, "out", number, kind)
    heads = _begins(reader.read, _equating(equal, kind))
    write, read_any = operands.writer(target, kind), is_array(source)
    count = emit_where(operands, number, heads, reader.read, write, found, reads_all=read_any)
    return operands.finish(target, out, count)


def unique_by_key(
    keys: Any,
    source: Any,
    equal: Operator = operator.eq,
    *,
    out: tuple[Any, Any] | None = None,
    found: Any = None,
    stream: StreamLike = None,
) -> tuple[Any, Any]:
    """The first key of each run of *keys*, and the value of *source* at its place; in the two arrays of *out*, if
    given. See `unique` for *found*."""
    operands = Operands(stream)
    key_reader, reader = operands.reader(keys, "keys"), operands.reader(source, "source")
    number = _count_of_both(key_reader, reader)
    key_kind, kind = operands.type_of(key_reader.read, "keys"), operands.type_of(reader.read, "source")
    key_target, target = targets = operands.outputs(out, (number, number), (key_kind, kind))
    heads = _begins(key_reader.read, _equating(equal, key_kind))
    read = values.read_together((key_reader.read, reader.read))
    write = _write_pair(operands.writer(key_target, key_kind), operands.writer(target, kind))
    read_any = is_array(keys) and is_array(source)
    count = emit_where(operands, number, heads, read, write, found, reads_all=read_any)
    return operands.finish_both(targets, out, count)


def reduce_by_key(
    keys: Any,
    source: Any,
    op: Operator = operator.add,
    equal: Operator = operator.eq,
    *,
    out: tuple[Any, Any] | None = None,
    found: Any = None,
    stream: StreamLike = None,
) -> tuple[Any, Any]:
    """The first key of each run of *keys*, and the values of *source* at the places of the run, combined by *op*; in
    the two arrays of *out*, if given. See `unique` for *found*.

    *op* is associative, and need not be commutative. To reduce all values of a key, sort by it first.
    """
    operands = Operands(stream)
    key_reader, reader = operands.reader(keys, "keys"), operands.reader(source, "source")
    number = _count_of_both(key_reader, reader)
    key_kind, kind = operands.type_of(key_reader.read, "keys"), operands.type_of(reader.read, "source")
    key_target, target = targets = operands.outputs(out, (number, number), (key_kind, kind))
    total = Found(operands, found)
    if number:
        heads, function = _begins(key_reader.read, _equating(equal, key_kind)), in_kernels(op, "op")
        read = values.read_transformed(reader.read, converted_to(kind))
        write_key, write = operands.writer(key_target, key_kind), operands.writer(target, kind)
        if goes_by_parts(operands):
            combine = values.combining(function, kind)
            writers = write_key, write, total.writer()
            if is_few(number):
                reduce_few(operands, number, heads, key_reader.read, read, combine, *writers)
            else:
                marks = mark_parts(operands, number, heads)
                reduce_marked(operands, marks, kind, key_reader.read, read, combine, *writers)
        else:
            last = operands.add(number - 1)
            unpacked = rebuilt(kind, 1)
            emit = _emit_run_ends(heads.of_any, key_reader.read, write_key, write, unpacked, total.writer(), last)
            _scan_runs(operands, number, heads.of_any, read, function, kind, emit)
    return operands.finish_both(targets, out, total.number() if number else total.none())


def run_length_encode(
    source: Any,
    equal: Operator = operator.eq,
    *,
    out: tuple[Any, Any] | None = None,
    found: Any = None,
    stream: StreamLike = None,
) -> tuple[Any, Any]:
    """The first value of each run of *source*, and the lengths of the runs (int64); in the two arrays of *out*, if
    given. See `unique` for *found*."""
    operands = Operands(stream)
    reader = operands.reader(source, "source")
    number = count_of(reader, None, "source")
    kind = operands.type_of(reader.read, "source")
    target, lengths = targets = operands.outputs(out, (number, number), (kind, NUMBER))
    total = Found(operands, found)
    if number:
        heads = _begins(reader.read, _equating(equal, kind))
        starts = operands.add(operands.array(number, "int64"))
        read = values.read_together((reader.read, values.read_counter(operands.add(NUMBER_ZERO))))
        write = _write_pair(operands.writer(target, kind), values.write_leaf(starts))
        emit_into(operands, number, heads, read, write, total, reads_all=is_array(source))
        kernel = _length_kernel(starts, total.reader(), operands.writer(lengths, NUMBER))
        blocks = min(-(-number // THREADS), MOST_BLOCKS)
        kernel[blocks, THREADS, operands.launch_stream](number, *operands.leaves)
    return operands.finish_both(targets, out, total.number() if number else total.none())


def segmented_scan(
    source: Any,
    offsets: Any,
    op: Operator = operator.add,
    init: Any = None,
    *,
    inclusive: bool = True,
    out: Any = None,
    stream: StreamLike = None,
) -> Any:
    """A scan that begins anew at each segment of *source*: segment k at ``offsets[k]``, and the last before
    ``offsets[-1]``. What is before the first segment is one of its own, and so is what is behind the last. *offsets*
    ascend, which is checked where they are on the host.

    An exclusive one (``inclusive=False``) needs *init*. See `inclusive_scan` for the other arguments.
    """
    operands = Operands(stream)
    reader = operands.reader(source, "source")
    number = count_of(reader, None, "source")
    flags = operands.array(number, "uint8")
    flags.fill(0, operands.stream)
    flag_place = operands.add(flags)
    bounds = operands.reader(offsets, "offsets")
    marks = count_of(bounds, None, "offsets")
    check_offsets(operands, offsets, bounds.read)
    if number and marks:
        mark = _mark_head(flag_place, operands.add(number))
        store_kernel(bounds.read, mark)[-(-marks // THREADS), THREADS, operands.launch_stream](marks, *operands.leaves)
    return _scan_of_heads(operands, reader, values.read_leaf(flag_place), number, op, init, inclusive, out)


def scan_by_key(
    keys: Any,
    source: Any,
    op: Operator = operator.add,
    init: Any = None,
    equal: Operator = operator.eq,
    *,
    inclusive: bool = True,
    out: Any = None,
    stream: StreamLike = None,
) -> Any:
    """A scan of *source* that begins anew at each run of *keys*. See `segmented_scan` for the other arguments."""
    operands = Operands(stream)
    key_reader, reader = operands.reader(keys, "keys"), operands.reader(source, "source")
    number = _count_of_both(key_reader, reader)
    heads = _heads(key_reader.read, _equating(equal, operands.type_of(key_reader.read, "keys")))
    if goes_by_parts(operands) and not is_few(number):
        heads = _stored(operands, heads, number)
    return _scan_of_heads(operands, reader, heads, number, op, init, inclusive, out)


def _equating(equal: Operator, kind: types.Type) -> Any:
    """*equal*, which tells whether two values of *kind* are of one run, as kernels call it."""
    return values.deciding(in_kernels(equal, "equal"), (kind, kind), "equal")


def _stored(operands: Operands, heads: Any, count: int) -> Any:
    """What *heads* tells of *count* places, stored: processors read a flag in less time than they compare keys, which a
    scan would do twice."""
    place = operands.add(operands.array(count, "uint8"))
    kernel = store_kernel(heads, values.write_leaf(place))
    kernel[-(-count // THREADS), THREADS, operands.launch_stream](count, *operands.leaves)
    return values.read_leaf(place)


def _scan_of_heads(
    operands: Operands, reader: Reader, heads: Any, count: int, op: Operator, init: Any, inclusive: bool, out: Any
) -> Any:
    if init is None and not inclusive:
        raise AlgorithmError("an exclusive scan needs init=, the first result of each segment")
    kind = accumulator_type(operands, reader.read, init)
    target = operands.output(out, "out", count, kind)
    if count:
        function = in_kernels(op, "op")
        start = None if init is None else add_initial(operands, init, kind)
        read = values.read_transformed(reader.read, converted_to(kind))
        write, combine = operands.writer(target, kind), values.combining(function, kind)
        emit = _emit_scan(heads, write, combine, start, rebuilt(kind, 1), inclusive)
        _scan_runs(operands, count, heads, read, function, kind, emit)
    return operands.finish(target, out)


def _scan_runs(operands: Operands, count: int, heads: Any, read: Any, op: Any, kind: types.Type, emit: Any) -> None:
    """Scan pairs of how many runs have begun and what has been combined since the last of them did."""
    parts = tuple(leaf_kinds(kind))
    plain = flattened(kind) if isinstance(kind, types.BaseTuple) else None
    packed, pair = types.Tuple((NUMBER, *parts)), _packed(heads, read, plain)
    operator_of_runs = _of_runs(values.combining(op, kind), rebuilt(kind, 1), plain)
    scan_tiles(operands, tiles_of(operands.device, count), pair, operator_of_runs, packed, emit)


def _count_of_both(keys: Reader, source: Reader) -> int:
    number = count_of(keys, None, "keys")
    if source.size is not None and source.size != number:
        raise AlgorithmError(f"source has {source.size} values for {number} keys")
    return number


@kept
def _heads(read: Any, equal: Any) -> Any:
    """A function of (leaves, i): whether a run begins at i. The first is compared with itself: lanes that read under a
    condition would do so one by one."""
    return jit(device=True)(lambda leaves, i: not equal(read(leaves, i - (i > 0)), read(leaves, i)) or i == 0)


@kept
def _begins(read: Any, equal: Any) -> Test:
    """Functions as `_heads` makes: for any place, and for all but the first."""
    later = jit(device=True)(lambda leaves, i: not equal(read(leaves, i - 1), read(leaves, i)))
    return Test(_heads(read, equal), later)


@kept
def _packed(heads: Any, read: Any, plain: Any) -> Any:
    """A function of (leaves, i): 1 where a run begins, else 0, and the value; *plain* makes a flat tuple of
    one, and is None for numbers."""
    if plain is not None:
        return jit(device=True)(
            lambda leaves, i: (NUMBER(1) if heads(leaves, i) else NUMBER(0), *plain(read(leaves, i)))
        )
    return jit(device=True)(lambda leaves, i: (NUMBER(1) if heads(leaves, i) else NUMBER(0), read(leaves, i)))


@kept
def _of_runs(combine: Any, unpacked: Any, plain: Any) -> Any:
    """The operator of pairs of runs: a value is combined with those before it as long as no run begins between. See
    `_packed` for *plain*."""
    if plain is not None:

        @jit(device=True)
        def combine_tuples(a, b):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
            value = unpacked(b) if b[0] else combine(unpacked(a), unpacked(b))
            return (a[0] + b[0], *plain(value))

        return combine_tuples

    @jit(device=True)
    def combine_numbers(a, b):  # type: ignore[no-untyped-def]
        return a[0] + b[0], b[1] if b[0] else combine(a[1], b[1])

    return combine_numbers


@kept
def _emit_run_ends(
    heads: Any, read_key: Any, write_key: Any, write: Any, unpacked: Any, write_total: Any, last: int
) -> Any:
    @jit(device=True)
    def emit(leaves, i, _before, through):  # type: ignore[no-untyped-def]
        run = through[0] - 1
        if heads(leaves, i):
            write_key(leaves, run, read_key(leaves, i))
        is_last = i == leaves[last]
        if is_last or heads(leaves, i + 1):
            write(leaves, run, unpacked(through))
        if is_last:
            write_total(leaves, 0, run + 1)

    return emit


@kept
def _emit_scan(heads: Any, write: Any, combine: Any, start: Any, unpacked: Any, inclusive: bool) -> Any:
    if inclusive and start is None:
        return jit(device=True)(lambda leaves, i, before, through: write(leaves, i, unpacked(through)))
    if inclusive:
        return jit(device=True)(
            lambda leaves, i, before, through: write(leaves, i, combine(start(leaves, i), unpacked(through)))
        )

    @jit(device=True)
    def emit(leaves, i, before, through):  # type: ignore[no-untyped-def]
        if i == 0 or heads(leaves, i):
            write(leaves, i, start(leaves, i))
        else:
            write(leaves, i, combine(start(leaves, i), unpacked(before)))

    return emit


@kept
def _write_pair(write_first: Any, write_second: Any) -> Any:
    @jit(device=True)
    def write(leaves, i, pair):  # type: ignore[no-untyped-def]
        write_first(leaves, i, pair[0])
        write_second(leaves, i, pair[1])

    return write


@kept
def _length_kernel(starts: int, read_total: Any, write: Any) -> Any:
    """A kernel that stores how many elements there are from each of *starts* to the next."""

    @jit
    def store_lengths(count, *leaves):  # type: ignore[no-untyped-def]
        runs = types.int64(read_total(leaves, 0))
        for run in range(grid(1), runs, gridsize(1)):
            end = leaves[starts][types.uint64(run + 1)] if run + 1 < runs else types.int64(count)
            write(leaves, run, end - leaves[starts][types.uint64(run)])

    return store_lengths


@kept
def _mark_head(flags: int, limit: int) -> Any:
    @jit(device=True)
    def mark(leaves, i, place):  # type: ignore[no-untyped-def]
        if 0 <= place < leaves[limit]:
            leaves[flags][place] = 1

    return mark
