"""Random selections and runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.fuzz_algorithms.calls import Array, Call, Draw
from tools.fuzz_algorithms.inputs import draw_bits, draw_dtype, draw_keys
from tools.fuzz_algorithms.operators import CHOOSING, NUMBERS, Values
from tools.fuzz_algorithms.scans import draw_run_keys

FOUND = ("", "", "device", "host", "device within")


def make_select(draw: Draw) -> Call:
    """``select`` or ``partition``."""
    values, chosen, extra, options = _chosen(draw)
    sources = {"source": draw.source(values), **extra}
    found = draw.shape.choice(FOUND)
    if draw.shape.random() < 0.5:
        results = [draw.result(values[chosen], {"source": sources["source"]}, values.size - int(chosen.sum()))]
        return Call("select", sources, options, results, found=found, counted=True)
    both = np.concatenate([values[chosen], values[~chosen]])
    results = [draw.result(both, {"source": sources["source"]})]
    return Call("partition", sources, options | {"_chosen": int(chosen.sum())}, results, "partition", found)


def make_unique(draw: Draw) -> Call:
    """``unique``, ``unique_by_key`` or ``run_length_encode``."""
    algorithm = draw.shape.choice(["unique", "unique_by_key", "run_length_encode"])
    keys, equal, starts = draw_run_keys(draw)
    rest, found, options = keys.size - starts.size, draw.shape.choice(FOUND), {"equal": equal}
    if algorithm == "unique_by_key":
        values = draw_bits(draw.data, draw_dtype(draw.shape, NUMBERS + "V"), keys.size)
        sources = {"keys": draw.source(keys), "source": draw.source(values)}
        over = [{name: array} for name, array in sources.items()]
        results = [draw.result(keys[starts], over[0], rest), draw.result(values[starts], over[1], rest)]
        return Call(algorithm, sources, options, results, "pair", found, counted=True)
    sources = {"source": draw.source(keys)}
    results = [draw.result(keys[starts], sources, rest)]
    if algorithm == "unique":
        return Call(algorithm, sources, options, results, found=found, counted=True)
    results.append(draw.result(np.diff(np.append(starts, keys.size)), None, rest))
    return Call(algorithm, sources, options, results, "pair", found, counted=True)


def _chosen(draw: Draw) -> tuple[Values, Values, dict[str, Array], dict[str, Any]]:
    """Values, which of them are chosen, and what says so: a source or an option."""
    choosing, by_flags = draw.shape.choice(CHOOSING), draw.shape.random() < 0.4
    values = draw_keys(draw.data, draw_dtype(draw.shape, choosing.kinds), draw.size)
    if not by_flags:
        return values, choosing.each(values), {}, {"predicate": choosing.function}
    flags = draw.data.random(values.size) < draw.data.choice([0.0, 0.01, 0.5, 1.0])
    passed = flags.astype(draw.shape.choice(["?", "u1", "i4", "f4"]))
    return values, flags, {"flags": draw.source(passed)}, {}
