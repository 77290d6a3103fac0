"""Programs of `cuda.compute`, unchanged, while posing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from hip_runtime.errors import StreamError
from numba_hip.errors import AlgorithmError
from numba_hip_cuda import posing

GENERATOR = np.random.default_rng(4)
INTEGERS = GENERATOR.integers(-50, 50, 3001).astype(np.int32)


@pytest.fixture
def compute(cuda: ModuleType) -> ModuleType:
    """`cuda.compute`, posed."""
    return importlib.import_module("cuda.compute")


@pytest.mark.parametrize("init", [0, 7])
@pytest.mark.sample(1)
def test_reduction_in_both_forms(cuda: ModuleType, compute: ModuleType, init: int) -> None:
    source, out = cuda.to_device(INTEGERS), cuda.device_array(1, np.int32)
    given = {"d_in": source, "d_out": out, "op": compute.OpKind.PLUS, "h_init": np.array([init], np.int32)}
    compute.reduce_into(num_items=3000, **given)
    assert out.copy_to_host()[0] == INTEGERS[:3000].sum() + init
    reducer = compute.make_reduce_into(**given)
    size = reducer(temp_storage=None, num_items=3001, **given)
    assert size > 0
    reducer(temp_storage=cuda.device_array(size, np.uint8), num_items=3001, **given)
    assert out.copy_to_host()[0] == INTEGERS.sum() + init


def test_reduction_of_an_iterator_into_an_iterator(cuda: ModuleType, compute: ModuleType) -> None:
    out = cuda.device_array(1, np.float32)
    compute.reduce_into(
        d_in=compute.TransformIterator(compute.CountingIterator(np.int32(1)), lambda x: x * x),
        d_out=compute.TransformOutputIterator(out, lambda x: x**0.5),
        num_items=10,
        op=compute.OpKind.PLUS,
        h_init=np.array([0], np.float32),
    )
    assert out.copy_to_host()[0] == pytest.approx(385**0.5)


def test_records(cuda: ModuleType, compute: ModuleType) -> None:
    pixel = compute.gpu_struct({"r": np.int32, "g": np.int32, "b": np.int32}, name="Pixel")

    def greener(x: Any, y: Any) -> Any:
        return x if x.g > y.g else y

    def doubled(x: Any) -> Any:
        return pixel(x.r * 2, x.g * 2, x.b * 2)

    host = GENERATOR.integers(0, 256, (500, 3), dtype=np.int32).view(pixel.dtype).reshape(-1)
    source, out = cuda.to_device(host), cuda.device_array(1, pixel.dtype)
    compute.reduce_into(d_in=source, d_out=out, num_items=500, op=greener, h_init=pixel(0, 0, 0))
    assert out.copy_to_host()["g"][0] == host["g"].max()
    twice = cuda.device_array(500, pixel.dtype)
    compute.unary_transform(d_in=source, d_out=twice, op=doubled, num_items=500)
    for field in "rgb":
        np.testing.assert_array_equal(twice.copy_to_host()[field], host[field] * 2)


def spheres(compute: ModuleType) -> Any:
    """A class of records of records and arrays, each kind of which is given in another way."""

    @compute.gpu_struct
    class Point:
        x: np.float32
        y: np.float64

    color = np.dtype([("red", np.uint8), ("light", np.int32)])
    return compute.gpu_struct({"center": Point, "of": {"color": color, "n": np.int16}, "sizes": np.dtype(("i4", (2,)))})


def made_of(sphere: Any, count: int) -> Any:
    host = np.zeros(count, sphere.dtype)
    host["center"]["x"], host["center"]["y"] = GENERATOR.random((2, count))
    host["of"]["color"]["light"], host["of"]["n"] = GENERATOR.integers(0, 99, (2, count))
    host["sizes"] = GENERATOR.integers(-50, 50, (count, 2))
    return host


def test_records_in_records(cuda: ModuleType, compute: ModuleType) -> None:
    sphere = spheres(compute)
    assert sphere.dtype["of"]["color"].itemsize == 8  # as C lays it out
    host = made_of(sphere, 700)

    def together(a: Any, b: Any) -> Any:
        color = (max(a.of.color.red, b.of.color.red), a.of.color.light + b.of.color.light)
        center = a.center if a.center.x > b.center.x else b.center
        return sphere(center, (color, a.of.n), (min(a.sizes[0], b.sizes[0]), max(a.sizes[1], b.sizes[1])))

    start = sphere((-1, 0), {"color": (3, 0), "n": 5}, [50, -50])
    assert (start.center.x, start.of.color.red, start.of.n, start.sizes.tolist()) == (-1, 3, 5, [50, -50])
    again = sphere(**{name: getattr(start, name) for name in ("center", "of", "sizes")})
    assert again.as_tuple() == start.as_tuple() == ((-1, 0), ((3, 0), 5), (50, -50))
    source, out = cuda.to_device(host), cuda.device_array(1, sphere.dtype)
    compute.reduce_into(d_in=source, d_out=out, num_items=700, op=together, h_init=start)
    found = sphere(*out.copy_to_host()[0])
    rightmost = host["center"][host["center"]["x"].argmax()]
    assert found.center.as_tuple() == tuple(rightmost)
    assert found.of.color.light == host["of"]["color"]["light"].sum()
    assert found.sizes.tolist() == [host["sizes"][:, 0].min(), host["sizes"][:, 1].max()]


@pytest.mark.long
def test_records_in_records_are_sorted(cuda: ModuleType, compute: ModuleType) -> None:
    sphere = spheres(compute)
    host = made_of(sphere, 700)
    ordered = cuda.device_array(700, sphere.dtype)
    compute.merge_sort(
        d_in_keys=cuda.to_device(host), d_in_values=None, d_out_keys=ordered, d_out_values=None, num_items=700,
        op=lambda a, b: a.sizes[1] < b.sizes[1],
    )  # fmt: skip
    np.testing.assert_array_equal(ordered.copy_to_host(), host[np.argsort(host["sizes"][:, 1], kind="stable")])


@pytest.mark.long
def test_parts_of_a_zip_become_records_in_records(cuda: ModuleType, compute: ModuleType) -> None:
    sphere = spheres(compute)
    host = made_of(sphere, 300)
    parts = [cuda.to_device(np.ascontiguousarray(host[name])) for name in ("center", "of")]
    sizes = compute.TransformIterator(compute.CountingIterator(np.int64(0)), lambda place: (place, place + 1))
    out = cuda.device_array(300, sphere.dtype)

    def larger(a: Any, b: Any) -> Any:
        return b if b.sizes[1] > a.sizes[1] and b.of.color.light >= a.of.color.light else a

    start = sphere((0, 0), ((0, 0), 0), (0, 0))
    zipped = compute.ZipIterator(*parts, sizes)
    compute.inclusive_scan(d_in=zipped, d_out=out, op=larger, init_value=start, num_items=300)
    best = np.maximum.accumulate(host["of"]["color"]["light"])
    np.testing.assert_array_equal(out.copy_to_host()["of"]["color"]["light"], best)
    last = [np.flatnonzero(host["of"]["color"]["light"][: end + 1] == best[end])[-1] for end in range(300)]
    np.testing.assert_array_equal(out.copy_to_host()["sizes"][:, 0], last)
    constant = compute.ConstantIterator(sphere((1, 2), ((3, 4), 5), (6, 7)))
    lights = cuda.device_array(3, np.int32)
    compute.unary_transform(d_in=constant, d_out=lights, op=lambda one: one.of.color.light + one.sizes[1], num_items=3)
    assert lights.copy_to_host().tolist() == [11, 11, 11]


def test_records_that_do_not_fit(compute: ModuleType) -> None:
    point = compute.gpu_struct({"x": np.int32})
    for wrong in ("abc", object, "U3"):
        with pytest.raises(AlgorithmError, match="the field 'a' (is|has values of type) .*numbers"):
            compute.gpu_struct({"a": wrong})
    outer = compute.gpu_struct({"at": point, "sizes": np.dtype((np.int16, (2,)))}, name="Outer")
    with pytest.raises(AlgorithmError, match=r"Outer.at is 3; pass a record, a tuple or a dict of x"):
        outer(3, [1, 2])
    with pytest.raises(AlgorithmError, match=r"Outer.sizes is \[1, 2, 3\]; pass a"):
        outer((3,), [1, 2, 3])
    with pytest.raises(AlgorithmError, match="pass a value for each"):
        point(1, 2)
    assert compute.gpu_struct({"_x": np.int8, "y": np.int8})(1, 2).as_tuple() == (1, 2)
    with pytest.raises(ValueError, match="not a valid Python identifier"):
        compute.gpu_struct({"a b": np.int32})


@pytest.mark.parametrize("name", ["inclusive_scan", "exclusive_scan"])
@pytest.mark.sample(1)
def test_scans(cuda: ModuleType, compute: ModuleType, name: str) -> None:
    source, out = cuda.to_device(INTEGERS), cuda.device_array(3001, np.int32)
    init = cuda.to_device(np.array([3], np.int32))
    getattr(compute, name)(d_in=source, d_out=out, op=lambda a, b: a + b, init_value=init, num_items=3001)
    through = np.cumsum(INTEGERS) + 3
    expected = through if name == "inclusive_scan" else np.concatenate([[3], through[:-1]])
    np.testing.assert_array_equal(out.copy_to_host(), expected)


def test_segmented_reduction_with_gaps_and_overlaps(cuda: ModuleType, compute: ModuleType) -> None:
    starts, ends = np.array([5, 0, 90, 300, 7]), np.array([60, 100, 95, 300, 3001])
    out = cuda.device_array(5, np.int32)
    compute.segmented_reduce(
        d_in=cuda.to_device(INTEGERS),
        d_out=out,
        num_segments=5,
        start_offsets_in=cuda.to_device(starts),
        end_offsets_in=cuda.to_device(ends),
        op=compute.OpKind.PLUS,
        h_init=np.array([1], np.int32),
    )
    expected = [INTEGERS[start:end].sum() + 1 for start, end in zip(starts, ends, strict=True)]
    np.testing.assert_array_equal(out.copy_to_host(), expected)


def test_radix_sort_by_some_bits(cuda: ModuleType, compute: ModuleType) -> None:
    keys, places = np.arange(3001, dtype=np.uint16)[::-1].copy(), np.arange(3001)
    keys_out, places_out = cuda.device_array(3001, np.uint16), cuda.device_array(3001, np.int64)
    given = {"d_in_keys": cuda.to_device(keys), "d_out_keys": keys_out}
    given |= {"d_in_values": cuda.to_device(places), "d_out_values": places_out}
    order = compute.SortOrder.ASCENDING
    compute.radix_sort(**given, num_items=3001, order=order, begin_bit=4, end_bit=7)
    expected = np.argsort((keys >> 4) & 7, kind="stable")
    np.testing.assert_array_equal(keys_out.copy_to_host(), keys[expected])
    np.testing.assert_array_equal(places_out.copy_to_host(), expected)
    compute.radix_sort(**given, num_items=3001, order=order, begin_bit=5, end_bit=5)
    np.testing.assert_array_equal(keys_out.copy_to_host(), keys)


class Bare:
    """An array of a library that says no more than it has to."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def test_arrays_need_nothing_but_their_interface(cuda: ModuleType, compute: ModuleType) -> None:
    source, out, found = (
        Bare(cuda.to_device(INTEGERS)),
        cuda.device_array(3001, np.int32),
        cuda.device_array(1, np.int64),
    )
    given = {"d_in": source, "d_out": Bare(out), "d_num_selected_out": Bare(found), "num_items": 3001}
    compute.select(cond=lambda x: x > 10, **given)
    expected = INTEGERS[INTEGERS > 10]
    np.testing.assert_array_equal(out.copy_to_host()[: found.copy_to_host()[0]], expected)
    rows = np.asfortranarray(INTEGERS[:3000].reshape(30, 100).astype(np.int64))
    compute.inclusive_scan(
        d_in=Bare(cuda.to_device(rows)), d_out=(sums := cuda.device_array(3000, np.int64)), op=compute.OpKind.PLUS,
        num_items=3000,
    )  # fmt: skip
    np.testing.assert_array_equal(sums.copy_to_host(), np.cumsum(rows.ravel(order="K")))


def test_iterators_that_begin_further_on(cuda: ModuleType, compute: ModuleType) -> None:
    pair = compute.gpu_struct({"value": np.int32, "place": np.int64})
    source, places = cuda.to_device(INTEGERS), cuda.to_device(np.arange(3001)[::-1].copy())
    zipped = compute.ZipIterator(source, compute.CountingIterator(np.int64(0)))
    permuted = compute.PermutationIterator(zipped, places) + 2990

    def both(a: Any, b: Any) -> Any:
        return pair(a.value + b.value, a.place + b.place)

    out = cuda.device_array(1, pair.dtype)
    for begins, first in ((zipped + 2990, 2990), (permuted, 0)):
        compute.reduce_into(d_in=begins, d_out=out, num_items=11, op=both, h_init=pair(1, 0))
        chosen = np.arange(first, first + 11)
        assert out.copy_to_host()[0].item() == (INTEGERS[chosen].sum() + 1, chosen.sum())


def test_streams_that_say_nothing_of_use(cuda: ModuleType, compute: ModuleType) -> None:
    class Stream:
        def __cuda_stream__(self) -> Any:
            return (0, None)

    source = cuda.to_device(INTEGERS)
    with pytest.raises(TypeError, match=r"gives \(0, None\); it has to give a version and a handle"):
        compute.unary_transform(d_in=source, d_out=source, op=abs, num_items=3, stream=Stream())
    given = {"d_in": source, "d_out": cuda.device_array(1, np.int32), "op": max, "h_init": np.zeros(1, np.int32)}
    with pytest.raises(StreamError, match="stream"):
        compute.make_reduce_into(**given)(**given, temp_storage=None, num_items=3, stream=object())


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.sample(1)
def test_radix_sort_of_double_buffers(cuda: ModuleType, compute: ModuleType, is_descending: bool) -> None:
    places = np.arange(3001)
    keys = compute.DoubleBuffer(cuda.to_device(INTEGERS), cuda.device_array(3001, np.int32))
    values = compute.DoubleBuffer(cuda.to_device(places), cuda.device_array(3001, np.int64))
    order = compute.SortOrder.DESCENDING if is_descending else compute.SortOrder.ASCENDING
    compute.radix_sort(
        d_in_keys=keys, d_out_keys=None, d_in_values=values, d_out_values=None, num_items=3001, order=order
    )
    expected = np.argsort(-INTEGERS if is_descending else INTEGERS, kind="stable")
    np.testing.assert_array_equal(keys.current().copy_to_host(), INTEGERS[expected])
    np.testing.assert_array_equal(values.current().copy_to_host(), expected)


def test_merge_sort_by_an_operator(cuda: ModuleType, compute: ModuleType) -> None:
    out, moved = cuda.device_array(3001, np.int32), cuda.device_array(3001, np.int64)
    compute.merge_sort(
        d_in_keys=cuda.to_device(INTEGERS),
        d_in_values=compute.CountingIterator(np.int64(0)),
        d_out_keys=out,
        d_out_values=moved,
        num_items=3001,
        op=lambda a, b: abs(a) < abs(b),
    )
    expected = np.argsort(np.abs(INTEGERS), kind="stable")
    np.testing.assert_array_equal(moved.copy_to_host(), expected)
    np.testing.assert_array_equal(out.copy_to_host(), INTEGERS[expected])


@pytest.mark.long
def test_segmented_sort_leaves_gaps(cuda: ModuleType, compute: ModuleType) -> None:
    starts, ends = np.array([10, 500, 500]), np.array([400, 500, 2900])
    keys, values = cuda.to_device(np.zeros(3001, np.int32)), cuda.to_device(np.full(3001, -1))
    compute.segmented_sort(
        d_in_keys=cuda.to_device(INTEGERS),
        d_out_keys=keys,
        d_in_values=cuda.to_device(np.arange(3001)),
        d_out_values=values,
        num_items=3001,
        num_segments=3,
        start_offsets_in=cuda.to_device(starts),
        end_offsets_in=cuda.to_device(ends),
        order=compute.SortOrder.ASCENDING,
    )
    sorted_keys, origins = np.zeros(3001, np.int32), np.full(3001, -1)
    for start, end in zip(starts, ends, strict=True):
        origins[start:end] = start + np.argsort(INTEGERS[start:end], kind="stable")
        sorted_keys[start:end] = np.sort(INTEGERS[start:end])
    np.testing.assert_array_equal(keys.copy_to_host(), sorted_keys)
    np.testing.assert_array_equal(values.copy_to_host(), origins)


def test_tuples_of_a_zip_become_the_records_of_an_operator(cuda: ModuleType, compute: ModuleType) -> None:
    """Sums within segments that flags begin, by a scan of pairs."""
    part = compute.gpu_struct({"value": np.int64, "flag": np.int32})

    def follow(first: Any, second: Any) -> Any:
        value = second.value if second.flag else first.value + second.value
        return part(value, first.flag | second.flag)

    flags = (np.arange(3001) % 7 == 3).astype(np.int32)
    flags[0] = 1
    out = cuda.device_array(3001, part.dtype)
    pairs = compute.ZipIterator(cuda.to_device(INTEGERS.astype(np.int64)), cuda.to_device(flags))
    compute.inclusive_scan(d_in=pairs, d_out=out, op=follow, init_value=part(0, 0), num_items=3001)
    sums = np.concatenate([np.cumsum(one) for one in np.split(INTEGERS.astype(np.int64), np.nonzero(flags)[0][1:])])
    np.testing.assert_array_equal(out.copy_to_host()["value"], sums)


def test_inputs_of_two_axes(cuda: ModuleType, compute: ModuleType) -> None:
    source, out = cuda.to_device(INTEGERS[:3000].reshape(30, 100)), cuda.device_array(1, np.int32)
    given = {"d_out": out, "num_items": 3000, "op": compute.OpKind.MAXIMUM}
    compute.reduce_into(d_in=source, h_init=np.array([-99], np.int32), **given)
    assert out.copy_to_host()[0] == INTEGERS[:3000].max()


def test_a_condition_is_tried_once_for_each_value(cuda: ModuleType, compute: ModuleType) -> None:
    out, found, rejected = cuda.device_array(100, np.int32), cuda.device_array(1, np.int64), cuda.to_device(np.zeros(1))

    def is_even(x: Any) -> Any:
        if x % 2 == 0:
            return True
        cuda.atomic.add(rejected, 0, 1)
        return False

    source = cuda.to_device(np.arange(100, dtype=np.int32))
    compute.select(d_in=source, d_out=out, d_num_selected_out=found, cond=is_even, num_items=100)
    assert (found.copy_to_host()[0], rejected.copy_to_host()[0]) == (50, 50)
    np.testing.assert_array_equal(out.copy_to_host()[:50], np.arange(0, 100, 2))


@pytest.mark.parametrize("room", [3001, 2000])
def test_selection(cuda: ModuleType, compute: ModuleType, room: int) -> None:
    out, found = cuda.device_array(room, np.int32), cuda.device_array(1, np.uint64)
    compute.select(
        d_in=cuda.to_device(INTEGERS), d_out=out, d_num_selected_out=found, cond=lambda x: x > 3, num_items=3001
    )
    expected = INTEGERS[INTEGERS > 3]
    assert found.copy_to_host()[0] == len(expected)
    np.testing.assert_array_equal(out.copy_to_host()[: len(expected)], expected)


def test_three_way_partition(cuda: ModuleType, compute: ModuleType) -> None:
    outs = [cuda.device_array(3001, np.int32) for _ in range(3)]
    found = cuda.device_array(2, np.int64)
    compute.three_way_partition(
        d_in=cuda.to_device(INTEGERS),
        d_first_part_out=outs[0],
        d_second_part_out=outs[1],
        d_unselected_out=outs[2],
        d_num_selected_out=found,
        select_first_part_op=lambda x: x > 10,
        select_second_part_op=lambda x: x > 0,
        num_items=3001,
    )
    masks = INTEGERS > 10, (INTEGERS > 0) & (INTEGERS <= 10), INTEGERS <= 0
    np.testing.assert_array_equal(found.copy_to_host(), [masks[0].sum(), masks[1].sum()])
    for out, mask in zip(outs, masks, strict=True):
        np.testing.assert_array_equal(out.copy_to_host()[: mask.sum()], INTEGERS[mask])


def test_unique_keys_without_items(cuda: ModuleType, compute: ModuleType) -> None:
    keys = np.sort(INTEGERS)
    out, found = cuda.device_array(3001, np.int32), cuda.device_array(1, np.int32)
    compute.unique_by_key(
        d_in_keys=cuda.to_device(keys),
        d_in_items=compute.DiscardIterator(),
        d_out_keys=out,
        d_out_items=compute.DiscardIterator(),
        d_out_num_selected=found,
        op=compute.OpKind.EQUAL_TO,
        num_items=3001,
    )
    expected = np.unique(keys)
    assert found.copy_to_host()[0] == len(expected)
    np.testing.assert_array_equal(out.copy_to_host()[: len(expected)], expected)


def test_histogram_leaves_the_upper_level_out(cuda: ModuleType, compute: ModuleType) -> None:
    samples = np.array([0, 1, 5, 11.99, 12, 13, -1, 5], np.float32)
    out = cuda.device_array(6, np.int32)
    compute.histogram_even(
        d_samples=cuda.to_device(samples),
        d_histogram=out,
        num_output_levels=7,
        lower_level=np.float32(0),
        upper_level=np.float32(12),
        num_samples=8,
    )
    np.testing.assert_array_equal(out.copy_to_host(), [2, 0, 2, 0, 0, 1])


@pytest.mark.parametrize(("name", "side"), [("lower_bound", "left"), ("upper_bound", "right")])
def test_bounds(cuda: ModuleType, compute: ModuleType, name: str, side: Any) -> None:
    data, values = np.sort(INTEGERS), np.array([-60, -3, 0, 3, 60], np.int32)
    out = cuda.device_array(5, np.uint64)
    given = {"d_data": cuda.to_device(data), "d_values": cuda.to_device(values), "num_items": 3001, "num_values": 5}
    getattr(compute, name)(d_out=out, **given)
    np.testing.assert_array_equal(out.copy_to_host(), np.searchsorted(data, values, side))
    with pytest.raises(TypeError, match="unsigned"):
        getattr(compute, name)(d_out=cuda.device_array(5, np.int64), **given)


def test_output_iterators(cuda: ModuleType, compute: ModuleType) -> None:
    counting = compute.CountingIterator(np.int32(0))
    indices = np.array([9, 3, 7, 1, 5], np.int32)
    targets: list[tuple[Callable[[Any], Any], np.ndarray[Any, Any]]] = [
        (lambda values: compute.PermutationIterator(values, cuda.to_device(indices)), indices),
        (lambda values: compute.ReverseIterator(values), np.arange(9, 4, -1)),
    ]
    for make, places in targets:
        out = cuda.to_device(np.zeros(10, np.int32))
        compute.unary_transform(d_in=counting, d_out=make(out), op=lambda x: x * x, num_items=5)
        expected = np.zeros(10, np.int32)
        expected[places] = np.arange(5) ** 2
        np.testing.assert_array_equal(out.copy_to_host(), expected)


def test_arguments_that_do_not_fit(cuda: ModuleType, compute: ModuleType) -> None:
    source, out = cuda.to_device(INTEGERS), cuda.device_array(3001, np.int32)
    sort = {"d_in_keys": source, "d_out_keys": out, "num_items": 3001}
    with pytest.raises(AlgorithmError, match="begin_bit is 32; pass an integer from 0 to 31"):
        compute.radix_sort(order=compute.SortOrder.ASCENDING, begin_bit=32, **sort)
    with pytest.raises(AlgorithmError, match="order is 1"):
        compute.radix_sort(order=1, **sort)
    with pytest.raises(AlgorithmError, match="num_items is -1"):
        compute.unary_transform(d_in=source, d_out=out, op=compute.OpKind.NEGATE, num_items=-1)
    with pytest.raises(AlgorithmError, match="d_in has 3001 elements; 4000"):
        compute.unary_transform(d_in=source, d_out=out, op=compute.OpKind.NEGATE, num_items=4000)
    with pytest.raises(AlgorithmError, match="d_out has 3000 elements; 3001"):
        compute.unary_transform(d_in=source, d_out=out[:3000], op=compute.OpKind.NEGATE, num_items=3001)
    with pytest.raises(AlgorithmError, match="names no operator"):
        compute.unary_transform(d_in=source, d_out=out, op=compute.OpKind.STATELESS, num_items=4)
    with pytest.raises(TypeError, match="missing ones"):
        compute.make_select(d_in=source)


def test_names_that_are_not_there(compute: ModuleType) -> None:
    with pytest.raises(AlgorithmError, match=r"cuda\.compute\.serialize .*cuda\.jit"):
        compute.serialize(None)
    with pytest.raises(AttributeError, match="NumPy's dtypes"):
        compute.types  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match=r"numba\.hip\.block"):
        importlib.import_module("cuda.coop")
    with pytest.raises(ModuleNotFoundError, match="algorithms, iterators"):
        importlib.import_module("cuda.compute.nothing")


def test_modules_end_with_the_pose() -> None:
    with posing():
        older = importlib.import_module("cuda.cccl.parallel.experimental")
        assert importlib.import_module("cuda.compute.algorithms").select is older.select
    assert not [name for name in sys.modules if name.split(".")[0] == "cuda"]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("cuda.compute")


def test_posing_imports_no_algorithms(check: Callable[..., str]) -> None:
    check("""
        import sys
        import numba_hip_cuda
        numba_hip_cuda.pose_as_cuda()
        from numba import cuda
        assert "numba_hip_cuda.compute" not in sys.modules
        assert "numba_hip.algorithms" not in sys.modules
    """)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("inclusive_scan(given)", "np.cumsum(x)"),
        ("select(given, lambda v: v > 7)", "x[x > 7]"),
        ("sort(given)", "np.sort(x)"),
    ],
    ids=["scan", "select", "sort"],
)
@pytest.mark.sample(1)
def test_algorithms_have_the_waves_of_the_pose(check: Callable[..., str], call: str, expected: str) -> None:
    """Of 32 lanes while posing, and of 64 before and after; what was compiled for others is not taken."""
    check(f"""
        import numpy as np
        import numba_hip_cuda
        from numba_hip import algorithms, to_device

        x = np.random.default_rng(1).integers(-100, 100, 3001).astype(np.int32)

        def compare():
            given = to_device(x)
            np.testing.assert_array_equal(algorithms.{call}.copy_to_host(), {expected})

        compare()
        with numba_hip_cuda.posing():
            compare()
        compare()
    """)


@pytest.mark.parametrize("modifier", ["stream", "global", "volatile"])
@pytest.mark.sample(1)
def test_arrays_are_read_past_the_caches(cuda: ModuleType, compute: ModuleType, modifier: str) -> None:
    x, out = cuda.to_device(np.arange(700, dtype=np.int32)), cuda.device_array(1, np.int32)
    source = compute.CacheModifiedInputIterator(x, modifier)
    start = np.array([0], np.int32)
    compute.reduce_into(d_in=source, d_out=out, num_items=500, op=compute.OpKind.PLUS, h_init=start)
    assert out.copy_to_host()[0] == 499 * 250
    compute.reduce_into(d_in=source + 1, d_out=out, num_items=5, op=compute.OpKind.PLUS, h_init=start)
    assert out.copy_to_host()[0] == 15
    kept, found = cuda.device_array(500, np.int32), cuda.device_array(1, np.int64)
    compute.select(d_in=source, d_out=kept, d_num_selected_out=found, cond=lambda value: value % 2 == 1, num_items=500)
    assert found.copy_to_host()[0] == 250
    with pytest.raises(ValueError, match="modifier is 'none'"):
        compute.CacheModifiedInputIterator(x, "none")
