"""Random histograms, and calls that treat each element by itself."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tools.fuzz_algorithms.calls import Call, Draw, Result
from tools.fuzz_algorithms.forms import filler
from tools.fuzz_algorithms.inputs import draw_bits, draw_dtype, draw_keys, draw_numbers
from tools.fuzz_algorithms.operators import NUMBERS, Values, unchanged
from tools.fuzz_algorithms.orders import without_nan


def make_histogram(draw: Draw) -> Call:
    """``histogram_even`` or ``histogram_range``."""
    even, dtype = draw.shape.random() < 0.5, draw_dtype(draw.shape, NUMBERS)
    values = draw_keys(draw.data, dtype, draw.size) if draw.shape.random() < 0.5 else _near_zero(draw, dtype)
    if even:
        bins, width = draw.shape.choice([1, 2, 7, 64, 300, 5000]), float(draw.data.choice([0.25, 1.0, 4.0]))
        lower = float(draw.data.integers(-40, 20))
        upper = lower + bins * width
        with np.errstate(all="ignore"):
            places = np.floor((values.astype("f8") - lower) / width)
        inside = (values.astype("f8") >= lower) & (values.astype("f8") < upper)
        found = np.bincount(places[inside].astype(np.int64), minlength=bins)
        sources, options = {"source": draw.source(values)}, {"bins": bins, "lower": lower, "upper": upper}
        return Call("histogram_even", sources, options, [draw.result(found)])
    edges = _edges(draw, dtype, values)
    places = np.searchsorted(edges, values, "right")
    inside = (places > 0) & (places < edges.size) & (values == values)
    found = np.bincount(places[inside] - 1, minlength=edges.size - 1)
    sources = {"source": draw.source(values), "edges": draw.source(edges)}
    return Call("histogram_range", sources, {}, [draw.result(found)])


def make_gather(draw: Draw) -> Call:
    """``gather``."""
    values = draw_bits(draw.data, draw_dtype(draw.shape, NUMBERS + "cV"), draw.size)
    check = draw.shape.random() < 0.5
    low, high = (0, values.size) if check else (-9, values.size + 9)
    dtype = draw.shape.choice(["i4", "i8", "u4"])
    low = 0 if dtype == "u4" else low
    count = int(draw.data.choice([0, 1, 63, 1500])) if values.size else 0
    indices = draw.data.integers(low, max(high, low + 1), count).astype(dtype)
    found = values[np.clip(indices.astype("i8"), 0, max(values.size - 1, 0))] if count else values[:0]
    sources = {"source": draw.source(values), "indices": draw.source(indices)}
    return Call("gather", sources, {"check": check}, [draw.result(found)])


def make_scatter(draw: Draw) -> Call:
    """``scatter``, to places of which there is none twice."""
    values = draw_bits(draw.data, draw_dtype(draw.shape, NUMBERS + "cV"), draw.size)
    check = draw.shape.random() < 0.5
    room = values.size + int(draw.data.integers(0, 9))
    indices = draw.data.permutation(room)[: values.size].astype(draw.shape.choice(["i4", "i8"]))
    if not check:
        indices += indices.dtype.type(draw.data.integers(-5, 6))
    inside, found = (indices >= 0) & (indices < room), filler(room, values.dtype)
    found[indices[inside]] = values[inside]
    sources = {"source": draw.source(values), "indices": draw.source(indices)}
    return Call("scatter", sources, {"check": check}, [Result(found, draw.array_form())])


def make_transform(draw: Draw) -> Call:
    """``transform`` of one or two sources."""
    dtype = draw_dtype(draw.shape, "iufc")
    values = draw_numbers(draw.data, dtype, draw.size)
    sources = {"first": draw.source(values)}
    if draw.shape.random() < 0.5:
        made = values
        return Call("transform", sources, {"function": unchanged}, [draw.result(made, sources)], positional=("first",))
    shorter = draw_numbers(draw.data, dtype, int(draw.data.integers(0, draw.size + 3)))
    sources["second"] = draw.source(shorter)
    count = min(values.size, shorter.size)
    found = values[:count] * shorter[:count]
    if dtype.kind in "iu":  # what Numba computes is as wide as integers of the machine
        wide = "i8" if dtype.kind == "i" else "u8"
        found = values[:count].astype(wide) * shorter[:count].astype(wide)
    options = {"function": operator.mul}
    return Call("transform", sources, options, [draw.result(found, sources)], positional=("first", "second"))


def _near_zero(draw: Draw, dtype: np.dtype[Any]) -> Values:
    return draw.data.integers(0 if dtype.kind in "ub" else -60, 2 if dtype.kind == "b" else 100, draw.size).astype(
        dtype
    )


def _edges(draw: Draw, dtype: np.dtype[Any], values: Values) -> Values:
    """Bounds of bins, of the same dtype as the values: some of those, even ones, or ones of equal ratios."""
    count = int(draw.shape.choice([2, 3, 9, 65, 300, 4500]))
    kinds = ["own", "own", "even", "ratios"] if dtype.kind in "f" else ["own", "any"]
    chosen = draw.data.choice(kinds)
    if chosen == "own" and values.size:
        return np.sort(without_nan(draw.data.choice(values, count)))
    if chosen == "even":
        return np.linspace(-50, 50, count).astype(dtype)
    if chosen == "ratios":
        return np.geomspace(1e-3, 1e4, count).astype(dtype)
    return np.sort(without_nan(draw_bits(draw.data, dtype, count)))
