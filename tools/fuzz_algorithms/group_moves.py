"""Random movements of items within groups of threads, and what tells something of neighbours and runs."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import numba_hip as hip
from tools.fuzz_algorithms.group_kernels import histogram_kernel, transfer_kernel
from tools.fuzz_algorithms.groups import Shape, Use, draw_alike
from tools.fuzz_algorithms.inputs import draw_dtype, draw_keys, draw_numbers
from tools.fuzz_algorithms.operators import NUMBERS, Values


def make_exchange_use(shape: Shape) -> Use:
    """An exchange of blocked and striped items, or by ranks."""
    draw, items, kind = shape.random, shape.items, draw_dtype(shape.random, NUMBERS + "c")
    pattern = draw.choice(["striped_to_blocked", "blocked_to_striped", "scatter_to_blocked", "scatter_to_striped"])
    exchange = shape.made_by.make_exchange(kind, shape.threads, items, pattern)

    @hip.jit(device=True)
    def rearrange(keys, others, number):  # type: ignore[no-untyped-def]
        exchange(keys)
        return 0

    @hip.jit(device=True)
    def scatter(keys, others, number):  # type: ignore[no-untyped-def]
        exchange(keys, others)
        return 0

    def answer(keys: Values, others: Values, number: int) -> tuple[Values, Values, Any]:
        if pattern == "striped_to_blocked":
            return keys.reshape(-1, items).T.reshape(-1), others, 0
        if pattern == "blocked_to_striped":
            return keys.reshape(items, -1).T.reshape(-1), others, 0
        made = np.empty_like(keys)
        made[others] = keys
        return made if pattern == "scatter_to_blocked" else made.reshape(items, -1).T.reshape(-1), others, 0

    apply = scatter if "scatter" in pattern else rearrange
    return shape.use("make_exchange", (kind, np.dtype("i4")), apply, answer, draw_keys, f" {pattern}")


def make_neighbour_use(shape: Shape) -> Use:
    """Flags of where items change, their differences, or shuffles."""
    draw, items, kind = shape.random, shape.items, draw_dtype(shape.random, "iuf")
    name = draw.choice(["make_discontinuity", "make_adjacent_difference", "make_shuffle"])
    from_behind, where = draw.random() < 0.5, (kind, shape.threads)
    if name == "make_discontinuity":
        made = shape.made_by.make_discontinuity(*where, items, operator.ne, tails=from_behind)
    elif name == "make_adjacent_difference":
        made = shape.made_by.make_adjacent_difference(*where, items, operator.xor if kind.kind != "f" else operator.sub,
                                                      right=from_behind)  # fmt: skip
    else:
        made = shape.made_by.make_shuffle(*where, "down" if from_behind else "up", items)

    @hip.jit(device=True)
    def apply(keys, others, number):  # type: ignore[no-untyped-def]
        made(keys, others)
        return 0

    def answer(keys: Values, others: Values, number: int) -> tuple[Values, Values, Any]:
        near = np.append(keys[1:], keys[-1:]) if from_behind else np.append(keys[:1], keys[:-1])
        if name == "make_shuffle":
            return keys, near, 0
        end = keys.size - 1 if from_behind else 0
        if name == "make_discontinuity":
            flags = (near != keys).astype(others.dtype)
            flags[end] = 1
            return keys, flags, 0
        differences = keys ^ near if kind.kind != "f" else keys - near
        differences[end] = keys[end]
        return keys, differences, 0

    kinds = (kind, np.dtype("i4") if name == "make_discontinuity" else kind)
    return shape.use(name, kinds, apply, answer, _draw_few, f" from {'behind' if from_behind else 'before'}")


def make_rank_use(shape: Shape) -> Use:
    """The ranks of digits."""
    bits, items = shape.random.choice([1, 3, 4, 6, 8]), shape.items
    rank_digits = shape.made_by.make_radix_rank(shape.threads, items, bits)

    @hip.jit(device=True)
    def apply(keys, others, number):  # type: ignore[no-untyped-def]
        rank_digits(keys, others)
        return 0

    def answer(keys: Values, others: Values, number: int) -> tuple[Values, Values, Any]:
        ranks = np.empty(keys.size, others.dtype)
        ranks[np.argsort(keys, kind="stable")] = np.arange(keys.size)
        return keys, ranks, 0

    def draw(data: np.random.Generator, kind: np.dtype[Any], size: int) -> Values:
        return data.integers(0, 1 << bits, size).astype(kind)

    return shape.use("make_radix_rank", (np.dtype("i4"), np.dtype("i4")), apply, answer, draw, f" of {bits} bits")


def make_decode_use(shape: Shape) -> Use:
    """Runs that are decoded, from some place on."""
    kind, items, threads = draw_dtype(shape.random, "iuf"), shape.items, shape.threads
    decoded_items = shape.random.choice([1, 2, 5])
    decode = shape.made_by.make_run_length_decode(kind, threads, items, decoded_items)
    kept = min(items, decoded_items)

    @hip.jit(device=True)
    def apply(keys, others, number):  # type: ignore[no-untyped-def]
        decoded = hip.local.array(decoded_items, kind)
        total = decode(keys, others, decoded, number - 1)
        for k in range(kept):
            keys[k] = decoded[k]
        return total

    def answer(keys: Values, others: Values, number: int) -> tuple[Values, Values, Any]:
        decoded = np.repeat(keys, others)
        room = np.ma.masked_array(np.zeros(keys.size // items * decoded_items, kind), True)
        part = decoded[number - 1 :][: room.size]
        room[: part.size] = part
        made = np.ma.masked_array(keys.copy().reshape(-1, items))
        made[:, :kept] = room.reshape(-1, decoded_items)[:, :kept]
        return made.reshape(-1), others, decoded.size

    kinds, told = (kind, np.dtype("i4")), f" to {decoded_items} items"
    return shape.use("make_run_length_decode", kinds, apply, answer, draw_numbers, told)


def make_transfer_use(shape: Shape) -> Use:
    """Loads and stores of tiles, some of whose items there may not be."""
    draw, items, threads = shape.random, shape.items, shape.threads
    kind = draw_dtype(draw, NUMBERS)
    ways = (
        draw.choice(["direct", "vectorize", "transpose", "warp_transpose", "striped"]),
        draw.choice(["direct", "vectorize", "transpose", "warp_transpose"]),
    )
    load_by, store_by = (ways[0], ways[0]) if ways[0] == "striped" else ways
    load = shape.made_by.make_load(kind, threads, items, load_by)
    store = shape.made_by.make_store(kind, threads, items, store_by)

    def answer(keys: Values, others: Values, number: int) -> tuple[Values, Values, Any]:
        loaded, stored, valid = keys.copy(), others.copy(), min(number, keys.size)
        loaded[valid:], stored[:valid] = 1, keys[:valid]
        return loaded.reshape(items, -1).T.reshape(-1) if load_by == "striped" else loaded, stored, 0

    kernel = transfer_kernel(load, store, items, shape.count, shape.group_lanes, kind)
    told = f" {load_by} and make_store {store_by}"
    return shape.use_of_kernel("make_load", (kind, kind), kernel, answer, draw_alike, told)


def make_histogram_use(shape: Shape) -> Use:
    """Histograms of a group, which add to what there is."""
    draw, items, threads = shape.random, shape.items, shape.threads
    least = min(group.stop - group.start for group in shape.groups())
    bins, algorithm, kind = draw.randint(1, min(least, 300)), draw.choice(["atomic", "sort"]), np.dtype("i4")
    if shape.makers == "wave":
        algorithm = "atomic"  # sorts of several waves of a block take a minute of LLVM's time
    count = shape.made_by.make_histogram(kind, threads, items, bins, algorithm)
    fill = shape.made_by.make_histogram_init(threads, bins)

    def answer(keys: Values, others: Values, number: int) -> tuple[Values, Values, Any]:
        made = others.copy()
        made[:bins] = 2 * np.bincount(keys, minlength=bins)
        return keys, made, 0

    def draw_bins(data: np.random.Generator, kind: np.dtype[Any], size: int) -> Values:
        return data.integers(0, bins, size).astype(kind)

    kernel = histogram_kernel(count, fill, items, shape.count, bins, shape.group_lanes)
    told = f" of {bins} bins, {algorithm}"
    return shape.use_of_kernel("make_histogram", (kind, kind), kernel, answer, draw_bins, told)


def _draw_few(data: np.random.Generator, kind: np.dtype[Any], size: int) -> Values:
    return data.integers(0, int(data.choice([2, 90])), size).astype(kind)
