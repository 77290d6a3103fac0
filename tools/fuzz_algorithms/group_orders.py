"""Random sorts, reductions and scans of groups of threads."""

from __future__ import annotations

from typing import Any

import numpy as np

import numba_hip as hip
from tools.fuzz_algorithms.groups import Shape, Use, draw_alike
from tools.fuzz_algorithms.inputs import draw_dtype, draw_keys, draw_numbers
from tools.fuzz_algorithms.operators import COMBINING, NUMBERS, ORDERINGS, Values, follow
from tools.fuzz_algorithms.orders import sort_places, without_nan


def make_sort_use(shape: Shape) -> Use:
    """A radix sort, of some bits and in either direction, or a merge sort; of keys, or of keys and values."""
    draw, items, threads = shape.random, shape.items, shape.threads
    pairs, radix, striped = draw.random() < 0.5, draw.random() < 0.6, draw.random() < 0.4
    ordering = draw.choice([one for one in ORDERINGS if one.kinds != "V" and one.kinds != "c"])
    kind = draw_dtype(draw, NUMBERS + "mM" if radix else ordering.kinds)
    value = draw_dtype(draw, "iuf")
    given = (kind, value) if pairs else (kind,)
    name = f"make_{'radix' if radix else 'merge'}_sort_{'pairs' if pairs else 'keys'}"
    make, descending = getattr(shape.made_by, name), draw.random() < 0.5
    if radix:
        sort = make(*given, threads, items, descending=descending, striped=striped)
    else:
        sort = make(*given, threads, items, ordering.function)

    @hip.jit(device=True)
    def sort_pairs(keys, others, number):  # type: ignore[no-untyped-def]
        sort(keys, others, number)
        return 0

    @hip.jit(device=True)
    def sort_keys(keys, others, number):  # type: ignore[no-untyped-def]
        sort(keys, number)
        return 0

    def answer(keys: Values, others: Values, number: int) -> tuple[Values, Values, Any]:
        valid = min(number, keys.size)
        by = keys if radix else ordering.key(keys)
        order = sort_places(by[:valid], descending=descending and radix)
        places = np.concatenate([order, np.arange(valid, keys.size)])
        known = np.arange(keys.size) < valid if radix else np.ones(keys.size, bool)
        made = [np.ma.masked_array(one[places], ~known) for one in (keys, others)]
        if radix and striped:
            made = [one.reshape(items, -1).T.reshape(-1) for one in made]
        return made[0], made[1] if pairs else others, 0

    told = f" descending={descending} striped={striped}" if radix else f" by {ordering.function.__name__}"
    apply = sort_pairs if pairs else sort_keys
    drawn = draw_keys if radix else _draw_compared
    return shape.use(name, (kind, value), apply, answer, drawn, told)


def make_combining_use(shape: Shape) -> Use:
    """A reduction or a scan of values or items by an operator of numbers."""
    draw, items, threads = shape.random, shape.items, shape.threads
    op = draw.choice([one for one in COMBINING if one.function is not follow])
    kind = draw_dtype(draw, op.kinds.replace("V", ""))
    name, partial = draw.choice(["make_reduce", "make_inclusive_scan", "make_exclusive_scan"]), draw.random() < 0.6
    made = getattr(shape.made_by, name)(kind, threads, op.function, items)

    @hip.jit(device=True)
    def reduce_values(keys, others, number):  # type: ignore[no-untyped-def]
        return made(keys[0], number) if partial else made(keys[0])

    @hip.jit(device=True)
    def reduce_items(keys, others, number):  # type: ignore[no-untyped-def]
        return made(keys, number) if partial else made(keys)

    @hip.jit(device=True)
    def scan_values(keys, others, number):  # type: ignore[no-untyped-def]
        keys[0] = made(keys[0], others[0])
        return keys[0]

    @hip.jit(device=True)
    def scan_items(keys, others, number):  # type: ignore[no-untyped-def]
        return made(keys, others[0])

    def answer(keys: Values, others: Values, number: int) -> tuple[Values, Values, Any]:
        if name == "make_reduce":
            return keys, others, op.accumulate(keys[:number] if partial else keys)[-1]
        through = op.accumulate(np.concatenate([others[:1], keys]))
        made = through[1:] if name == "make_inclusive_scan" else through[:-1]
        return made, others, made if items == 1 else op.accumulate(keys)[-1]

    of_items = reduce_items if name == "make_reduce" else scan_items
    apply = of_items if items > 1 else reduce_values if name == "make_reduce" else scan_values
    made_use = shape.use(name, (kind, kind), apply, answer, draw_alike, f" by {op.function.__name__}", returned=kind)
    made_use.begins = name != "make_reduce"
    return made_use


def make_following_use(shape: Shape) -> Use:
    """A reduction or a scan of tuples, whose operator is not commutative."""
    draw, threads, kind = shape.random, shape.threads, np.dtype("u4")
    shape.items = 1
    name = draw.choice(["make_reduce", "make_inclusive_scan", "make_exclusive_scan"])
    made = getattr(shape.made_by, name)((kind, kind), threads, follow)

    @hip.jit(device=True)
    def reduce(keys, others, number):  # type: ignore[no-untyped-def]
        keys[0], others[0] = made((keys[0], others[0]), number)
        return 0

    @hip.jit(device=True)
    def scan(keys, others, number):  # type: ignore[no-untyped-def]
        keys[0], others[0] = made((keys[0], others[0]), (np.uint32(3), np.uint32(5)))
        return 0

    def answer(keys: Values, others: Values, number: int) -> tuple[Values, Values, Any]:
        accumulate = next(one.accumulate for one in COMBINING if one.function is follow)
        pairs = np.zeros(keys.size + 1, [("slope", "u4"), ("shift", "u4")])
        pairs["slope"], pairs["shift"] = np.append([3], keys), np.append([5], others)
        if name == "make_reduce":
            last = accumulate(pairs[1 : number + 1])[-1:]
            found = np.repeat(last, keys.size)
        else:
            through = accumulate(pairs)
            found = through[1:] if name == "make_inclusive_scan" else through[:-1]
        return found["slope"], found["shift"], 0

    apply = reduce if name == "make_reduce" else scan
    return shape.use(name, (kind, kind), apply, answer, draw_numbers, " of tuples")


def _draw_compared(data: np.random.Generator, kind: np.dtype[Any], size: int) -> Values:
    return without_nan(draw_keys(data, kind, size))
