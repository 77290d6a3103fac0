"""Random sorts, searches and merges."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import numpy as np

from tools.fuzz_algorithms.calls import Call, Draw
from tools.fuzz_algorithms.inputs import draw_bits, draw_dtype, draw_keys, draw_offsets
from tools.fuzz_algorithms.operators import NUMBERS, ORDERINGS, Ordering, Values

ORDERED = NUMBERS + "mM"
SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


def make_sort(draw: Draw) -> Call:
    """``sort``, ``argsort`` or ``sort_by_key``."""
    algorithm = draw.shape.choice(["sort", "argsort", "sort_by_key"])
    keys, order, options = _ordered(draw)
    if algorithm == "sort":
        sources = {"source": draw.source(keys)}
        return Call("sort", sources, options, [draw.result(keys[order], sources)])
    if algorithm == "argsort":
        return Call("argsort", {"source": draw.source(keys)}, options, [draw.result(order)])
    values = draw_bits(draw.data, draw_dtype(draw.shape, NUMBERS + "V"), keys.size)
    sources = {"keys": draw.source(keys), "source": draw.source(values)}
    results = [
        draw.result(keys[order], {"keys": sources["keys"]}),
        draw.result(values[order], {"source": sources["source"]}),
    ]
    return Call("sort_by_key", sources, options, results, "pair")


def make_segmented_sort(draw: Draw) -> Call:
    """``segmented_sort``."""
    descending = draw.shape.random() < 0.5
    values = draw_keys(draw.data, draw_dtype(draw.shape, ORDERED), draw.size)
    offsets = draw_offsets(draw.data, values.size, draw.shape.choice(["i4", "i8", "u4"]), outside=True)
    marks = np.clip(offsets.astype(np.int64), 0, values.size)
    bounds = np.concatenate([[0], marks, [values.size]]).tolist()
    made = values.copy()
    for begin, end in itertools.pairwise(bounds):
        part = values[begin:end]
        made[begin:end] = part[sort_places(part, descending=descending)]
    sources = {"source": draw.source(values), "offsets": draw.source(offsets)}
    results = [draw.result(made, {"source": sources["source"]})]
    return Call("segmented_sort", sources, {"descending": descending}, results)


def make_topk(draw: Draw) -> Call:
    """``topk``."""
    largest = draw.shape.random() < 0.5
    values = draw_keys(draw.data, draw_dtype(draw.shape, ORDERED), draw.size)
    k = int(draw.data.choice([0, 1, 2, 7, 64, draw.size // 9, draw.size // 7, draw.size, draw.size + 5]))
    order = sort_places(values, descending=largest)[:k]
    results = [draw.result(values[order]), draw.result(order)]
    return Call("topk", {"source": draw.source(values)}, {"k": k, "largest": largest}, results, "pair")


def make_merge(draw: Draw) -> Call:
    """``merge``."""
    ordering = draw.shape.choice(ORDERINGS)
    dtype, cut = draw_dtype(draw.shape, ordering.kinds), int(draw.data.integers(0, draw.size + 1))
    values = without_nan(draw_keys(draw.data, dtype, draw.size))
    first, second = (part[_places_by(ordering, part)] for part in (values[:cut], values[cut:]))
    both = np.concatenate([first, second])
    sources = {"first": draw.source(first), "second": draw.source(second)}
    made = both[_places_by(ordering, both)]
    return Call("merge", sources, {"less": ordering.function}, [draw.result(made)])


def make_searchsorted(draw: Draw) -> Call:
    """``searchsorted``."""
    ordering, side = draw.shape.choice(ORDERINGS), draw.shape.choice(SIDES)
    dtype = draw_dtype(draw.shape, ordering.kinds)
    values = without_nan(draw_keys(draw.data, dtype, draw.size))
    values = values[_places_by(ordering, values)]
    wanted = without_nan(draw_keys(draw.data, dtype, int(draw.data.integers(0, 900))))
    if values.size:
        wanted[::3] = draw.data.choice(values, wanted[::3].size)
    found = np.searchsorted(ordering.key(values), ordering.key(wanted), side).astype(np.int64)
    sources = {"source": draw.source(values), "wanted": draw.source(wanted)}
    return Call("searchsorted", sources, {"less": ordering.function, "side": side}, [draw.result(found)])


def without_nan(values: Values) -> Values:
    """*values* with 0 for NaN, which no function of two values puts anywhere."""
    if values.dtype.kind == "f":
        values[np.isnan(values)] = 0
    return values


def sort_places(values: Values, *, descending: bool) -> Values:
    """The places of *values* in their order, equal ones in the order that they have."""
    if not descending:
        return np.argsort(values, kind="stable")
    return values.size - 1 - np.argsort(values[::-1], kind="stable")[::-1]


def _places_by(ordering: Ordering, values: Values) -> Values:
    return np.argsort(ordering.key(values), kind="stable")


def _ordered(draw: Draw) -> tuple[Values, Values, dict[str, Any]]:
    """Keys, their places in the order of the options, and the options."""
    descending, by_bits = draw.shape.random() < 0.5, draw.shape.random() < 0.6
    if not by_bits:
        ordering = draw.shape.choice(ORDERINGS)
        keys = without_nan(draw_keys(draw.data, draw_dtype(draw.shape, ordering.kinds), draw.size))
        order = sort_places(ordering.key(keys), descending=descending)
        return keys, order, {"less": ordering.function, "descending": descending}
    keys = draw_keys(draw.data, draw_dtype(draw.shape, ORDERED), draw.size)
    options: dict[str, Any] = {"descending": descending}
    width, chosen = keys.dtype.itemsize * 8, draw.shape.random()
    begin, end = sorted(draw.shape.sample(range(width + 1), 2))
    if chosen > 0.3 or keys.dtype.kind not in "iu":
        return keys, sort_places(keys, descending=descending), options
    words = keys.view(f"u{keys.dtype.itemsize}")
    if keys.dtype.kind == "i":
        words = words ^ words.dtype.type(1 << (width - 1))
    digits = (words.astype(object) >> begin) % (1 << (end - begin)) if keys.size else words
    options |= {"begin_bit": begin, "end_bit": end}
    return keys, sort_places(digits.astype("u8"), descending=descending), options
