"""Selections: the values for which something is true, in their order."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numba.core import types

from hip_runtime import DeviceArray
from hip_runtime.array import StreamLike
from numba_hip.algorithms.argument_checks import is_array
from numba_hip.algorithms.marked_parts import Test, goes_by_parts, is_few, mark_parts, write_few, write_marked
from numba_hip.algorithms.operands import Operands
from numba_hip.algorithms.readers import Reader, count_of
from numba_hip.algorithms.result_counts import NUMBER, Found
from numba_hip.algorithms.tiled_scan import BY_VOTES, scan_tiles
from numba_hip.algorithms.tiles import tiles_of
from numba_hip.cooperative import values
from numba_hip.cooperative.operators import in_kernels, kept
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError


def select(
    source: Any,
    predicate: Callable[[Any], Any] | None = None,
    *,
    flags: Any = None,
    out: Any = None,
    found: Any = None,
    stream: StreamLike = None,
) -> Any:
    """The values of *source* for which *predicate* is true, or the value of *flags* at their place, in their order.

    Returns as many as there are, for which it waits: the beginning of *out* if that is given, which has room for all.
    With *found*, an array of an integer, it does not wait: how many there are is stored there, and *out* is returned,
    or a new array with room for all, whose rest is left as it is.
    """
    operands = Operands(stream)
    reader, test, number = _tested(operands, source, predicate, flags)
    kind = operands.type_of(reader.read, "source")
    target = operands.output(out, "out", number, kind)
    write, read_any = operands.writer(target, kind), is_array(source)
    count = emit_where(operands, number, Test(test, test), reader.read, write, found, reads_all=read_any)
    return operands.finish(target, out, count)


def partition(
    source: Any,
    predicate: Callable[[Any], Any] | None = None,
    *,
    flags: Any = None,
    out: Any = None,
    found: Any = None,
    stream: StreamLike = None,
) -> tuple[Any, Any]:
    """All values of *source*: first those that `select` chooses, then the others, each in their order; and how many
    were chosen, for which it waits. With *found*, an array of an integer, the number is stored there without waiting,
    and *found* is returned."""
    operands = Operands(stream)
    reader, test, number = _tested(operands, source, predicate, flags)
    kind = operands.type_of(reader.read, "source")
    target = operands.output(out, "out", number, kind)
    counted = Found(operands, found)
    if not number:
        return _with_count(operands, target, out, counted.none(), found)
    tiles = tiles_of(operands.device, number)
    read_total, write_total = totals = operands.scratch(tiles.tiles, NUMBER)
    del write_total
    write = operands.writer(target, kind)
    write_chosen = counted.writer()
    last = operands.add(tiles.tiles - 1)
    emit = _emit_both(test, reader.read, write, read_total, last, write_chosen)
    scan_tiles(operands, tiles, _counted(test), operator.add, NUMBER, emit, totals, BY_VOTES)
    return _with_count(operands, target, out, counted.number(), found)


def _with_count(operands: Operands, target: DeviceArray, out: Any, number: int | None, found: Any) -> tuple[Any, Any]:
    return operands.finish(target, out), found if number is None else number


def _tested(
    operands: Operands, source: Any, predicate: Callable[[Any], Any] | None, flags: Any
) -> tuple[Reader, Any, int]:
    """The reader of *source*, a function of (leaves, i) that is true for what is chosen, and how many values there
    are."""
    reader = operands.reader(source, "source")
    number = count_of(reader, None, "source")
    if (predicate is None) == (flags is None):
        raise AlgorithmError("pass either predicate, a function of a value, or flags, with an element for each")
    if predicate is not None:
        kinds = (operands.type_of(reader.read, "source"),)
        tell = values.deciding(in_kernels(predicate, "predicate", 1), kinds, "predicate")
        return reader, values.read_transformed(reader.read, tell), number
    flag_reader = operands.reader(flags, "flags")
    flag_kind = operands.type_of(flag_reader.read, "flags")
    if isinstance(flag_kind, types.BaseTuple):
        raise AlgorithmError(f"flags has values of type {flag_kind}; pass numbers, or truth values")
    if flag_reader.size is not None and flag_reader.size < number:
        raise AlgorithmError(f"flags has {flag_reader.size} elements for {number} values")
    return reader, flag_reader.read, number


def emit_where(
    operands: Operands, count: int, test: Test, read: Any, write: Any, found: Any, *, reads_all: bool
) -> int | None:  # fmt: skip
    """Write what *read* returns wherever *test* is true, one behind the other; *reads_all* if nothing can be wrong with
    reading other values. Returns how many there are, or None if the caller has given *found* for that."""
    total = Found(operands, found)
    if not count:
        return total.none()
    emit_into(operands, count, test, read, write, total, reads_all=reads_all)
    return total.number()


def emit_into(
    operands: Operands, count: int, test: Test, read: Any, write: Any, total: Found, *, reads_all: bool
) -> None:  # fmt: skip
    """What `emit_where` does for at least one value; how many there are is stored in *total*."""
    if goes_by_parts(operands) and is_few(count):
        write_few(operands, count, test, read, write, total.writer())
        return
    if goes_by_parts(operands):
        marks = mark_parts(operands, count, test)
        write_marked(operands, marks, read, write, total.writer(), reads_all=reads_all)
        return
    emit = _emit_chosen(test.of_any, read, write, total.writer(), operands.add(count - 1))
    one = _counted(test.of_any)
    scan_tiles(operands, tiles_of(operands.device, count), one, operator.add, NUMBER, emit, lanes=BY_VOTES)


@kept
def _counted(test: Any) -> Any:
    return jit(device=True)(lambda leaves, i: NUMBER(1) if test(leaves, i) else NUMBER(0))


@kept
def _emit_chosen(test: Any, read: Any, write: Any, write_total: Any, last: int) -> Any:
    @jit(device=True)
    def emit(leaves, i, _before, through):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        if test(leaves, i):
            write(leaves, through - 1, read(leaves, i))
        if i == leaves[last]:
            write_total(leaves, 0, through)

    return emit


@kept
def _emit_both(test: Any, read: Any, write: Any, read_total: Any, last: int, write_chosen: Any) -> Any:
    @jit(device=True)
    def emit(leaves, i, _before, through):  # type: ignore[no-untyped-def]
        chosen = read_total(leaves, leaves[last])
        is_chosen = test(leaves, i)
        write(leaves, through - 1 if is_chosen else chosen + i - through, read(leaves, i))
        if i == 0:
            write_chosen(leaves, 0, chosen)

    return emit
