"""``hip.block`` and what ``hip.wave`` has of it: differential tests against NumPy over block shapes, items, waves and
kinds of values."""

import itertools
import math
import operator
from collections import namedtuple

import numpy as np
import pytest
from numba.core import types

import numba_hip as hip
from numba_hip import block, config, wave
from numba_hip.errors import AlgorithmError

SHAPES = [(16, 9), 1, 37, 64, (5, 3, 7), 256]
"""More axes with a rest, one thread, part of a wave, whole waves, and several of them."""

CASES = list(itertools.product(SHAPES, [3, 1, 4]))


def numbers(size, dtype=np.int32, seed=1):
    kind = np.dtype(dtype).kind
    low, high = {"b": (0, 2), "u": (0, 100)}.get(kind, (-50, 50))
    return np.random.default_rng(seed + size).integers(low, high, size).astype(dtype)


def follow(first, second):
    """Two maps x -> a * x + b modulo 8192, one after the other: associative, and not commutative. No *a* is even, which
    would let what was before be forgotten."""
    return first[0] * second[0] & 8191, second[0] * first[1] + second[1] & 8191


def followed(pairs):
    return list(itertools.accumulate(pairs, lambda a, b: follow(a, (int(b[0]), int(b[1])))))


def groups_of(count, lanes):
    """The places of the members of each group of up to *lanes* threads, of *count*."""
    return [np.arange(start, min(start + lanes, count)) for start in range(0, count, lanes)]


def lanes_of_device():
    return hip.get_current_device().WARP_SIZE


def test_sums_and_scans_of_a_block():
    threads = (16, 9)
    total = block.make_sum(np.int32, threads)
    scan = block.make_exclusive_sum(np.int32, threads, with_aggregate=True)
    pairs = block.make_inclusive_scan((np.int64, np.int64), threads, follow)
    top = block.make_reduce(np.int32, threads, max)

    @hip.jit
    def combine(x, valid, out):
        i = block.rank()
        out[i, 0] = total(x[i])
        out[i, 1], out[i, 2] = scan(x[i])
        out[i, 3] = pairs((x[i] | 1, x[i]))[1]
        out[i, 4] = top(x[i], valid)
        out[i, 5] = block.size()

    x = np.abs(numbers(144)) + 1
    out = np.zeros((144, 6), np.int64)
    combine[1, threads](x, 100, out)
    assert (out[:, 0] == x.sum()).all()
    np.testing.assert_array_equal(out[:, 1], np.cumsum(x) - x)
    assert (out[:, 2] == x.sum()).all()
    assert out[:, 3].tolist() == [b for _, b in followed([(int(a) | 1, int(a)) for a in x])]
    assert (out[:, 4] == x[:100].max()).all()
    assert (out[:, 5] == 144).all()


@pytest.mark.long
@pytest.mark.parametrize("makers", [block, wave])
@pytest.mark.parametrize(("threads", "items"), CASES)
def test_tiles_are_sorted(makers, threads, items):
    count = math.prod(np.atleast_1d(threads).tolist())
    load = block.make_load(np.int32, threads, items)
    store = block.make_store(np.int32, threads, items)
    by_bits = makers.make_radix_sort_keys(np.int32, threads, items)
    by_function = makers.make_merge_sort_pairs(np.int32, np.int32, threads, items, lambda a, b: a > b)

    @hip.jit
    def sort(x, ascending, descending, places):
        keys, payload = hip.local.array(items, np.int32), hip.local.array(items, np.int32)
        load(x, keys)
        by_bits(keys)
        store(ascending, keys)
        load(x, keys)
        for k in range(items):
            payload[k] = block.rank() * items + k
        by_function(keys, payload)
        store(descending, keys)
        store(places, payload)

    x = numbers(count * items)
    ascending, descending, places = (np.zeros_like(x) for _ in range(3))
    sort[1, threads](x, ascending, descending, places)
    lanes = count if makers is block else lanes_of_device()
    for group in groups_of(count, lanes):
        part = slice(group[0] * items, (group[-1] + 1) * items)
        np.testing.assert_array_equal(ascending[part], np.sort(x[part]))
        order = np.argsort(-x[part], kind="stable")
        np.testing.assert_array_equal(descending[part], x[part][order])
        np.testing.assert_array_equal(places[part], order + part.start)


@pytest.mark.long
@pytest.mark.parametrize("dtype", "? i1 u1 i2 u2 f2 i4 u4 f4 i8 u8 f8 M8[s]".split())
def test_numbers_of_every_type_are_sorted(dtype):
    threads, items, valid = 70, 2, 131
    load, store = block.make_load(dtype, threads, items, "striped"), block.make_store(dtype, threads, items, "striped")
    exchange = block.make_exchange(dtype, threads, items, "striped_to_blocked")
    up = block.make_radix_sort_keys(dtype, threads, items, striped=True)
    down = block.make_radix_sort_pairs(dtype, np.int16, threads, items, descending=True, striped=True)

    @hip.jit
    def sort(x, ascending, descending, places):
        items_of_x, payload = hip.local.array(items, x.dtype), hip.local.array(items, np.int16)
        load(x, items_of_x)
        exchange(items_of_x)
        up(items_of_x, valid)
        store(ascending, items_of_x, valid)
        load(x, items_of_x)
        exchange(items_of_x)
        for k in range(items):
            payload[k] = block.rank() * items + k
        down(items_of_x, payload)
        store(descending, items_of_x)
        for k in range(items):
            places[k * threads + block.rank()] = payload[k]

    x = np.random.default_rng(3).integers(0, 200, threads * items).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[:6] = [np.nan, -0.0, 0.0, np.inf, -np.inf, -3]
    ascending, descending = np.zeros_like(x), np.zeros_like(x)
    places = np.zeros(x.size, np.int16)
    sort[1, threads](x, ascending, descending, places)
    np.testing.assert_array_equal(ascending[:valid], np.sort(x[:valid]))
    assert (ascending[valid:] == np.zeros(1, dtype)).all()
    np.testing.assert_array_equal(descending, np.sort(x)[::-1])
    np.testing.assert_array_equal(x[places], descending)
    equal = np.flatnonzero(descending[1:] == descending[:-1])
    assert (places[equal] < places[equal + 1]).all()


@pytest.mark.long
@pytest.mark.parametrize("makers", [block, wave])
@pytest.mark.parametrize(("threads", "items"), [case for case in CASES if case[1] > 1])
def test_scans_and_reductions_of_items(makers, threads, items):
    count = math.prod(np.atleast_1d(threads).tolist())
    loads = [block.make_load(np.int32, threads, items, name) for name in ("direct", "transpose", "warp_transpose")]
    stores = [block.make_store(np.int32, threads, items, name) for name in ("warp_transpose", "direct", "transpose")]
    (load, load_across, load_in_waves), (store_in_waves, store, store_across) = loads, stores
    through = makers.make_inclusive_scan(np.int32, threads, max, items)
    below = makers.make_exclusive_sum(np.int32, threads, items)
    least = makers.make_reduce(np.int32, threads, min, items)

    @hip.jit
    def combine(x, valid, highest, sums, out):
        i = block.rank()
        own = hip.local.array(items, np.int32)
        load(x, own)
        out[i, 0] = least(own)
        out[i, 1] = least(own, valid)
        out[i, 2] = below(own)
        store_in_waves(sums, own)
        load_across(x, own, valid, -1000)
        out[i, 3] = through(own, -40)
        store(highest, own)
        load_in_waves(x, own)
        store_across(x, own)

    x = numbers(count * items)
    before = x.copy()
    highest, sums = np.zeros_like(x), np.zeros_like(x)
    out = np.zeros((count, 4), np.int32)
    lanes = count if makers is block else lanes_of_device()
    valid = min(count, lanes) * items - 1
    combine[1, threads](x, valid, highest, sums, out)
    np.testing.assert_array_equal(x, before)
    loaded = np.where(np.arange(x.size) < valid, x, -1000)
    for group in groups_of(count, lanes):
        part = slice(group[0] * items, (group[-1] + 1) * items)
        assert (out[group, 0] == x[part].min()).all()
        assert (out[group, 1] == x[part][: min(valid, x[part].size)].min()).all()
        assert (out[group, 2] == x[part].sum()).all()
        assert (out[group, 3] == loaded[part].max()).all()
        np.testing.assert_array_equal(sums[part], np.cumsum(x[part]) - x[part])
        np.testing.assert_array_equal(highest[part], np.maximum(np.maximum.accumulate(loaded[part]), -40))


@pytest.mark.long
@pytest.mark.parametrize("makers", [block, wave])
@pytest.mark.parametrize(("threads", "items"), CASES)
def test_neighbours(makers, threads, items):
    count = math.prod(np.atleast_1d(threads).tolist())
    load, store = block.make_load(np.int32, threads, items), block.make_store(np.int32, threads, items)
    heads = makers.make_discontinuity(np.int32, threads, items)
    tails = makers.make_discontinuity(np.int32, threads, items, operator.lt, tails=True)
    left = makers.make_adjacent_difference(np.int32, threads, items)
    right = makers.make_adjacent_difference(np.int32, threads, items, lambda a, b: a * 100 + b, right=True)
    up = makers.make_shuffle(np.int32, threads, "up", items)
    down = makers.make_shuffle(np.int32, threads, "down", items)
    offset, rotate = (makers.make_shuffle(np.int32, threads, name) for name in ("offset", "rotate"))

    @hip.jit
    def look(x, found, moved):
        own, made = hip.local.array(items, np.int32), hip.local.array(items, np.int32)
        load(x, own)
        heads(own, made)
        store(found[0], made)
        heads(own, made, 7)
        store(found[1], made)
        tails(own, made)
        store(found[2], made)
        left(own, made)
        store(found[3], made)
        right(own, made)
        store(found[4], made)
        up(own, made)
        store(found[5], made)
        down(own, made)
        store(found[6], made)
        i = block.rank()
        moved[0, i], moved[1, i] = offset(i, -2), rotate(i, 3)

    x = np.abs(numbers(count * items)) % 3 + 6
    found, moved = np.zeros((7, x.size), np.int32), np.zeros((2, count), np.int32)
    look[1, threads](x, found, moved)
    for group in groups_of(count, count if makers is block else lanes_of_device()):
        part = slice(group[0] * items, (group[-1] + 1) * items)
        own, size = x[part], group.size
        before, behind = np.concatenate([own[:1], own[:-1]]), np.concatenate([own[1:], own[-1:]])
        np.testing.assert_array_equal(found[0, part][1:], (own != before)[1:])
        assert found[0, part][0] == 1
        np.testing.assert_array_equal(found[1, part], np.concatenate([[own[0] != 7], (own != before)[1:]]))
        np.testing.assert_array_equal(found[2, part], np.concatenate([(own < behind)[:-1], [1]]))
        np.testing.assert_array_equal(found[3, part], np.concatenate([own[:1], (own - before)[1:]]))
        np.testing.assert_array_equal(found[4, part], np.concatenate([(own * 100 + behind)[:-1], own[-1:]]))
        np.testing.assert_array_equal(found[5, part], before)
        np.testing.assert_array_equal(found[6, part], behind)
        place = np.arange(size)
        np.testing.assert_array_equal(moved[0, group], group[np.where(place >= 2, place - 2, place)])
        np.testing.assert_array_equal(moved[1, group], group[(place + 3) % size])


@pytest.mark.long
@pytest.mark.parametrize("makers", [block, wave])
@pytest.mark.parametrize(("threads", "items"), CASES)
def test_ranks_scatters_and_runs(makers, threads, items):
    count = math.prod(np.atleast_1d(threads).tolist())
    load, store = block.make_load(np.int32, threads, items), block.make_store(np.int32, threads, items)
    rank = makers.make_radix_rank(threads, items, 3)
    blocked = makers.make_exchange(np.int32, threads, items, "scatter_to_blocked")
    striped = makers.make_exchange(np.int32, threads, items, "scatter_to_striped")
    back = makers.make_exchange(np.int32, threads, items, "striped_to_blocked")
    forth = makers.make_exchange(np.int32, threads, items, "blocked_to_striped")
    decode = makers.make_run_length_decode(np.int32, threads, items, 2)
    store_decoded = block.make_store(np.int32, threads, 2)

    @hip.jit
    def move(x, found, decoded, totals):
        own, ranks, made = (
            hip.local.array(items, np.int32),
            hip.local.array(items, np.int32),
            hip.local.array(2, np.int32),
        )
        load(x, own)
        rank(own, ranks)
        store(found[0], ranks)
        blocked(own, ranks)
        store(found[1], own)
        load(x, own)
        striped(own, ranks)
        back(own)
        store(found[2], own)
        load(x, own)
        forth(own)
        back(own)
        store(found[3], own)
        load(x, own)
        for k in range(items):
            ranks[k] = own[k] * 10
        for k in range(2):
            made[k] = -1
        totals[block.rank()] = decode(ranks, own, made, 1)
        store_decoded(decoded, made)

    x = np.abs(numbers(count * items)) % 8
    found, decoded, totals = np.zeros((4, x.size), np.int32), np.zeros(count * 2, np.int32), np.zeros(count, np.int32)
    move[1, threads](x, found, decoded, totals)
    for group in groups_of(count, count if makers is block else lanes_of_device()):
        part = slice(group[0] * items, (group[-1] + 1) * items)
        own = x[part]
        ranks = np.empty(own.size, int)
        ranks[np.argsort(own, kind="stable")] = np.arange(own.size)
        np.testing.assert_array_equal(found[0, part], ranks)
        for row in (1, 2):
            np.testing.assert_array_equal(found[row, part], np.sort(own))
        np.testing.assert_array_equal(found[3, part], own)
        runs = np.repeat(own * 10, own)
        assert (totals[group] == runs.size).all()
        wanted = np.full(group.size * 2, -1)
        seen = runs[1 : 1 + wanted.size]
        wanted[: seen.size] = seen
        np.testing.assert_array_equal(decoded[group[0] * 2 : (group[-1] + 1) * 2], wanted)


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["atomic", "sort"])
def test_histograms(algorithm):
    threads, items, bins = 100, 3, 37
    load = block.make_load(np.uint8, threads, items, "vectorize")
    clear = block.make_histogram_init(threads, bins)
    count = block.make_histogram(np.uint8, threads, items, bins, algorithm)

    @hip.jit
    def count_all(x, out):
        counts, own = hip.shared.array(bins, np.int32), hip.local.array(items, np.uint8)
        clear(counts)
        for tile in range(2):
            load(x[tile * threads * items :], own)
            count(own, counts)
        for one in range(block.rank(), bins, threads):
            out[one] = counts[one]

    x = np.random.default_rng(5).integers(0, 40, threads * items * 2).astype(np.uint8)
    out = np.zeros(bins, np.int32)
    count_all[1, threads](x, out)
    np.testing.assert_array_equal(out, np.bincount(x, minlength=40)[:bins])


@pytest.mark.long
@pytest.mark.parametrize("makers", [block, wave])
def test_records_and_complex_numbers(makers):
    threads, items = 48, 2
    point = np.dtype([("x", np.float32), ("y", np.int16)])
    load, store = (make(point, threads, items, "transpose") for make in (makers.make_load, makers.make_store))
    sort = makers.make_merge_sort_keys(point, threads, items, lambda p, q: p.y < q.y)
    highest = makers.make_reduce(point, threads, lambda p, q: p if p.y >= q.y else q)
    product = makers.make_inclusive_scan(np.complex64, threads, operator.mul)
    of_waves = makers is wave

    @hip.jit
    def work(xs, ys, sorted_xs, sorted_ys, out, turned):
        own = hip.local.array(items, np.float32), hip.local.array(items, np.int16)
        i = block.rank()
        start = (i - hip.laneid) * items if of_waves else 0
        load((xs[start:], ys[start:]), own)
        sort(own)
        store((sorted_xs[start:], sorted_ys[start:]), own)
        out[i] = highest(Point(xs[i], ys[i])).x
        turned[i] = product(np.complex64(1j))

    xs = np.arange(threads * items, dtype=np.float32)
    ys = np.random.default_rng(7).integers(0, 9, threads * items).astype(np.int16)
    made = np.zeros_like(xs), np.zeros_like(ys)
    out, turned = np.zeros(threads, np.float32), np.zeros(threads, np.complex64)
    work[1, threads](xs, ys, *made, out, turned)
    for group in groups_of(threads, threads if makers is block else lanes_of_device()):
        part = slice(group[0] * items, (group[-1] + 1) * items)
        order = np.argsort(ys[part], kind="stable")
        np.testing.assert_array_equal(made[0][part], xs[part][order])
        np.testing.assert_array_equal(made[1][part], ys[part][order])
        assert (out[group] == xs[group[np.argmax(ys[group])]]).all()
        np.testing.assert_allclose(turned[group], 1j ** np.arange(1, group.size + 1))


Point = namedtuple("Point", "x y")


def test_in_the_simulator():
    threads, items = 6, 2
    load, store = block.make_load(np.int32, threads, items, "transpose"), block.make_store(np.int32, threads, items)
    sort = block.make_radix_sort_keys(np.int32, threads, items, end_bit=4)
    merge = block.make_merge_sort_pairs(np.int32, np.int32, threads, items, operator.gt)
    total = block.make_sum(np.int32, threads)
    with config.simulator.scope(True):

        @hip.jit
        def work(x, out):
            own, payload = hip.local.array(items, np.int32), hip.local.array(items, np.int32)
            load(x, own)
            sort(own)
            store(out[0], own)
            payload[:] = own
            merge(own, payload)
            store(out[1], payload)
            out[2, block.rank()] = total(block.rank())

        x = np.array([5, 3, 11, 0, 7, 2, 2, 9, 1, 15, 4, 4], np.int32)
        out = np.zeros((3, 12), np.int32)
        work[1, threads](x, out)
    assert out[0].tolist() == sorted(x)
    assert out[1].tolist() == sorted(x, reverse=True)
    assert out[2, :threads].tolist() == [15] * threads


@pytest.mark.cpu_device("GPUs do not report exceptions by default")
def test_another_block_than_it_was_made_for():
    total = block.make_sum(np.int32, 64)

    @hip.jit
    def add(out):
        out[0] = total(1)

    with pytest.raises(ValueError, match=r"made with threads_per_block=\(64,\), and the launch has other blocks"):
        add[1, 65](np.zeros(1))


def test_one_block_after_another_uses_the_memory():
    threads = 40
    total, turn = block.make_sum(np.int32, threads), block.make_shuffle(np.int32, threads, "rotate")

    @hip.jit
    def repeat(out):
        i = block.rank()
        value = np.int32(i)
        for _ in range(50):
            value = turn(value, 1) + total(1) - threads
        out[hip.blockIdx.x, i] = value

    out = np.zeros((7, threads), np.int32)
    repeat[7, threads](out)
    assert (out == (np.arange(threads) + 50) % threads).all()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: block.make_sum(np.int32, 0), "threads_per_block is 0; pass their number"),
        (lambda: block.make_sum(np.int32, (32, 64)), "has at most 1024 threads"),
        (lambda: wave.make_sum(np.int32, (2, 2, 2, 2)), "pass their number, or a tuple of up to three"),
        (lambda: block.make_sum("abc", 32), "dtype is 'abc'; pass a type of numbers"),
        (lambda: block.make_sum(types.unicode_type, 32), "dtype has values of type unicode_type"),
        (lambda: block.make_sum((np.int32, np.int32), 32), "this takes numbers"),
        (lambda: block.make_load(np.int32, 32, 4, "fast"), "algorithm is 'fast'; pass one of 'direct', 'striped'"),
        (lambda: block.make_load(np.int32, 32, 0), "items_per_thread is 0; pass an integer from 1 to 256"),
        (lambda: block.make_exchange(np.int32, 32, 4, "turn"), "pattern is 'turn'; pass one of 'striped_to_blocked'"),
        (lambda: block.make_shuffle(np.int32, 32, "offset", 2), "items_per_thread is 2; pattern 'offset' moves one"),
        (lambda: block.make_radix_sort_keys(np.complex64, 32, 2), "dtype has elements of complex64, which have no ord"),
        (lambda: block.make_radix_sort_keys(np.int16, 32, 2, 3, 17), "end_bit is 17; pass an integer from 1 to 16"),
        (lambda: block.make_reduce(np.int32, 32, lambda a: a), r"binary_op is <lambda>\(a\), which is called with 2"),
        (lambda: block.make_radix_sort_keys(np.int16, 32, 2, 9, 9), "begin_bit is 9; pass an integer from 0 to 8"),
        (lambda: block.make_reduce(np.int32, 32, 5), "binary_op is 5: pass a function"),
        (lambda: block.make_histogram(np.float32, 32, 2, 8), "items of a histogram are integers"),
    ],
)
def test_mistakes_are_told(make, said):
    with pytest.raises(AlgorithmError, match=said):
        make()


@pytest.mark.parametrize("makers", [block, wave])
@pytest.mark.parametrize("name", [
    "sum", "scan", "radix", "merge", "pairs", pytest.param("rank", marks=pytest.mark.long), "exchange", "scatter",
    "load", "store", "flags", "difference", "shift", "decode", "histogram",
])  # fmt: skip
@pytest.mark.sample(2)
def test_arrays_with_too_few_items_are_errors(makers, name):
    items, one = 4, np.int32
    made = {
        "sum": lambda: makers.make_sum(one, 64, items),
        "scan": lambda: makers.make_inclusive_sum(one, 64, items),
        "radix": lambda: makers.make_radix_sort_keys(one, 64, items),
        "merge": lambda: makers.make_merge_sort_keys(one, 64, items),
        "pairs": lambda: makers.make_merge_sort_pairs(one, one, 64, items),
        "rank": lambda: makers.make_radix_rank(64, items),
        "exchange": lambda: makers.make_exchange(one, 64, items, "blocked_to_striped"),
        "scatter": lambda: makers.make_exchange(one, 64, items, "scatter_to_blocked"),
        "load": lambda: makers.make_load(one, 64, items),
        "store": lambda: makers.make_store(one, 64, items),
        "flags": lambda: makers.make_discontinuity(one, 64, items),
        "difference": lambda: makers.make_adjacent_difference(one, 64, items),
        "shift": lambda: makers.make_shuffle(one, 64, "up", items),
        "decode": lambda: makers.make_run_length_decode(one, 64, items, items),
        "histogram": lambda: makers.make_histogram(one, 64, items, 8),
    }[name]()

    @hip.jit(exceptions=True)
    def use_one(out, room):
        own = hip.local.array(items, np.int32)
        for k in range(items):
            own[k] = k
        made(own[:room])
        out[hip.threadIdx.x] = own[0]

    @hip.jit(exceptions=True)
    def use_two(out, room):
        first, second = hip.local.array(items, np.int32), hip.local.array(items, np.int32)
        for k in range(items):
            first[k], second[k] = k, k
        made(first, second[:room])
        out[hip.threadIdx.x] = second[0]

    @hip.jit(exceptions=True)
    def decode(out, room):
        runs, decoded = hip.local.array(items, np.int32), hip.local.array(items, np.int32)
        for k in range(items):
            runs[k] = 1
        made(runs, runs, decoded[:room])
        out[hip.threadIdx.x] = decoded[0]

    @hip.jit(exceptions=True)
    def transfer(out, room):
        own = hip.local.array(items, np.int32)
        for k in range(items):
            own[k] = 7
        made(out, own[:room])

    @hip.jit(exceptions=True)
    def count(out, room):
        own, counts = hip.local.array(items, np.int32), hip.shared.array(8, np.int32)
        for k in range(items):
            own[k] = k
        counts[hip.threadIdx.x % 8] = 0
        hip.syncthreads()
        made(own[:room], counts)
        out[hip.threadIdx.x] = counts[0]

    others = {"decode": decode, "load": transfer, "store": transfer, "histogram": count}
    others |= dict.fromkeys(("pairs", "rank", "scatter", "flags", "difference", "shift"), use_two)
    launch = others.get(name, use_one)[1, 64]
    launch(np.zeros(256, np.int32), items)
    with pytest.raises(IndexError, match="less than 4 elements, the number of its items"):
        launch(np.zeros(256, np.int32), items - 1)
