"""Scans: what the elements up to each one come to."""

from __future__ import annotations

import operator
from typing import Any

from hip_runtime.array import StreamLike
from numba_hip.algorithms.initial_values import accumulator_type, add_initial
from numba_hip.algorithms.operands import Operands, Operator
from numba_hip.algorithms.readers import count_of
from numba_hip.algorithms.tiled_scan import scan_tiles
from numba_hip.algorithms.tiles import tiles_of
from numba_hip.cooperative import values
from numba_hip.cooperative.operators import in_kernels, kept
from numba_hip.cooperative.value_functions import converted_to
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError


def inclusive_scan(
    source: Any,
    op: Operator = operator.add,
    *,
    init: Any = None,
    count: int | None = None,
    out: Any = None,
    stream: StreamLike = None,
) -> Any:
    """For each value of *source*, *init* (if given), all before it and it, combined by *op*.

    *source* is an array with one axis, of the device or the host, or an iterator; *count* is how many of its values
    are used, by default all. *op* is associative, and need not be commutative. Results have the type of *init* if that
    is a NumPy number, else that of the values. They are stored in *out* if given, and returned: in an array of the host
    if *source* is one. Raises `AlgorithmError` for arguments that do not fit.
    """
    return _scan(source, op, init, count, out, stream, is_inclusive=True)


def exclusive_scan(
    source: Any,
    op: Operator = operator.add,
    init: Any = 0,
    *,
    count: int | None = None,
    out: Any = None,
    stream: StreamLike = None,
) -> Any:
    """For each value of *source*, *init* and all before it, combined by *op*. See `inclusive_scan` for the rest."""
    return _scan(source, op, init, count, out, stream, is_inclusive=False)


def _scan(
    source: Any, op: Operator, init: Any, count: int | None, out: Any, stream: StreamLike, *, is_inclusive: bool
) -> Any:
    if init is None and not is_inclusive:
        raise AlgorithmError("init is None; pass the first result of an exclusive scan")
    operands = Operands(stream)
    reader = operands.reader(source, "source")
    number = count_of(reader, count, "source")
    kind = accumulator_type(operands, reader.read, init)
    combine = in_kernels(op, "op")
    target = operands.output(out, "out", number, kind, [source])
    if number:
        start = None if init is None else add_initial(operands, init, kind)
        write = operands.writer(target, kind)
        read = values.read_transformed(reader.read, converted_to(kind))
        emit = _emit(write, values.combining(combine, kind), start, is_inclusive)
        scan_tiles(operands, tiles_of(operands.device, number), read, combine, kind, emit)
    return operands.finish(target, out)


@kept
def _emit(write: Any, combine: Any, start: Any, is_inclusive: bool) -> Any:
    """What a scan does with prefixes."""
    if is_inclusive and start is None:
        return jit(device=True)(lambda leaves, i, before, through: write(leaves, i, through))
    if is_inclusive:
        return jit(device=True)(lambda leaves, i, before, through: write(leaves, i, combine(start(leaves, i), through)))

    @jit(device=True)
    def emit(leaves, i, before, through):  # type: ignore[no-untyped-def]  # for kernels alone
        first = start(leaves, i)
        value = combine(first, before)  # also for i = 0, where another value is stored: lanes store together so
        write(leaves, i, first if i == 0 else value)

    return emit
