"""Shape and stride arithmetic, compared with NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hip_runtime import ArrayError, ArrayIndexError, layout
from hip_runtime.layout import Layout

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def layout_of(array: np.ndarray) -> Layout:
    return Layout(array.shape, array.strides, array.itemsize)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    """Arrays of any layout: a slice of a transpose of a contiguous array."""
    shape = draw(SHAPES)
    array = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    array = array.transpose(draw(st.permutations(range(array.ndim))))
    return as_view(array, draw(hnp.basic_indices(array.shape, allow_ellipsis=True, allow_newaxis=True)))


def as_view(array: np.ndarray, key: object) -> np.ndarray:
    """``array[key]``, but an array without dimensions instead of a number."""
    parts = key if isinstance(key, tuple) else (key,)
    return array[parts if any(part is Ellipsis for part in parts) else (*parts, ...)]


def same(found: Layout, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    assert found.itemsize == expected.itemsize
    if expected.size:
        for extent, one, other in zip(found.shape, found.strides, expected.strides, strict=True):
            assert extent == 1 or one == other


def offset_of(view: np.ndarray, base: np.ndarray) -> int:
    return view.__array_interface__["data"][0] - base.__array_interface__["data"][0]


@given(SHAPES, st.sampled_from("CF"), st.sampled_from([1, 4, 24]))
def test_dense(shape: tuple[int, ...], order: str, itemsize: int) -> None:
    same(layout.dense(shape, itemsize, order), np.empty(shape, f"V{itemsize}", order=order))  # type: ignore[call-overload]


@given(arrays())
def test_dense_like(array: np.ndarray) -> None:
    same(layout.dense_like(layout_of(array)), np.empty_like(array, order="K"))


@given(arrays())
def test_properties(array: np.ndarray) -> None:
    found = layout_of(array)
    assert (found.ndim, found.size, found.nbytes) == (array.ndim, array.size, array.nbytes)
    assert found.is_c_contiguous == array.flags.c_contiguous
    assert found.is_f_contiguous == array.flags.f_contiguous
    low, high = np.lib.array_utils.byte_bounds(array) if hasattr(np.lib, "array_utils") else np.byte_bounds(array)
    start = array.__array_interface__["data"][0]
    assert found.extent == ((low - start, high - start) if array.size else (0, 0))
    assert not found.overlaps_itself


@given(st.data(), arrays())
def test_index(data: st.DataObject, array: np.ndarray) -> None:
    key = data.draw(hnp.basic_indices(array.shape, allow_ellipsis=True, allow_newaxis=True))
    found, offset = layout.index(layout_of(array), key)
    expected = as_view(array, key)
    same(found, expected)
    if expected.size:
        assert offset == offset_of(expected, array)


@given(st.data(), SHAPES, st.sampled_from("CF"))
def test_reshape_of_contiguous_arrays(data: st.DataObject, shape: tuple[int, ...], order: str) -> None:
    array = np.empty(shape, np.int16, order=order)  # type: ignore[call-overload]
    target = data.draw(SHAPES)
    assume(len(target) < 5)
    if int(np.prod(target)) == array.size:
        same(layout.reshape(layout_of(array), target, order), array.reshape(target, order=order))  # type: ignore[call-overload]
    else:
        with pytest.raises(ArrayError, match="elements; it does not fit shape"):
            layout.reshape(layout_of(array), target, order)


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [((6, 4), (-1,), (24,)), ((6, 4), (3, -1), (3, 8)), ((0, 4), (-1, 4), (0, 4)), ((), (1, -1), (1, 1))],
)
def test_reshape_infers_one_extent(shape: tuple[int, ...], target: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert layout.reshape(layout.dense(shape, 4), target).shape == expected


@pytest.mark.parametrize("target", [(-1, -1), (5, -1), (-2, -12), (25,), (0, -1)])
def test_reshape_to_what_does_not_fit(target: tuple[int, ...]) -> None:
    with pytest.raises(ArrayError):
        layout.reshape(layout.dense((6, 4), 4), target)


def test_reshape_would_need_a_copy() -> None:
    with pytest.raises(ArrayError, match="without a copy"):
        layout.reshape(layout.transpose(layout.dense((6, 4), 4)), (24,))
    with pytest.raises(ArrayError, match="order must be"):
        layout.reshape(layout.dense((6, 4), 4), (24,), "K")


@given(st.data(), arrays())
def test_transpose_and_squeeze(data: st.DataObject, array: np.ndarray) -> None:
    axes = data.draw(st.one_of(st.none(), st.permutations(range(-array.ndim, 0)) if array.ndim else st.none()))
    same(layout.transpose(layout_of(array), axes), array.transpose(axes))
    same(layout.squeeze(layout_of(array)), array.squeeze())
    for axis, extent in enumerate(array.shape):
        if extent == 1:
            same(layout.squeeze(layout_of(array), axis - array.ndim), array.squeeze(axis))
        else:
            with pytest.raises(ArrayError, match=f"axis {axis} has extent {extent}"):
                layout.squeeze(layout_of(array), axis)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ((0,), "not a permutation of the 2 axes"),
        ((0, 1, 2), "not a permutation of the 2 axes"),
        ((0, 0), "repeated axis"),
        ((0, 2), "axis 2 is out of bounds for array of dimension 2"),
    ],
)
def test_transpose_needs_a_permutation(axes: tuple[int, ...], message: str) -> None:
    with pytest.raises(ArrayError, match=message):
        layout.transpose(layout.dense((2, 3), 4), axes)


@given(arrays(), SHAPES)
def test_broadcast(array: np.ndarray, shape: tuple[int, ...]) -> None:
    try:
        expected = np.broadcast_to(array, shape)
    except ValueError:
        with pytest.raises(ArrayError, match="cannot be broadcast"):
            layout.broadcast(layout_of(array), shape)
    else:
        same(layout.broadcast(layout_of(array), shape), expected)


@given(arrays(), st.sampled_from(["u1", "i2", "f4", "f8", "V12"]))
def test_reinterpret(array: np.ndarray, dtype: str) -> None:
    try:
        expected = array.view(dtype)
    except ValueError:
        with pytest.raises(ArrayError):
            layout.reinterpret(layout_of(array), np.dtype(dtype).itemsize)
    else:
        same(layout.reinterpret(layout_of(array), np.dtype(dtype).itemsize), expected)


@pytest.mark.parametrize(
    ("strides", "overlaps"),
    [((4, 4), True), ((0, 4), True), ((12, 4), False), ((4, 8), False), ((-12, 4), False), ((8, 2), True)],
)
def test_overlap(strides: tuple[int, int], overlaps: bool) -> None:
    assert Layout((2, 3), strides, 4).overlaps_itself is overlaps


@pytest.mark.parametrize(
    ("shape", "strides", "overlaps"),
    [
        ((0, 2), (0, 0), False),
        ((1, 2), (0, 4), False),
        ((1, 1), (0, 0), False),
        ((2,), (0,), True),
        ((2, 2), (4, 6), True),  # the first axis ends within the second element
        ((2, 2), (4, 8), False),
        ((2, 2, 2), (4, 8, 12), True),  # (1, 1, 0) is (0, 0, 1)
        ((2, 2, 2), (4, 8, 16), False),
        ((2, 2), (-8, -4), False),
    ],
)
def test_overlap_of_few_elements(shape: tuple[int, ...], strides: tuple[int, ...], overlaps: bool) -> None:
    assert Layout(shape, strides, 4).overlaps_itself is overlaps


@pytest.mark.parametrize("shape", [-1, (2, -3), "ab", 2.5, (1, None), [[1]]])
def test_shapes_that_cannot_be(shape: object) -> None:
    with pytest.raises(ArrayError, match="shape"):
        layout.normalise_shape(shape)


@pytest.mark.parametrize("key", [6, -7, (0, 4), np.int64(6)])
def test_index_out_of_range(key: object) -> None:
    with pytest.raises(ArrayIndexError, match=r"out of range for axis \d of shape \(6, 4\)"):
        layout.index(layout.dense((6, 4), 4), key)


@pytest.mark.parametrize(
    "key",
    [1.5, "a", True, np.array([1, 2]), (slice(0, 2, 0),), (0, 0, 0), (..., ...), (np.True_,), slice("a")],
    ids=repr,
)
def test_index_of_a_kind_that_is_not_supported(key: object) -> None:
    with pytest.raises(ArrayError):
        layout.index(layout.dense((6, 4), 4), key)
