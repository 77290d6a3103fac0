"""Random reductions and scans, of all values, of segments and by keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tools.fuzz_algorithms.calls import Call, Draw, accumulate_with, combine_parts, cut_runs
from tools.fuzz_algorithms.inputs import draw_dtype, draw_numbers, draw_offsets, draw_runs
from tools.fuzz_algorithms.operators import COMBINING, EQUATING, Combining, Values, is_positive, unchanged

OFFSETS = ("i4", "i8", "u4", "i2")


def make_reduce(draw: Draw) -> Call:
    """``reduce``."""
    op, values, kind, init = _combined(draw)
    if not values.size and init is None:
        init = _initial(draw, kind)
    total = accumulate_with(op.accumulate, values.astype(kind), init)[-1:] if values.size else np.array([init], kind)
    options = {"op": op.function, "init": init, "commutative": op.commutes and draw.shape.random() < 0.7}
    given = draw.limit(values, options)
    return Call("reduce", {"source": draw.source(given)}, options, [draw.result(total)], "number")


def make_transform_reduce(draw: Draw) -> Call:
    """``transform_reduce``: of the values as they are, or of whether they are positive."""
    if draw.shape.random() < 0.5:
        call = make_reduce(draw)
        return replace(call, algorithm="transform_reduce", options=call.options | {"transform": unchanged})
    values = draw_numbers(draw.data, draw_dtype(draw.shape, "iuf"), draw.size)
    options = {"transform": is_positive, "init": np.int64(5)}
    result = draw.result(np.array([5 + np.count_nonzero(values > 0)]))
    return Call("transform_reduce", {"source": draw.source(values)}, options, [result], "number")


def make_scan(draw: Draw) -> Call:
    """``inclusive_scan`` or ``exclusive_scan``."""
    inclusive = draw.shape.random() < 0.5
    op, values, kind, init = _combined(draw)
    if not inclusive and init is None:
        init = _initial(draw, kind)
    found = accumulate_with(op.accumulate, values.astype(kind), init, inclusive=inclusive)
    options: dict[str, Any] = {"op": op.function, "init": init}
    sources = {"source": draw.source(draw.limit(values, options))}
    results = [draw.result(found, sources)]
    return Call("inclusive_scan" if inclusive else "exclusive_scan", sources, options, results)


def make_segmented_reduce(draw: Draw) -> Call:
    """``segmented_reduce``."""
    op, values, kind, init = _combined(draw)
    init = _initial(draw, kind) if init is None else init
    offsets = draw_offsets(draw.data, values.size, draw.shape.choice(OFFSETS[:3]), outside=True)
    bounds = np.clip(offsets.astype(np.int64), 0, values.size)
    found = [
        accumulate_with(op.accumulate, values[begin:end].astype(kind), init)[-1] if end > begin else init
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]
    sources = {"source": draw.source(values), "offsets": draw.source(offsets)}
    made = np.array(found, kind) if found else np.zeros(0, kind)
    options = {"op": op.function, "init": init}
    return Call("segmented_reduce", sources, options, [draw.result(made)])


def make_segmented_scan(draw: Draw) -> Call:
    """``segmented_scan``."""
    op, values, kind, init = _combined(draw)
    inclusive = init is None or draw.shape.random() < 0.5
    offsets = draw_offsets(draw.data, values.size, draw.shape.choice(OFFSETS[:3]), outside=True)
    starts = np.clip(offsets.astype(np.int64), 0, values.size)
    found = combine_parts(op.accumulate, values.astype(kind), starts, init, inclusive=inclusive)
    sources = {"source": draw.source(values), "offsets": draw.source(offsets)}
    options = {"op": op.function, "init": init, "inclusive": inclusive}
    return Call("segmented_scan", sources, options, [draw.result(found, {"source": sources["source"]})])


def make_scan_by_key(draw: Draw) -> Call:
    """``scan_by_key``."""
    op, values, kind, init = _combined(draw)
    inclusive = init is None or draw.shape.random() < 0.5
    keys, equal, starts = draw_run_keys(draw)
    found = combine_parts(op.accumulate, values.astype(kind), starts, init, inclusive=inclusive)
    sources = {"keys": draw.source(keys), "source": draw.source(values)}
    options = {"op": op.function, "init": init, "inclusive": inclusive, "equal": equal}
    return Call("scan_by_key", sources, options, [draw.result(found, sources)])


def make_reduce_by_key(draw: Draw) -> Call:
    """``reduce_by_key``."""
    op, values, _, _ = _combined(draw)
    keys, equal, starts = draw_run_keys(draw)
    scanned = combine_parts(op.accumulate, values, starts)
    totals = scanned[np.append(starts[1:], values.size) - 1] if values.size else values
    sources = {"keys": draw.source(keys), "source": draw.source(values)}
    rest = values.size - starts.size
    results = [draw.result(keys[starts], {"keys": sources["keys"]}, rest), draw.result(totals, None, rest)]
    found = draw.shape.choice(["", "", "device", "host"])
    options = {"op": op.function, "equal": equal}
    return Call("reduce_by_key", sources, options, results, "pair", found, counted=True)


def draw_run_keys(draw: Draw) -> tuple[Values, Any, Values]:
    """Keys, the function that compares neighbours, and where runs of them begin."""
    equating = draw.shape.choice(EQUATING)
    keys = draw_runs(draw.data, draw_dtype(draw.shape, equating.kinds), draw.size)
    return keys, equating.function, cut_runs(equating.key(keys))


def _combined(draw: Draw) -> tuple[Combining, Values, Any, Any]:
    """An operator, values, the dtype in which they are combined, and what comes before them, or None."""
    op = draw.shape.choice(COMBINING)
    dtype = draw_dtype(draw.shape, op.kinds)
    if dtype.names is not None:
        draw.size = min(draw.size, 5000)  # plain Python combines them
    values = draw_numbers(draw.data, dtype, draw.size)
    if op.kinds == "iuf" and dtype.kind == "f":
        values = values + dtype.type(0.0)  # of zeros, either is the least
    how = draw.shape.choice(["none", "plain", "typed", "wide"])
    wide = np.dtype({"i": "i8", "u": "u8", "f": "f8"}.get(dtype.kind, dtype))
    kind = wide if how == "wide" else dtype
    if how == "none":
        return op, values, kind, None
    init = _initial(draw, kind)
    is_plain = how == "plain" and dtype.names is None
    return op, values, kind, init.item() if is_plain else init


def _initial(draw: Draw, kind: Any) -> Any:
    first = draw_numbers(draw.data, np.dtype(kind), 1)[0]
    return _as_tuple(first) if first.dtype.names else first


def _as_tuple(value: Any) -> Any:
    """The numbers of a record or an array in it, and of those within, as Python's tuples."""
    if isinstance(value, np.void):
        return tuple(_as_tuple(value[name]) for name in value.dtype.names or ())
    return tuple(value.tolist()) if isinstance(value, np.ndarray) else value.item()
