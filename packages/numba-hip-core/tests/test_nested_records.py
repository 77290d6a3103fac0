"""Records of records and of small arrays as values of algorithms, blocks and waves, beside NumPy and Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba.core import types
from numba.core.errors import TypingError

import numba_hip as hip
from numba_hip import algorithms, block, wave
from numba_hip.algorithms import AlgorithmError, CountingIterator, TransformIterator, ZipIterator, runs
from numba_hip.cooperative import value_parts

Host = np.ndarray[Any, Any]

LINE = np.dtype([("slope", np.int64), ("shift", np.int64)])
"""x -> slope * x + shift, modulo a number: to follow one another is associative, and not commutative."""

STEP = np.dtype([("line", LINE), ("ends", np.int16, (2,)), ("weight", np.float32)])
PACKED = np.dtype([("mark", np.uint8), ("line", LINE), ("weight", np.float32), ("ends", np.int16, (2,))])
ALIGNED = np.dtype([("mark", np.uint8), ("corners", LINE, (2, 3)), ("grid", np.float16, (2, 2))], align=True)
IN_ARRAYS = np.dtype([("pair", (np.dtype((np.int32, (2,))), (3,))), ("inner", [("inner", [("value", np.float64)])])])
DEEP = [STEP, PACKED, ALIGNED, IN_ARRAYS]

MODULUS = 8192
"""A power of two, as kernels that divide take seconds to compile; slopes are odd, so that none of them makes what was
before forgotten."""


def follow(first: Any, second: Any) -> Any:
    """One step after the other; a tuple of tuples, whose fields have no names."""
    slope = first.line.slope * second.line.slope % MODULUS
    shift = (second.line.slope * first.line.shift + second.line.shift) % MODULUS
    ends = (min(first.ends[0], second.ends[0]), max(first.ends[1], second.ends[1]))
    return (slope, shift), ends, first.weight + second.weight


def steps(size: int, seed: int = 0) -> Host:
    made = np.zeros(size, STEP)
    generator = np.random.default_rng(seed + size)
    made["line"]["slope"], made["line"]["shift"] = generator.integers(0, MODULUS, (2, size)) | [[1], [0]]
    made["ends"], made["weight"] = generator.integers(-99, 99, (size, 2)), generator.integers(0, 5, size)
    return made


def followed(given: Host) -> Host:
    """`follow` of all elements up to each, by Python's own numbers."""
    made = given.copy()
    for before, one in itertools.pairwise(made):
        slope, shift = (int(before["line"][name]) for name in ("slope", "shift"))
        one["line"] = (
            slope * int(one["line"]["slope"]) % MODULUS,
            (int(one["line"]["slope"]) * shift + int(one["line"]["shift"])) % MODULUS,
        )
        one["ends"] = min(before["ends"][0], one["ends"][0]), max(before["ends"][1], one["ends"][1])
        one["weight"] += before["weight"]
    return made


def noise(size: int, dtype: Any) -> Host:
    """Elements of any bytes below 60: no number of theirs is a NaN."""
    return np.random.default_rng(size).integers(0, 60, size * dtype.itemsize).astype(np.uint8).view(dtype)


def host(array: Any) -> Host:
    found: Host = array.copy_to_host() if hip.is_device_array(array) else array
    return found


def same(found: Any, wanted: Host) -> None:
    """The same numbers in the same fields, wherever in an element these are: NumPy compares no padding."""
    found = host(found)
    assert found.dtype.names == wanted.dtype.names
    for name in wanted.dtype.names or ():
        if wanted[name].dtype.names is None:
            np.testing.assert_array_equal(found[name], wanted[name])
        else:
            same(found[name], wanted[name])


@pytest.mark.sample(1)
@pytest.mark.parametrize("size", [1, 2, 65, 1025, 5001])
def test_steps_are_combined_in_their_order(size: int) -> None:
    given = steps(size)
    through, stream = followed(given), hip.stream()
    on_device = hip.to_device(given)
    same(algorithms.inclusive_scan(on_device, follow, stream=stream), through)
    room = hip.to_device(np.zeros(2 * size, STEP))
    algorithms.inclusive_scan(on_device[::-1], follow, out=room[::2])
    same(room[::2], followed(given[::-1]))
    same(room[1::2], np.zeros(size, STEP))
    algorithms.inclusive_scan(on_device, follow, out=on_device)
    same(on_device, through)


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 65, 5001])
def test_steps_are_combined_with_a_first_one_and_to_one(size: int) -> None:
    given, first = steps(size), steps(1, seed=9)
    same(np.array([algorithms.reduce(given, follow, commutative=False)], STEP), followed(given)[-1:])
    behind = followed(np.concatenate([first, given]))
    for init in (first[0], ((*first[0]["line"],), tuple(first[0]["ends"]), float(first[0]["weight"]))):
        same(algorithms.exclusive_scan(given, follow, init), behind[:-1])


@pytest.mark.parametrize("by_parts", [True, False])
@pytest.mark.parametrize("algorithm", ["reduce_by_key", "scan_by_key", "segmented_scan", "segmented_reduce"])
@pytest.mark.sample(1)
def test_steps_are_combined_in_segments_and_by_keys(
    algorithm: str, by_parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not by_parts:
        monkeypatch.setattr(runs, "goes_by_parts", lambda operands: False)
    given, keys = steps(3000), np.sort(np.random.default_rng(4).integers(0, 40, 3000))
    bounds = [0, *(np.flatnonzero(np.diff(keys)) + 1), 3000]
    parts = [followed(given[a:b]) for a, b in itertools.pairwise(bounds)]
    whole, ends = np.concatenate(parts), np.concatenate([part[-1:] for part in parts])
    if algorithm == "reduce_by_key":
        found, totals = algorithms.reduce_by_key(keys, given, follow)
        np.testing.assert_array_equal(found, np.unique(keys))
        same(totals, ends)
    elif algorithm == "scan_by_key":
        same(algorithms.scan_by_key(keys, given, follow), whole)
    elif algorithm == "segmented_scan":
        same(algorithms.segmented_scan(hip.to_device(given), bounds[1:-1], follow), whole)
    else:
        same(algorithms.segmented_reduce(given, bounds, follow, init=((1, 0), (99, -99), 0.0)), ends)


KEYS = np.random.default_rng(2).integers(0, 300, 1500).astype(np.int16)


def move_by_digits(given: Host) -> None:
    _, moved = algorithms.sort_by_key(KEYS, given)
    assert moved.dtype == given.dtype or given.dtype in (ALIGNED, IN_ARRAYS)  # without padding, and axes as one
    same(moved, given[np.argsort(KEYS, kind="stable")])


def move_by_comparing(given: Host) -> None:
    room = hip.to_device(np.zeros_like(given))
    _, moved = algorithms.sort_by_key(KEYS, hip.to_device(given), lambda a, b: a > b, out=(None, room))
    assert moved is room
    same(room, given[np.argsort(-KEYS, kind="stable")])


def move_by_places(given: Host) -> None:
    order, on_device = np.argsort(KEYS, kind="stable"), hip.to_device(given)
    same(algorithms.gather(on_device, order), given[order])
    room = hip.to_device(np.zeros_like(given))
    assert algorithms.scatter(on_device, order, room) is room
    same(room, given[np.argsort(order)])


def move_what_is_chosen(given: Host) -> None:
    odd = KEYS % 2 == 1
    same(algorithms.select(given, flags=odd), given[odd])


def move_the_first_of_runs(given: Host) -> None:
    repeated = np.repeat(given[:50], 30)
    kept, lengths = algorithms.run_length_encode(repeated)
    same(kept, given[:50])
    assert (lengths == 30).all()
    same(algorithms.unique_by_key(np.arange(50).repeat(30), repeated)[1], given[:50])


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", DEEP)
@pytest.mark.parametrize(
    "move", [move_by_digits, move_by_comparing, move_by_places, move_what_is_chosen, move_the_first_of_runs]
)
def test_elements_move_with_all_of_their_parts(move: Callable[[Host], None], dtype: Any) -> None:
    move(noise(KEYS.size, dtype))


@pytest.mark.long
def test_elements_are_compared_by_their_parts() -> None:
    given = steps(2000)
    slopes = given["line"]["slope"]
    same(algorithms.sort(given, lambda a, b: a.line.slope < b.line.slope), given[np.argsort(slopes, kind="stable")])
    last = given["ends"][:, 1]
    order = np.argsort(last, kind="stable")
    np.testing.assert_array_equal(algorithms.argsort(given, lambda a, b: a.ends[1] < b.ends[1]), order)
    ordered = given[order]
    first, second = ordered[::2], ordered[1::2]
    merged = algorithms.merge(first, second, lambda a, b: a.ends[1] < b.ends[1])
    both = np.concatenate([first, second])
    same(merged, both[np.argsort(both["ends"][:, 1], kind="stable")])
    at = algorithms.searchsorted(ordered, given, less=lambda a, b: a.ends[1] < b.ends[1])
    np.testing.assert_array_equal(at, np.searchsorted(last[order], last))


@pytest.mark.sample(1)
@pytest.mark.parametrize("algorithm", ["sort", "unique", "transform_reduce"])
def test_fields_may_have_any_names(algorithm: str) -> None:
    flowers = np.zeros(90, [("class", "i2"), ("sepal length", "f4"), ("_x", [("from", "i4")])])
    flowers["class"], flowers["sepal length"] = np.arange(90) // 30, np.random.default_rng(8).random(90)
    flowers["_x"]["from"] = np.arange(90)
    if algorithm == "sort":
        longest = algorithms.sort(flowers, lambda a, b: a[1] > b[1])
        same(longest, flowers[np.argsort(-flowers["sepal length"], kind="stable")])
    elif algorithm == "unique":
        same(algorithms.unique(flowers, lambda a, b: a[0] == b[0]), flowers[::30])
    else:
        assert algorithms.transform_reduce(flowers, lambda one: one._x[0]) == sum(range(90))


def test_parts_are_made_and_read_by_functions() -> None:
    given = steps(700)
    weighed = algorithms.transform_reduce(given, lambda one: one.weight * one.ends[0])
    np.testing.assert_allclose(weighed, (given["weight"] * given["ends"][:, 0]).sum())
    pairs = algorithms.transform(lambda one: (one.line.shift, (one.weight, (one.ends, True))), given)
    assert pairs.dtype["f1"].names == ("f0", "f1")
    np.testing.assert_array_equal(pairs["f1"]["f1"]["f0"], given["ends"])
    np.testing.assert_array_equal(pairs["f1"]["f0"], given["weight"])
    assert pairs["f1"]["f1"]["f1"].all()


@pytest.mark.long
def test_records_are_beside_tuples() -> None:
    given = steps(700)
    zipped = ZipIterator(given, TransformIterator(CountingIterator(0), lambda place: (place, place * 0.5)))
    heaviest = algorithms.reduce(
        zipped, lambda a, b: a if a[0].weight > b[0].weight or (a[0].weight == b[0].weight and a[1][0] < b[1][0]) else b
    )
    place = int(np.argmax(given["weight"]))
    assert heaviest["f1"].tolist() == [place, place * 0.5] or heaviest["f1"].tolist() == (place, place * 0.5)
    assert heaviest["f0"] == given[place]


THREADS, ITEMS = 48, 3
MAKERS = pytest.mark.parametrize("makers", [block, wave])


def groups_of(makers: Any) -> list[tuple[int, int]]:
    """The first and the last thread, exclusively, of the block or of each wave."""
    lanes = THREADS if makers is block else hip.get_current_device().WARP_SIZE
    return [(start, min(start + lanes, THREADS)) for start in range(0, THREADS, lanes)]


def change_tiles(makers: Any, change: Any, wanted: Callable[[Host], Host]) -> None:
    """Compare what *change* makes of the items of each block or wave with what is *wanted*."""
    load, store = (make(STEP, THREADS, ITEMS, "transpose") for make in (makers.make_load, makers.make_store))
    of_waves = makers is wave

    @hip.jit
    def work(given: Any, changed: Any) -> None:
        start = (block.rank() - hip.laneid) * ITEMS if of_waves else 0
        slopes, shifts, firsts, lasts, weights = given
        own = (
            hip.local.array(ITEMS, np.int64), hip.local.array(ITEMS, np.int64), hip.local.array(ITEMS, np.int16),
            hip.local.array(ITEMS, np.int16), hip.local.array(ITEMS, np.float32),
        )  # fmt: skip
        load((slopes[start:], shifts[start:], firsts[start:], lasts[start:], weights[start:]), own)
        change(own)
        store((changed[0][start:], changed[1][start:], changed[2][start:], changed[3][start:], changed[4][start:]), own)

    given = steps(THREADS * ITEMS)
    changed = np.zeros_like(given)
    work[1, THREADS](columns_of(given), columns_of(changed))
    for start, end in groups_of(makers):
        of_group = slice(start * ITEMS, end * ITEMS)
        same(changed[of_group], wanted(given[of_group]))


@pytest.mark.sample(1)
@MAKERS
def test_blocks_and_waves_scan_them(makers: Any) -> None:
    change_tiles(makers, makers.make_inclusive_scan(STEP, THREADS, follow, ITEMS), followed)


@pytest.mark.long
@MAKERS
def test_blocks_and_waves_sort_them(makers: Any) -> None:
    sort = makers.make_merge_sort_keys(STEP, THREADS, ITEMS, lambda a, b: a.weight < b.weight)
    change_tiles(makers, sort, lambda part: part[np.argsort(part["weight"], kind="stable")])


@pytest.mark.sample(1)
@MAKERS
def test_blocks_and_waves_combine_them(makers: Any) -> None:
    total_of = makers.make_reduce(STEP, THREADS, follow)

    @hip.jit
    def work(given: Any, out: Any) -> None:
        i = block.rank()
        total = total_of(given[i])  # a record in memory
        out[i, 0], out[i, 1], out[i, 2] = total.line.slope, total.ends[1], total.weight

    given, out = steps(THREADS), np.zeros((THREADS, 3), np.int64)
    work[1, THREADS](given, out)
    for start, end in groups_of(makers):
        total = followed(given[start:end])[-1]
        is_told = slice(start, end) if makers is wave else slice(0, 1)
        assert (out[is_told] == [total["line"]["slope"], total["ends"][1], total["weight"]]).all()


def columns_of(given: Host) -> tuple[Host, ...]:
    line, ends = given["line"], given["ends"]
    return line["slope"], line["shift"], ends[:, 0], ends[:, 1], given["weight"]


def test_the_shuffles_of_waves_tell_what_to_pass_for_a_record() -> None:
    @hip.jit
    def total(given: Any, out: Any) -> None:
        out[0] = hip.wave.shuffle(given[0], 1).weight

    with pytest.raises(
        TypingError, match=r"numbers and tuples of numbers between lanes, not Record.*: pass a tuple of"
    ):
        total[1, 1](steps(1), np.zeros(1))


WIDE = np.dtype([("rows", np.float32, (8, 8)), ("n", np.int32)])
NESTED = types.NamedTuple([types.Tuple([types.int8, types.UniTuple(types.float32, 2)]), types.int64], runs.Test)

MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: algorithms.inclusive_scan(steps(3), lambda a, b: a.line), r"op gives .* for two values of type"),
    (lambda: algorithms.inclusive_scan(steps(3), lambda a, b: ((1, 2), 3, 4.0)), r"op gives .* for two values of type"),
    (lambda: algorithms.reduce(steps(3), follow, ((1, 2), (3, 4))), r"init is \(\(1, 2\), \(3, 4\)\); values are"),
    (lambda: algorithms.sort(noise(3, WIDE), lambda a, b: a.n < b.n), "source has values of 65 numbers each; .* 64 at"),
    (lambda: algorithms.sort(steps(3)), "source has records, .*: pass less="),
    (
        lambda: algorithms.sort(steps(3), lambda a, b: a.weight < b.weight, out=np.zeros(3, LINE)),
        "out has 2 numbers in an element",
    ),
    (lambda: algorithms.unique(np.zeros(3, [("a", [("text", "U3")])])), "source"),
]


@pytest.mark.parametrize(("call", "says"), MISTAKES, ids=[says for _, says in MISTAKES])
def test_mistakes_are_told_by_the_name_of_the_argument(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(AlgorithmError, match=says):
        call()


@pytest.mark.parametrize("dtype", DEEP)
def test_the_type_of_values_gives_the_type_of_elements_again(dtype: Any) -> None:
    kind = value_parts.value_kind(dtype)
    again = value_parts.element_dtype(kind)
    assert value_parts.value_kind(again) == kind
    same(np.zeros(2, again), np.zeros(2, dtype))
    assert len(value_parts.leaf_kinds(kind)) == len(value_parts.numbers_of(np.zeros((), dtype)[()]))


def test_types_are_alike_where_they_have_numbers_in_the_same_places() -> None:
    inner = types.Tuple([types.int64, types.UniTuple(types.int32, 2)])
    assert value_parts.is_like(types.Tuple([inner, types.uint8]), NESTED)
    assert not value_parts.is_like(types.Tuple([inner, types.float32]), NESTED)
    assert not value_parts.is_like(types.Tuple([types.int64, types.float32]), NESTED)
    assert not value_parts.is_like(types.UniTuple(types.int64, 4), NESTED)
    assert value_parts.leaf_kinds(NESTED) == [types.int8, types.float32, types.float32, types.int64]
