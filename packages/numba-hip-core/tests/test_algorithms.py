"""``hip.algorithms``: differential tests against NumPy over types, sizes at the edges of tiles, and operators."""

import itertools
import operator
import threading

import numpy as np
import pytest
from numba.core.errors import TypingError

import numba_hip as hip
from hip_runtime.errors import MaskedArrayError
from numba_hip import algorithms
from numba_hip.algorithms import (
    AlgorithmError,
    ConstantIterator,
    CountingIterator,
    PermutationIterator,
    ReverseIterator,
    TransformIterator,
    ZipIterator,
    radix_selection,
    radix_sort,
    tiled_scan,
    workspaces,
)

SIZES = [0, 1, 2, 63, 64, 65, 1023, 1024, 1025, 4097, 70_001]
"""Nothing, one, rows of lanes, tiles and several blocks of tiles, each with a rest."""

DTYPES = "? i1 u2 f2 i4 f4 u8 f8".split()


def host(array):
    return array.copy_to_host() if hip.is_device_array(array) else array


def numbers(size, dtype=np.int32, seed=1):
    generator = np.random.default_rng(seed + size)
    kind = np.dtype(dtype).kind
    low, high = {"?": (0, 2), "b": (0, 2), "u": (0, 100)}.get(kind, (-50, 50))
    return generator.integers(low, high, size).astype(dtype)


def cuts(size, seed=3):
    return np.sort(np.random.default_rng(seed).integers(0, size + 1, 12))


def parts_of(size, offsets):
    bounds = [0, *offsets, size]
    return list(itertools.pairwise(bounds))


def follow(first, second):
    """Two maps x -> a * x + b modulo a prime, one after the other: associative, and not commutative."""
    return first[0] * second[0] % 10007, (second[0] * first[1] + second[1]) % 10007


def followed(pairs):
    made, state = [], (1, 0)
    for a, b in pairs:
        state = follow(state, (int(a), int(b)))
        made.append(state)
    return made


def test_a_sum_and_its_mistakes():
    x = numbers(1500)
    assert algorithms.reduce(hip.to_device(x)) == x.sum()
    with pytest.raises(AlgorithmError, match="source is str"):
        algorithms.reduce("abc")


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
def test_scans(size):
    x = numbers(size)
    np.testing.assert_array_equal(algorithms.inclusive_scan(x), np.cumsum(x))
    exclusive = algorithms.exclusive_scan(hip.to_device(x), operator.add, np.int64(7))
    assert exclusive.dtype == np.int64
    np.testing.assert_array_equal(host(exclusive), 7 + np.cumsum([0, *x])[:-1])
    np.testing.assert_array_equal(algorithms.inclusive_scan(x, max, init=3), np.maximum.accumulate(np.maximum(x, 3)))
    slopes, shifts = np.abs(x).astype(np.int64) + 1, np.abs(x).astype(np.int64)
    scanned = algorithms.inclusive_scan(ZipIterator(slopes, shifts), follow)
    assert host(scanned).tolist() == followed(zip(slopes, shifts, strict=True))
    half = numbers(size // 2 + 1)
    np.testing.assert_array_equal(algorithms.inclusive_scan(half[::2]), np.cumsum(half[::2]))


@pytest.mark.long
@pytest.mark.parametrize("dtype", DTYPES)
def test_types_of_scans_and_sums(dtype):
    x = numbers(3000, dtype) if dtype != "f2" else (numbers(3000) % 2).astype(dtype)
    op = operator.or_ if dtype == "?" else max
    wanted = np.logical_or.accumulate(x) if dtype == "?" else np.maximum.accumulate(x)
    scanned = algorithms.inclusive_scan(x, op)
    assert scanned.dtype == x.dtype
    np.testing.assert_array_equal(scanned, wanted)
    assert algorithms.reduce(x, op) == wanted[-1]


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES[1:])
def test_reductions(size):
    x = numbers(size)
    on_device = hip.to_device(x)
    assert algorithms.reduce(on_device) == x.sum()
    assert algorithms.reduce(on_device, max, init=3) == max(x.max(), 3)
    assert algorithms.reduce(on_device, min, commutative=False) == x.min()
    squares = algorithms.transform_reduce(on_device, lambda value: value * value, init=np.int64(0))
    assert squares == (x.astype(np.int64) ** 2).sum()
    slopes, shifts = np.abs(x).astype(np.int64) + 1, np.abs(x).astype(np.int64)
    pair = algorithms.reduce(ZipIterator(slopes, shifts), follow, commutative=False)
    assert tuple(pair) == followed(zip(slopes, shifts, strict=True))[-1]
    offsets = cuts(size)
    found = host(algorithms.segmented_reduce(on_device, offsets, max, init=-100))
    assert found.tolist() == [max([-100, *x[a:b]]) for a, b in itertools.pairwise(offsets)]
    out = hip.device_array(1, np.int32)
    assert algorithms.reduce(on_device, out=out) is None
    assert out.copy_to_host()[0] == x.sum()


@pytest.mark.long
@pytest.mark.parametrize("dtype", "u1 i4 f4 f8 M8[s]".split())
def test_the_first_of_many(dtype):
    for size, k in [(9, 1), (65, 8), (1025, 1), (70_001, 100), (100, 0)]:
        x = np.random.default_rng(size).integers(0, 100, size).astype(dtype)
        if np.dtype(dtype).kind == "f":
            x[::13], x[1::17] = np.nan, -np.inf
        order = np.argsort(x, kind="stable")
        least, places = algorithms.topk(hip.to_device(x), k, largest=False)
        np.testing.assert_array_equal(host(places), order[:k])
        np.testing.assert_array_equal(host(least), x[order[:k]])
        of_equal = size - 1 - np.argsort(x[::-1], kind="stable")[::-1]
        most, places = algorithms.topk(algorithms.ReverseIterator(x[::-1].copy()), k)
        np.testing.assert_array_equal(places, of_equal[:k])
        np.testing.assert_array_equal(most, x[of_equal[:k]])


@pytest.mark.parametrize("is_of_gpus", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [1, 33, 12_000])
@pytest.mark.sample(2)
def test_the_first_of_many_equals(k, largest, is_of_gpus, monkeypatch):
    """Of equal ones those that come first are chosen, over the ends of all parts; what is searched stays as it is."""
    if is_of_gpus:
        monkeypatch.setattr(radix_selection, "by_threads", lambda operands: False)
    generator = np.random.default_rng(5)
    few, rising = generator.integers(0, 3, 100_001).astype(np.float32), np.arange(100_001, dtype=np.float32)
    few[7::50_000] = np.nan
    for x in (few, rising, rising[::-1].copy(), np.zeros(100_001, np.float32)):
        on_device = hip.to_device(x)
        order = np.argsort(x, kind="stable")
        if largest:
            order = x.size - 1 - np.argsort(x[::-1], kind="stable")[::-1]
        chosen, places = algorithms.topk(on_device, k, largest=largest)
        np.testing.assert_array_equal(host(places), order[:k])
        np.testing.assert_array_equal(host(chosen), x[order[:k]])
        np.testing.assert_array_equal(host(on_device), x)


def test_a_workspace_is_used_again():
    x, out, stream = hip.to_device(numbers(3000)), hip.device_array(3000, np.int32), hip.stream()
    with algorithms.Workspace() as workspace:
        algorithms.inclusive_scan(x, out=out, stream=stream)
        needed = workspace.nbytes
        assert needed > 0
        kept = algorithms.inclusive_scan(x, stream=stream)
        with stream.capture() as graph:
            algorithms.inclusive_scan(x, out=out, stream=stream)
        assert workspace.nbytes == needed
        with pytest.raises(AlgorithmError, match="stream is another one than that of the calls before in this works"):
            algorithms.inclusive_scan(x, out=out)
    x.copy_to_device(numbers(3000, seed=9))
    runs = graph.instantiate()
    runs.launch(stream)
    stream.synchronize()
    np.testing.assert_array_equal(host(out), np.cumsum(numbers(3000, seed=9)))
    np.testing.assert_array_equal(host(kept), np.cumsum(numbers(3000)))


def test_a_workspace_of_several_threads():
    """Each enters and leaves it, in any order, as their calls of one stream come one after another."""
    x, workspace = numbers(3000), algorithms.Workspace()
    both, failures = threading.Barrier(2), []

    def work(leaves_first):
        try:
            with workspace:
                both.wait(60)
                for _ in range(5):
                    np.testing.assert_array_equal(algorithms.inclusive_scan(x), np.cumsum(x))
                if not leaves_first:
                    both.wait(60)
            assert workspaces._entered.get() == ()
            if leaves_first:
                both.wait(60)
        except BaseException as error:
            failures.append(error)
            both.abort()

    threads = [threading.Thread(target=work, args=(leaves_first,)) for leaves_first in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_workspaces_within_others():
    x, first, second = numbers(3000), algorithms.Workspace(), algorithms.Workspace()
    with first:
        with second, second:
            algorithms.inclusive_scan(x)
        assert second.nbytes > 0 == first.nbytes
        algorithms.inclusive_scan(x)
        assert first.nbytes == second.nbytes


@pytest.mark.long
@pytest.mark.parametrize(
    "call",
    [
        lambda x, out, **options: algorithms.sort(x, out=out, **options),
        lambda x, out, **options: algorithms.sort(x, operator.gt, out=out, **options),
        lambda x, out, **options: algorithms.segmented_sort(x, np.array([0, 70, 900]), out=out, **options),
        lambda x, out, **options: algorithms.histogram_even(x, 7, -50, 50, out=out, **options),
        lambda x, out, **options: algorithms.reduce(x, max, out=out, **options),
    ],
)
def test_what_is_captured_in_a_workspace(call):
    if not hip.get_current_device().is_cpu:
        pytest.skip("offsets of the host are copied to a GPU, which a capture refuses")
    first, second = numbers(1500), numbers(1500, seed=9)
    x, out, stream = hip.to_device(first), hip.zeros(1500, np.int32), hip.stream()
    with algorithms.Workspace():
        call(x, out, stream=stream)
        stream.synchronize()
        with stream.capture() as graph:
            call(x, out, stream=stream)
    x.copy_to_device(second)
    runs = graph.instantiate()
    runs.launch(stream)
    stream.synchronize()
    wanted = hip.zeros(1500, np.int32)
    call(hip.to_device(second), wanted)
    np.testing.assert_array_equal(host(out), host(wanted))


def is_large(value):
    return value > 3


LEFT_ON_THE_DEVICE = [
    ("select", lambda x, out, **given: algorithms.select(x, is_large, out=out[0], **given)),
    ("partition", lambda x, out, **given: algorithms.partition(x, is_large, out=out[0], **given)),
    ("unique", lambda x, out, **given: algorithms.unique(x, out=out[0], **given)),
    ("unique_by_key", lambda x, out, **given: algorithms.unique_by_key(x, x, out=out, **given)),
    ("reduce_by_key", lambda x, out, **given: algorithms.reduce_by_key(x, x, max, out=out, **given)),
    ("run_length_encode", lambda x, out, **given: algorithms.run_length_encode(x, out=out, **given)),
]


@pytest.mark.parametrize("call", [call for _, call in LEFT_ON_THE_DEVICE], ids=[name for name, _ in LEFT_ON_THE_DEVICE])
@pytest.mark.sample(1)
def test_numbers_of_results_stay_on_the_device(call):
    """How many there are when a graph runs, not when it was captured."""
    first, second = np.sort(numbers(1500)) // 7, np.sort(numbers(1500, seed=9)) // 3
    x, stream = hip.to_device(first), hip.stream()
    out, found = (hip.zeros(1500, np.int32), hip.zeros(1500, np.int64)), hip.zeros(1, np.int64)
    with algorithms.Workspace():
        call(x, out, found=found, stream=stream)
        stream.synchronize()
        with stream.capture() as graph:
            call(x, out, found=found, stream=stream)
    x.copy_to_device(second)
    runs = graph.instantiate()
    runs.launch(stream)
    stream.synchronize()
    wanted = np.zeros(1500, np.int32), np.zeros(1500, np.int64)
    told = call(second, wanted)
    count = len(told) if isinstance(told, np.ndarray) else told[1] if isinstance(told[1], int) else len(told[0])
    assert 0 < count == found.copy_to_host()[0]
    for made, right in zip(out, wanted, strict=True):
        np.testing.assert_array_equal(host(made)[:count], right[:count])
    call(hip.to_device(first[:0]), out, found=found)
    assert found.copy_to_host()[0] == 0


def is_behind(first, second):
    return first > second


@pytest.mark.long
@pytest.mark.parametrize("less", [None, is_behind])
def test_what_sorts_of_pairs_write_is_captured(less):
    first, second = numbers(1500), numbers(1500, seed=9)
    x, stream = hip.to_device(first), hip.stream()
    keys, places, order = hip.zeros(1500, np.float64), hip.zeros(1500, np.int32), hip.zeros(1501, np.int32)
    few = hip.zeros(9, np.int32), hip.zeros(9, np.int64)
    many = hip.zeros(700, np.int32), hip.zeros(700, np.int64)

    def work():
        algorithms.sort_by_key(x, CountingIterator(0), less, out=(keys, places), stream=stream)
        algorithms.argsort(x, less, out=order, stream=stream)
        algorithms.topk(x, 9, out=few, stream=stream)
        algorithms.topk(x, 700, largest=False, out=many, stream=stream)

    with algorithms.Workspace():
        work()
        stream.synchronize()
        with stream.capture() as graph:
            work()
    x.copy_to_device(second)
    runs = graph.instantiate()
    runs.launch(stream)
    stream.synchronize()
    wanted = np.argsort(second if less is None else -second, kind="stable")
    np.testing.assert_array_equal(host(keys), second[wanted])
    np.testing.assert_array_equal(host(places), wanted)
    np.testing.assert_array_equal(host(order), [*wanted, 0])
    for (made, where), ordered in (
        (few, np.argsort(-second, kind="stable")),
        (many, np.argsort(second, kind="stable")),
    ):
        np.testing.assert_array_equal(host(where), ordered[: where.size])
        np.testing.assert_array_equal(host(made), second[ordered[: where.size]])


@pytest.mark.long
def test_arrays_of_the_host_that_are_given_keep_the_rest():
    x = numbers(3000)
    out, found, strided = np.full(4000, -9, np.int32), np.zeros(2, np.int32), np.full(6000, -9, np.int32)
    assert algorithms.select(x, is_large, out=out, found=found) is out
    large = x[x > 3]
    assert found.tolist() == [len(large), 0]
    np.testing.assert_array_equal(out[: len(large)], large)
    assert (out[len(large) :] == -9).all()
    algorithms.sort(x, out=strided[::2])
    np.testing.assert_array_equal(strided[::2], np.sort(x))
    assert (strided[1::2] == -9).all()
    overwritten = x.copy()
    kept = algorithms.select(overwritten, is_large, out=overwritten)
    np.testing.assert_array_equal(kept, large)
    reversed_in_place = x.copy()
    algorithms.gather(reversed_in_place, np.arange(3000)[::-1], out=reversed_in_place)
    np.testing.assert_array_equal(reversed_in_place, x[::-1])


@pytest.mark.long
def test_sums_of_nothing():
    assert algorithms.reduce(np.zeros(0, np.int32), init=5) == 5
    with pytest.raises(AlgorithmError, match="source has no values: pass init=, the result for no values"):
        algorithms.reduce(np.zeros(0))


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
def test_selections_and_runs(size):
    x = numbers(size)
    np.testing.assert_array_equal(algorithms.select(x, lambda value: value > 3), x[x > 3])
    np.testing.assert_array_equal(host(algorithms.select(hip.to_device(x), flags=x % 2)), x[x % 2 != 0])
    parted, chosen = algorithms.partition(x, lambda value: value > 3)
    assert chosen == (x > 3).sum()
    np.testing.assert_array_equal(parted, np.concatenate([x[x > 3], x[x <= 3]]))
    keys = np.sort(np.random.default_rng(1).integers(0, max(size // 7, 1), size)).astype(np.uint16)
    names, places, counts = np.unique(keys, return_index=True, return_counts=True)
    np.testing.assert_array_equal(algorithms.unique(keys), names)
    of_keys, of_values = algorithms.unique_by_key(keys, x)
    np.testing.assert_array_equal(of_keys, names)
    np.testing.assert_array_equal(of_values, x[places])
    of_keys, most = algorithms.reduce_by_key(keys, x, max)
    np.testing.assert_array_equal(of_keys, names)
    np.testing.assert_array_equal(most, [x[keys == name].max() for name in names])
    np.testing.assert_array_equal(algorithms.run_length_encode(keys)[1], counts)


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
def test_scans_of_segments(size):
    x, offsets = numbers(size), cuts(size)
    wanted, highest = x.copy(), x.copy()
    for a, b in parts_of(size, offsets):
        wanted[a:b] = np.cumsum(x[a:b])
        highest[a:b] = np.maximum.accumulate([-3, *x[a:b]])[:-1]
    np.testing.assert_array_equal(algorithms.segmented_scan(x, offsets), wanted)
    exclusive = algorithms.segmented_scan(hip.to_device(x), offsets, max, -3, inclusive=False)
    np.testing.assert_array_equal(host(exclusive), highest)
    keys = np.repeat(np.arange(size // 5 + 1), 5)[:size]
    pairs = algorithms.scan_by_key(keys, ZipIterator(x, x), lambda a, b: (a[0] + b[0], max(a[1], b[1])))
    groups = [x[keys == key] for key in range(size // 5 + 1)]
    np.testing.assert_array_equal(host(pairs)["f0"], np.concatenate([np.cumsum(group) for group in groups]))
    tops = np.concatenate([np.maximum.accumulate(group) for group in groups])
    np.testing.assert_array_equal(host(pairs)["f1"], tops)


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f2", "f4", "i8", "f8", "M8[s]"])
def test_sorts_of_numbers(dtype):
    for size in (0, 1, 2, 65, 9001):
        x = numbers(size, dtype) if dtype[0] not in "Mm" else numbers(size, np.int64).astype(dtype)
        if size > 10:
            special = {"f": [np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0], "M": ["NaT"], "m": ["NaT"]}
            for place, value in enumerate(special.get(dtype[0], [])):
                x[place * 7] = np.array(value, dtype)
        order = np.argsort(x, kind="stable")
        np.testing.assert_array_equal(algorithms.argsort(x), order)
        on_device = hip.to_device(x)
        algorithms.sort(on_device, out=on_device)
        words = f"u{x.itemsize}"
        np.testing.assert_array_equal(on_device.copy_to_host().view(words), x[order].view(words))
        keys, places = algorithms.sort_by_key(x, np.arange(size), descending=True)
        np.testing.assert_array_equal(keys.view(words), x[places].view(words))
        np.testing.assert_array_equal(keys[::-1], np.sort(x))
        same = keys[1:] == keys[:-1]
        assert (np.diff(places)[same] > 0).all(), "equal keys keep their order"


@pytest.mark.parametrize("dtype", ["u4", "f8"])
@pytest.mark.parametrize("has_values", [False, True])
@pytest.mark.sample(1)
def test_sorts_of_many_numbers(has_values, dtype):
    """By digits of eleven bits on the CPU device, in several parts, the last of which is shorter; equal keys among
    them, and high digits that are the same everywhere or in some parts."""
    size = 70_001
    bits = np.random.default_rng(2).integers(0, 1 << 32, size, dtype=np.uint32)
    bits[: size // 2] %= 5000
    x = bits.astype(dtype) if dtype == "u4" else bits.astype(dtype) - 2.0**31
    for some in (x, x % 100):
        order = np.argsort(some, kind="stable")
        if has_values:
            keys, places = algorithms.sort_by_key(hip.to_device(some), np.arange(size))
            np.testing.assert_array_equal(host(places), order)
        else:
            keys = algorithms.sort(some)
        np.testing.assert_array_equal(host(keys), some[order])


@pytest.mark.parametrize("is_of_gpus", [False, True])
@pytest.mark.parametrize(("dtype", "begin", "end"), [("u4", 3, 14), ("i2", 12, 16), ("f4", 9, None), ("u1", 0, 1)])
@pytest.mark.parametrize("of", ["keys", "places", "both"])
@pytest.mark.sample(1)
def test_sorts_by_some_bits(of, dtype, begin, end, is_of_gpus, monkeypatch):
    """In one launch, in several parts, and as GPUs do; bits of floats are those that a radix sort sees."""
    monkeypatch.setattr(radix_sort, "uses_blocks", lambda operands: is_of_gpus)
    for size in (0, 1, 20, 900, 5001 if is_of_gpus else 70_001):
        x = numbers(size, dtype)
        ordered = x.view(f"u{x.itemsize}").astype(np.uint64)
        sign = 1 << (x.itemsize * 8 - 1)
        if dtype[0] == "f":
            ordered = np.where(x == 0, sign, np.where(x < 0, ordered ^ (2 * sign - 1), ordered ^ sign))
        elif dtype[0] == "i":
            ordered = ordered ^ sign
        seen = (ordered >> begin) & ((1 << ((end or x.itemsize * 8) - begin)) - 1)
        order = np.argsort(seen, kind="stable")
        bits = {"begin_bit": begin, "end_bit": end}
        if of == "keys":
            np.testing.assert_array_equal(algorithms.sort(x, **bits), x[order])
        elif of == "places":
            np.testing.assert_array_equal(algorithms.argsort(x, **bits), order)
        else:
            order = np.argsort(seen.astype(np.int64) * -1, kind="stable")
            keys, places = algorithms.sort_by_key(hip.to_device(x), np.arange(size), descending=True, **bits)
            np.testing.assert_array_equal(host(keys), x[order])
            np.testing.assert_array_equal(host(places), order)


@pytest.mark.parametrize("size", [1, 900, 70_001])
@pytest.mark.parametrize("dtype", ["u4", "f8", "u1"])
@pytest.mark.parametrize("has_values", [False, True])
@pytest.mark.sample(1)
def test_sorts_leave_what_they_read_and_may_write_to_where_it_was(has_values, dtype, size):
    """The first pass reads the arguments where they are, unless the results are written there; the number of passes is
    odd or even."""
    given = np.random.default_rng(3).integers(0, 1 << 31, size).astype(dtype)
    given.setflags(write=False)
    ordered, order = np.sort(given), np.argsort(given, kind="stable")
    x, made = hip.to_device(given), hip.device_array(given.shape, given.dtype)
    if has_values:
        places = hip.to_device(np.arange(given.size))
        algorithms.sort_by_key(x, places, out=(made, places))
        np.testing.assert_array_equal(host(places), order)
        np.testing.assert_array_equal(host(x), given)
        algorithms.sort_by_key(x, x, out=(made, x))
        np.testing.assert_array_equal(host(made), ordered)
        np.testing.assert_array_equal(host(x), ordered)
        return
    algorithms.sort(x, out=made)
    np.testing.assert_array_equal(host(made), ordered)
    np.testing.assert_array_equal(host(x), given)
    np.testing.assert_array_equal(algorithms.sort(given), ordered)
    np.testing.assert_array_equal(algorithms.sort(np.repeat(given, 2)[::2]), ordered)
    algorithms.sort(x, out=x)
    np.testing.assert_array_equal(host(x), ordered)


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["?", "i1", "f2", "c8", "c16", "M8[s]"])
def test_values_of_any_size_go_with_keys_whose_high_digits_are_the_same(dtype):
    """Parts of one digit are copied; the elements of others are moved one by one."""
    keys = numbers(9001, np.int64) % 40 + (5 << 40)
    given = np.arange(9001).astype(np.int64).astype(dtype)
    ordered, moved = algorithms.sort_by_key(keys, given)
    np.testing.assert_array_equal(ordered, np.sort(keys))
    np.testing.assert_array_equal(moved, given[np.argsort(keys, kind="stable")])


@pytest.mark.long
@pytest.mark.parametrize("size", [0, 1, 2, 15, 17, 300, 5001])
def test_sorts_by_a_function_and_merges(size):
    x = numbers(size)
    ordered = x[np.argsort(x % 10, kind="stable")]
    np.testing.assert_array_equal(algorithms.sort(x, lambda a, b: a % 10 < b % 10), ordered)
    _, places = algorithms.sort_by_key(x, np.arange(size), lambda a, b: a < b, descending=True)
    np.testing.assert_array_equal(places, np.argsort(-x, kind="stable"))
    records = np.zeros(size, [("a", np.int32), ("b", np.float64)])
    records["a"], records["b"] = x % 5, np.random.default_rng(1).random(size)
    by_both = algorithms.sort(records, lambda p, q: p.a < q.a or (p.a == q.a and p.b < q.b))
    np.testing.assert_array_equal(by_both, np.sort(records, order=["a", "b"]))
    z = (x + 1j * numbers(size, seed=9)).astype(np.complex64)
    by_parts = algorithms.sort(z, lambda p, q: p.real < q.real or (p.real == q.real and p.imag < q.imag))
    np.testing.assert_array_equal(by_parts, np.sort(z))
    first, second = np.sort(x), np.sort(numbers(size + 3, seed=5))
    np.testing.assert_array_equal(algorithms.merge(first, second), np.sort(np.concatenate([first, second])))
    for side in ("left", "right"):
        found = algorithms.searchsorted(second, x, side)
        np.testing.assert_array_equal(found, np.searchsorted(second, x, side))
    offsets, wanted = cuts(size), x.copy()
    for a, b in parts_of(size, offsets):
        wanted[a:b] = np.sort(x[a:b])
    np.testing.assert_array_equal(algorithms.segmented_sort(x, offsets), wanted)
    top, places = algorithms.topk(x, 5)
    np.testing.assert_array_equal(top, np.sort(x)[::-1][:5])
    np.testing.assert_array_equal(x[places], top)


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
def test_histograms(size):
    x = np.random.default_rng(1).normal(size=size)
    x[: size // 9] = np.nan
    within = x[(x >= -1) & (x < 1)]
    np.testing.assert_array_equal(algorithms.histogram_even(x, 10, -1, 1), np.histogram(within, 10, (-1, 1))[0])
    edges = np.array([-2, -0.5, 0, 0.1, 3.0])
    wanted = [((x >= a) & (x < b)).sum() for a, b in itertools.pairwise(edges)]
    np.testing.assert_array_equal(algorithms.histogram_range(x, edges), wanted)
    many = algorithms.histogram_even(hip.to_device(numbers(size)), 9000, -100, 100)
    assert host(many).sum() == size


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES[1:])
def test_elements_one_by_one(size):
    x, generator = numbers(size), np.random.default_rng(4)
    np.testing.assert_array_equal(algorithms.transform(lambda a, b: a * b + 1, x, x), x * x + 1)
    np.testing.assert_array_equal(algorithms.transform(np.sqrt, np.abs(x) + 0.5), np.sqrt(np.abs(x) + 0.5))
    places = generator.integers(0, size, 2 * size)
    np.testing.assert_array_equal(algorithms.gather(x, places), x[places])
    order, out, wanted = generator.permutation(size), np.full(size + 3, 77, np.int32), np.full(size + 3, 77, np.int32)
    wanted[order] = x
    assert algorithms.scatter(x, order, out) is out
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.long
def test_iterators():
    x = numbers(2000)
    total = algorithms.reduce
    assert total(CountingIterator(np.int64(5)), count=100) == sum(range(5, 105))
    assert total(ConstantIterator(2.5), count=7) == 17.5
    assert total(TransformIterator(x, abs)) == np.abs(x).sum()
    assert total(PermutationIterator(x, [3, 3, 5])) == 2 * x[3] + x[5]
    assert total(PermutationIterator(x, [-1, 2])) == x[-1] + x[2]
    assert total(PermutationIterator(ReverseIterator(x), np.array([-2, 1], np.int8))) == x[1] + x[-2]
    np.testing.assert_array_equal(algorithms.inclusive_scan(ReverseIterator(x)), np.cumsum(x[::-1]))
    largest = total(ZipIterator(x, CountingIterator(0)), lambda a, b: a if a[0] >= b[0] else b, commutative=False)
    assert (largest[0], largest[1]) == (x.max(), x.argmax())
    scale = 3
    nested = TransformIterator(ZipIterator(x, ReverseIterator(x)), lambda pair: pair[0] * scale - pair[1])
    assert total(nested) == (x * scale - x[::-1]).sum()


@pytest.mark.parametrize(
    ("source", "count", "wanted"),
    [
        (CountingIterator(np.int16(5)) + 3, 4, 8 + 9 + 10 + 11),
        (ConstantIterator(2) + 7, 3, 6),
        (ReverseIterator(CountingIterator(9)), 3, 9 + 8 + 7),
        (ReverseIterator(np.arange(100, dtype=np.int32)) + 2, 1, 97),
        (PermutationIterator(np.arange(100, dtype=np.int32), [50, 99, 98, 97]) + np.int8(1) + 2, 1, 97),
    ],
    ids=["counting", "constant", "counting in reverse", "reverse", "permutation"],
)
@pytest.mark.sample(2)
def test_sums_from_any_place_on(source, count, wanted):
    assert algorithms.reduce(source, count=count) == wanted


def test_iterators_begin_at_any_place():
    x = np.arange(100, dtype=np.int32)
    pairs = ZipIterator(hip.to_device(x), TransformIterator(x, lambda value: -value), CountingIterator(0)) + 97
    found = algorithms.transform(lambda parts: (parts[0], parts[1], parts[2]), pairs)
    assert found.tolist() == [(97, -97, 97), (98, -98, 98), (99, -99, 99)]
    with pytest.raises(AlgorithmError, match="the offset of an iterator over an array is -1"):
        TransformIterator(x, abs) + -1
    with pytest.raises(TypeError, match="unsupported operand"):
        TransformIterator(x, abs) + 1.5


def test_sorts_by_no_bits_keep_the_order():
    x = numbers(50)
    for begin in (0, 7, 32):
        np.testing.assert_array_equal(algorithms.sort(x, begin_bit=begin, end_bit=begin), x)
        assert algorithms.argsort(hip.to_device(x), begin_bit=begin, end_bit=begin).copy_to_host().tolist() == [
            *range(50)
        ]


@pytest.mark.long
def test_streams_and_results_of_the_caller():
    stream, x = hip.stream(), numbers(5000)
    source, out = hip.to_device(x, stream=stream), hip.device_array(5000, np.int32)
    assert algorithms.inclusive_scan(source, out=out, stream=stream) is out
    algorithms.sort(out, out=out, stream=stream)
    np.testing.assert_array_equal(out.copy_to_host(stream=stream), np.sort(np.cumsum(x)))
    kept = np.full(6000, -1, np.int32)
    algorithms.inclusive_scan(x, out=kept[:5000])
    np.testing.assert_array_equal(kept[:5000], np.cumsum(x))
    assert (kept[5000:] == -1).all()


@pytest.mark.long
def test_equal_functions_are_compiled_once(monkeypatch):
    made = []

    def jit(function=None, **options):
        made.append(function)
        return hip.jit(function, **options)

    monkeypatch.setattr(tiled_scan, "jit", jit)

    def scan_from(bound):
        return algorithms.inclusive_scan(np.arange(9), lambda a, b: max(a, b, bound))

    assert scan_from(5).tolist() == [0, 5, 5, 5, 5, 5, 6, 7, 8]
    first = len(made)
    assert first > 0
    assert scan_from(5).tolist() == [0, 5, 5, 5, 5, 5, 6, 7, 8]
    assert len(made) == first
    assert scan_from(7).tolist() == [0, 7, 7, 7, 7, 7, 7, 7, 8]
    assert len(made) > first


FACTOR = 1


@pytest.mark.long
def test_functions_are_compiled_anew_when_what_they_refer_to_has_changed():
    global FACTOR
    table, x = np.array([1, 2]), np.arange(3)
    for FACTOR in (3, 5):
        table[1] = FACTOR + 1
        found = algorithms.transform(lambda value: value * FACTOR + table[1], x)  # noqa: B023 - likewise
        assert found.tolist() == [FACTOR + 1, 2 * FACTOR + 1, 3 * FACTOR + 1]


X = np.arange(9, dtype=np.int32)
MISTAKES = [
    (lambda: algorithms.inclusive_scan(np.zeros((2, 2))), "source has 2 axes"),
    (lambda: algorithms.inclusive_scan("abc"), "source is str; pass an array"),
    (lambda: algorithms.inclusive_scan(X, 3), "op is 3: pass a function"),
    (lambda: algorithms.reduce(X, X), r"op is array\(.*: pass a function"),
    (lambda: algorithms.inclusive_scan(CountingIterator(0)), "source has no end: say .* count="),
    (lambda: algorithms.inclusive_scan(X, count=10), "count is 10; source has 9 values"),
    (lambda: algorithms.inclusive_scan(X, count=-1), "count is -1"),
    (lambda: algorithms.inclusive_scan(X, out=np.zeros(2)), r"out has the shape \(2,\); 9 results need \(9,\)"),
    (lambda: algorithms.inclusive_scan(X, init=(1, 2)), r"init is \(1, 2\); values are int32"),
    (lambda: algorithms.inclusive_scan(X, init="a"), "init is 'a'"),
    (lambda: algorithms.sort(X, out=hip.to_device(X).read_only()), "out is read-only"),
    (lambda: algorithms.transform_reduce(X, lambda value: "a"), "source has values of type unicode_type"),
    (lambda: algorithms.segmented_scan(X, [0, 3], inclusive=False), "an exclusive scan needs init"),
    (lambda: algorithms.gather(X, [9]), "indices has 9; there are places 0 to 8"),
    (lambda: algorithms.scatter(X, [-1] * 9, X.copy()), "indices has -1; there are places 0 to 8"),
    (lambda: algorithms.select(X), "pass either predicate, a function of a value, or flags"),
    (lambda: algorithms.sort(X.astype(np.complex64)), "source has elements of complex64, .*: pass less="),
    (lambda: algorithms.sort(np.zeros(3, [("a", "i4"), ("b", "i4")])), "source has records, .*: pass less="),
    (lambda: algorithms.sort_by_key(X, X[:3]), "source has 3 values for 9 keys"),
    (lambda: algorithms.sort(X, end_bit=33), "end_bit is 33; pass an integer from 1 to 32"),
    (lambda: algorithms.argsort(X, begin_bit=9, end_bit=8), "begin_bit is 9; pass an integer from 0 to 7"),
    (lambda: algorithms.sort(X, max, begin_bit=1), "begin_bit is 1 and end_bit None, but less compares whole values"),
    (lambda: algorithms.topk(X, -1), "k is -1"),
    (lambda: algorithms.topk(X, 3, out=X), "out is ndarray; pass a pair of arrays"),
    (lambda: algorithms.topk(X, 3, out=(None, X[:2].copy())), r"out\[1\] has the shape \(2,\); 3 results need \(3,\)"),
    (lambda: algorithms.argsort(X, out=np.zeros(3, int)), r"out has the shape \(3,\); 9 results need \(9,\)"),
    (lambda: algorithms.select(X, abs, found=np.zeros(0, int)), r"found has the shape \(0,\); 1 results need \(1,\)"),
    (lambda: algorithms.select(X, abs, found=3), "found is int; pass an array of the device or the host"),
    (lambda: algorithms.segmented_sort(X, [0, 5, 3]), "offsets has 5 at place 1 and 3 behind it"),
    (lambda: algorithms.segmented_reduce(X, [0, 5, 3]), "offsets has 5 at place 1 and 3 behind it"),
    (lambda: algorithms.segmented_scan(X, [0, 5, 3]), "offsets has 5 at place 1 and 3 behind it"),
    (lambda: algorithms.segmented_sort(X, [0.5, 5]), "offsets has values of type float64; pass integers"),
    (lambda: algorithms.segmented_reduce(X, [0.5, 5]), "offsets has values of type float64; pass integers"),
    (lambda: algorithms.searchsorted(X, X, "up"), "side is 'up'; pass 'left' or 'right'"),
    (lambda: algorithms.histogram_even(X, 0, 1, 2), "bins is 0"),
    (lambda: algorithms.histogram_even(X, 2**62, 1, 2), "bins is 4611686018427387904; pass at most"),
    (lambda: algorithms.gather(X, np.array([2**63 + 5], "u8")), "indices has 9223372036854775813; there are places"),
    (
        lambda: algorithms.gather(X, np.full(1 << 15, 2**63 + 5, "u8")),  # too many to be looked at by NumPy
        "indices has 9223372036854775813; there are places",
    ),
    (lambda: algorithms.histogram_even(X, 3, 2, 1), "lower is 2 and upper 1"),
    (lambda: algorithms.histogram_range(X, [1]), "edges has 1 values; a bin needs two"),
    (lambda: algorithms.histogram_range(X, [0, 7, 3]), "edges has 7 at place 1 and 3 behind it; pass the bounds"),
    (lambda: algorithms.reduce(X, lambda a: a), r"op is <lambda>\(a\), which is called with 2 values: too many"),
    (
        lambda: algorithms.select(X, lambda a, b: a),
        r"predicate is <lambda>\(a, b\), which is called with one value: mis",
    ),
    (lambda: algorithms.sort(X, hip.jit(device=True)(lambda a: a)), r"less is <lambda>\(a\), which is called with 2"),
    (lambda: algorithms.transform(X, abs), "function is ndarray; pass the function first"),
    (lambda: algorithms.transform(max, X, "a"), r"sources\[1\] is str; pass an array"),
    (lambda: algorithms.reduce(np.array([None])), "source holds Python objects"),
    (lambda: algorithms.reduce(X, init=2.5), "init is 2.5, and values are int32, which has no such number"),
    (lambda: algorithms.reduce(X.astype("u1"), init=-1), "init is -1, and values are uint8, which has no such number"),
    (lambda: algorithms.reduce(X, init=2**70), "init is 1180591620717411303424, and values are int32"),
    (lambda: algorithms.reduce(X * 1.0, init=1j), "init is 1j, and values are float64"),
    (
        lambda: algorithms.inclusive_scan(X.astype("m8[s]"), init=np.timedelta64(1, "ms")),
        "init is .*, and values are ti",
    ),
    (lambda: algorithms.exclusive_scan(X, init=None), "init is None; pass the first result"),
    (lambda: algorithms.reduce(X, np.sin), "op is sin, which kernels do not call with int32 and int32"),
    (lambda: algorithms.reduce(X, lambda a, b: a * 0.5 + b), "op gives float64 for two values of type int32"),
    (lambda: algorithms.reduce(X, lambda a, b: a * 1j), "op gives complex128 for two values of type int32"),
    (lambda: algorithms.select(X, lambda a: None), "predicate gives none for int32; it has to tell whether"),
    (lambda: algorithms.sort(X, lambda a, b: (a, b)), "less gives UniTuple.* for int32 and int32; it has to tell"),
    (lambda: algorithms.unique(X, lambda a, b: "x"), "equal gives unicode_type for int32 and int32; it has to tell"),
    (lambda: algorithms.select(X, flags=np.zeros(9, "i4,i4")), "flags has values of type Record"),
    (lambda: algorithms.reduce(CountingIterator("a"), count=3), "source.start is 'a'; pass an integer"),
    (
        lambda: algorithms.reduce(CountingIterator(2**70), count=3),
        "source.start is 1180591620717411303424; pass an int",
    ),
    (lambda: algorithms.reduce(ConstantIterator((1, 2**70)), count=3), r"source.value\[1\] is 1180591620717411303424"),
    (lambda: algorithms.reduce(PermutationIterator(X, [1.5])), "source.indices has values of type float64; pass int"),
    (lambda: algorithms.reduce(np.zeros(3, "V4")), "source: an array of dtype .*V4 is bytes without a meaning"),
    (lambda: algorithms.reduce(X.astype(">i4")), "source: an array of dtype >i4"),
    (lambda: algorithms.sort(X, out=X.astype(">i4")), "out: an array of dtype >i4"),
    (lambda: algorithms.reduce([[1], [1, 2]]), "source makes no array: "),
    (
        lambda: algorithms.sort(X, out=np.zeros(9, "M8[s]")),
        r"out has elements of datetime64\[s\], which cannot be int32",
    ),
    (
        lambda: algorithms.inclusive_scan(X * 1j, out=np.zeros(9)),
        "out has elements of float64, which cannot be complex",
    ),
    (
        lambda: algorithms.select(X, abs, found=np.zeros(1)),
        "found has elements of float64; pass an array of an integer",
    ),
    (lambda: algorithms.sort(X, out=np.ndarray(9, "i4", bytearray(4), 0, (0,))), "out has elements that share memory"),
    (lambda: algorithms.histogram_even(X.astype("M8[s]"), 3, 0, 1), "source has values of type datetime64"),
    (lambda: algorithms.histogram_even(X, 3, np.timedelta64(0, "s"), 1), "lower is .*; pass a finite number"),
    (lambda: algorithms.histogram_range(X, [0, np.nan, 2]), "edges has 0.0 at place 0 and nan behind it"),
    (lambda: algorithms.histogram_range(X, np.array([1j, 2])), "edges has values of type complex128; bins are for"),
    (lambda: algorithms.histogram_range(X, np.array([1, 2], "M8[s]")), "edges has values of type datetime64.* convert"),
    (lambda: algorithms.scatter(X, [0, 1], X.copy()), "indices has 2 values for 9 of source"),
    (lambda: algorithms.searchsorted(X * 1j, X), "source has values of type complex128, .*: pass less="),
    (lambda: algorithms.merge(X, np.zeros(3, "M8[s]")), "second has values of type datetime64.*, and first of int32"),
    (lambda: algorithms.merge(X.astype("i8"), X.astype("u8")), "second has values of type uint64, and first of int64"),
]


@pytest.mark.long
@pytest.mark.parametrize(("call", "says"), MISTAKES, ids=[says for _, says in MISTAKES])
def test_mistakes_are_told_by_the_name_of_the_argument(call, says):
    with pytest.raises(AlgorithmError, match=says):
        call()


def test_masks_are_not_lost():
    masked = np.ma.array([1, 2, 3], mask=[0, 1, 0], dtype=np.int32)
    with pytest.raises(MaskedArrayError, match=r"source has a mask, .*: pass its filled\(value\)"):
        algorithms.reduce(masked)
    with pytest.raises(MaskedArrayError, match="out has a mask"):
        algorithms.inclusive_scan([1, 2, 3], out=masked)
    assert int(host(algorithms.reduce(masked.filled(0)))) == 4


def test_segments_of_the_device_that_end_before_they_begin_are_empty():
    offsets = hip.to_device(np.array([0, 5, 3, 9]))
    np.testing.assert_array_equal(host(algorithms.segmented_reduce(X, offsets)), [10, 0, X[3:].sum()])


def test_an_operator_with_an_unknown_name_is_shown_at_its_line():
    def misspelt(a, b):
        return a + bb  # noqa: F821 - is the mistake

    with pytest.raises(TypingError, match=r"name 'bb' is not defined.*\n.*test_algorithms.py.*\n +return a [+] bb"):
        algorithms.reduce(X, misspelt)


@pytest.mark.long
def test_the_radix_sort_of_gpus_runs_on_the_cpu_device_too(monkeypatch):
    """It shares elements out among blocks there, among threads here."""
    monkeypatch.setattr(radix_sort, "uses_blocks", lambda operands: True)
    for dtype in ("u1", "f4"):
        x = numbers(3001, dtype)
        keys, places = algorithms.sort_by_key(x, np.arange(3001))
        np.testing.assert_array_equal(places, np.argsort(x, kind="stable"))
        np.testing.assert_array_equal(keys, np.sort(x))


@pytest.mark.parametrize("call", ["reduce", "inclusive_scan", "exclusive_scan", "segmented_reduce", "reduce_by_key"])
@pytest.mark.parametrize(("op", "given"), [(lambda a, b: "x", "unicode_type"), (lambda a, b: (a, b), "int32 x 2")])
def test_an_operator_that_gives_no_such_value_is_named(call, op, given):
    x = hip.to_device(np.arange(10, dtype=np.int32))
    algorithms = hip.algorithms
    calls = {
        "reduce": lambda: algorithms.reduce(x, op),
        "inclusive_scan": lambda: algorithms.inclusive_scan(x, op),
        "exclusive_scan": lambda: algorithms.exclusive_scan(x, op, 0),
        "segmented_reduce": lambda: algorithms.segmented_reduce(x, np.array([0, 4, 10]), op=op),
        "reduce_by_key": lambda: algorithms.reduce_by_key(x, x, op),
    }
    with pytest.raises(AlgorithmError, match=f"op gives .*{given}.* for two values of type int"):
        calls[call]()


def test_topk_of_fewer_gives_all():
    values, places = hip.algorithms.topk(np.array([3, 1, 2], np.int32), 20)
    np.testing.assert_array_equal(np.asarray(values), [3, 2, 1])
    np.testing.assert_array_equal(np.asarray(places), [0, 2, 1])
