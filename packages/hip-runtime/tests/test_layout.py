"""Shape and stride arithmetic, compared with NumPy's."""

from __future__ import annotations

import re

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
    made = layout.dense(shape, itemsize, order)
    same(made, np.empty(shape, f"V{itemsize}", order=order))  # type: ignore[call-overload]
    found = Layout(made.shape, made.strides, itemsize)  # which knows nothing yet
    for name in ("size", "extent", "is_c_contiguous", "is_f_contiguous", "nbytes"):
        assert getattr(made, name) == getattr(found, name), name


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


@pytest.mark.parametrize(
    ("key", "shape", "strides", "offset"),
    [
        ((1, ..., 2, 3), (), (), 23),
        ((..., 1), (2, 3), (12, 4), 1),
        ((1, ...), (3, 4), (4, 1), 12),
        ((..., 2, slice(1, None, 2)), (2, 2), (12, 2), 9),
        ((slice(None), None, 1), (2, 1, 4), (12, 0, 1), 4),
        ((None, ..., None), (1, 2, 3, 4, 1), (0, 12, 4, 1, 0), 0),
        (slice(None, None, -1), (2, 3, 4), (-12, 4, 1), 12),
        ((-1, -3, slice(-2, None)), (2,), (1,), 14),
        ((slice(5, 9), 2), (0, 4), (12, 1), 8),
        ((0, 0, slice(3, 0, -2)), (2,), (-2,), 3),
        ((slice(0, 2, 1 << 62),), (1, 3, 4), (12, 4, 1), 0),  # a step that leads nowhere
        ((..., slice(0, 2, 1 << 63)), (2, 3, 1), (12, 4, 1), 0),
        ((), (2, 3, 4), (12, 4, 1), 0),
        (..., (2, 3, 4), (12, 4, 1), 0),
    ],
)
def test_indices_by_example(key: object, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> None:
    assert layout.index(layout.dense((2, 3, 4), 1), key) == (Layout(shape, strides, 1), offset)


def test_layouts_by_example() -> None:
    matrix = layout.dense((2, 3), 4)
    assert matrix == layout.dense((2, 3), 4, "C") == Layout((2, 3), (12, 4), 4)
    assert layout.dense((2, 0, 3), 4) == Layout((2, 0, 3), (12, 12, 4), 4)
    assert layout.dense((2, 3), 4, "F") == Layout((2, 3), (4, 8), 4)
    assert layout.dense_like(Layout((2, 3, 4), (-8, 400, 64), 4)) == Layout((2, 3, 4), (4, 32, 8), 4)
    assert layout.broadcast(Layout((3, 1), (4, 9), 4), (2, 3, 5)) == Layout((2, 3, 5), (0, 4, 0), 4)
    assert layout.broadcast(Layout((1,), (9,), 4), (1,)) == Layout((1,), (9,), 4)
    assert layout.append(matrix, (2, 2), 1) == Layout((2, 3, 2, 2), (12, 4, 2, 1), 1)
    assert layout.reinterpret(layout.dense((2, 2, 3), 4), 2) == Layout((2, 2, 6), (24, 12, 2), 2)
    assert layout.reinterpret(matrix, 12) == Layout((2, 1), (12, 12), 12)
    assert layout.reinterpret(Layout((2, 1), (12, 9), 4), 2) == Layout((2, 2), (12, 2), 2)
    assert layout.reinterpret(Layout((0, 3), (12, 9), 4), 2) == Layout((0, 6), (12, 2), 2)
    assert layout.transpose(layout.dense((2, 3, 4), 1), (2, 0, -2)) == Layout((4, 2, 3), (1, 12, 4), 1)
    assert layout.transpose(matrix) == Layout((3, 2), (4, 12), 4)
    assert layout.squeeze(Layout((1, 3, 1), (7, 4, 5), 4)) == Layout((3,), (4,), 4)
    assert layout.squeeze(Layout((1, 3, 1), (7, 4, 5), 4), -1) == Layout((1, 3), (7, 4), 4)
    assert layout.reshape(matrix, (3, -1)) == Layout((3, 2), (8, 4), 4)
    assert layout.reshape(layout.transpose(matrix), (-1,), "F") == Layout((6,), (4,), 4)
    numbers = layout.reshape(matrix, (3, -1)).shape + layout.reinterpret(matrix, 2).shape
    assert {type(number) for number in numbers} == {int}
    strided = Layout((2, 3), (99, 7), 4)
    assert layout.reshape(strided, (2, 3)) is strided
    assert [layout.check_axis(axis, 3) for axis in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    for axis in (-4, 3):
        with pytest.raises(ArrayError, match=f"^axis {axis} is out of bounds for array of dimension 3$"):
            layout.check_axis(axis, 3)


@pytest.mark.parametrize("shape", [3, (3,), [3], np.array([3]), np.int8(3), np.array(3), range(3, 4)])
def test_shapes_are_whole_numbers(shape: object) -> None:
    assert layout.normalise_shape(shape) == layout.normalise_strides(shape, 1) == (3,)


def test_words_about_numbers() -> None:
    assert layout.normalise_shape((0, 2)) == (0, 2)
    assert layout.normalise_shape(()) == ()
    assert layout.normalise_strides((-4, 0), 2) == (-4, 0)
    with pytest.raises(ArrayError, match=r"^shape \(2, -1\) has a negative extent; each must be 0 or more$"):
        layout.normalise_shape((2, -1))
    with pytest.raises(ArrayError, match=r"^strides must be whole numbers of bytes, not 'a'$"):
        layout.normalise_strides("a", 1)
    with pytest.raises(ArrayError, match=r"^strides \(4, 8\) are for 2 axes; the shape has 1$"):
        layout.normalise_strides((4, 8), 1)
    most = 1 << 63
    with pytest.raises(ArrayError, match=r"^shape\[1\] of it has 64 bits; at most 63 are possible$"):
        layout.check_numbers(Layout((0, most), (0, 0), 1), "of it")
    with pytest.raises(ArrayError, match=r"^strides\[0\] has 64 bits"):
        layout.check_numbers(Layout((1,), (-most,), 1))
    says = rf"^shape \({most >> 2},\) of it with elements of 4 bytes is larger than any address space$"
    with pytest.raises(ArrayError, match=says):
        layout.check_numbers(Layout((most >> 2,), (4,), 4), "of it")
    layout.check_numbers(Layout(((most >> 2) - 1,), (1 - most,), 4))
    with pytest.raises(ArrayError, match=r"^shape \(\d+,\) with elements"):
        layout.check_numbers(Layout((most >> 2,), (4,), 4))


class OneElement:
    """An array of another library with one axis of one element, which it takes for a number."""

    ndim = 1

    def __index__(self) -> int:
        return 1


def test_words_about_indices() -> None:
    matrix = layout.dense((2, 3), 4)
    for key, says in [
        ((0, 0, 0), "^3 indices given for an array of 2 dimensions$"),
        ((..., ...), r"^an index can have only one '\.\.\.'$"),
        ((0, 3), r"^index 3 is out of range for axis 1 of shape \(2, 3\)$"),
        ((slice(None), None, -4), r"^index -4 is out of range for axis 1 of shape \(2, 3\)$"),
        (slice(None, None, 0), r"^slice\(None, None, 0\): slice step cannot be zero$"),
        (OneElement(), "OneElement .* cannot index a device array"),
        (True, "^True cannot index a device array: use integers"),
    ]:
        with pytest.raises(ArrayError, match=says):
            layout.index(matrix, key)
    for target, says in [
        ((-1, -1), r"^new shape \(-1, -1\) has more than one -1$"),
        ((4, -1), r"^an array of shape \(2, 3\) has 6 elements; it does not fit shape \(4, -1\)$"),
        ((-2, -3), r"^an array of shape \(2, 3\) has 6 elements; it does not fit shape \(-2, -3\)$"),
    ]:
        with pytest.raises(ArrayError, match=says):
            layout.reshape(matrix, target)
    with pytest.raises(ArrayError, match=r"^axis 1 has extent 3 in shape \(2, 3\); only 1 is squeezed$"):
        layout.squeeze(matrix, 1)
    for target in ((3,), (3, 3), (2, 2)):
        with pytest.raises(ArrayError, match=rf"^shape .* cannot be broadcast to shape {re.escape(str(target))}$"):
            layout.broadcast(matrix, target)
    with pytest.raises(ArrayError, match="cannot be broadcast"):
        layout.broadcast(layout.dense((3, 3), 4), (2, 3))
    with pytest.raises(ArrayError, match=r"^order must be 'C' or 'F', not 'A'$"):
        layout.dense((2,), 4, "A")
