"""Shapes and strides without memory, as ``numba.cuda.cudadrv.dummyarray`` has them, beside NumPy's arrays."""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Any

import numpy as np
import pytest

START = 1 << 12


@pytest.fixture
def dummyarray(cuda: ModuleType) -> ModuleType:
    from numba.cuda.cudadrv import dummyarray

    return dummyarray


def check(found: Any, expected: np.ndarray[Any, Any]) -> None:
    assert (found.shape, found.size, found.ndim) == (expected.shape, expected.size, expected.ndim)
    assert found.strides == expected.strides or not found.size
    assert found.flags == {name: expected.flags[name] for name in ("C_CONTIGUOUS", "F_CONTIGUOUS")}


def places(array: np.ndarray[Any, Any], base: np.ndarray[Any, Any]) -> set[int]:
    """The bytes of *array*, counted as if *base* were at `START`."""
    first = START + array.ctypes.data - base.ctypes.data
    starts = (
        first + sum(i * stride for i, stride in zip(place, array.strides, strict=True))
        for place in np.ndindex(array.shape)
    )
    return {start + byte for start in starts for byte in range(array.itemsize)}


@pytest.mark.parametrize("shape", [(4,), (4, 5), (2, 3, 4), (3, 1, 2), (0, 3)])
def test_parts_are_those_of_numpy(dummyarray: ModuleType, shape: tuple[int, ...]) -> None:
    host = np.empty(shape, np.int16)
    array = dummyarray.Array.from_desc(START, host.shape, host.strides, host.itemsize)
    check(array, host)
    steps = (slice(None), slice(1, None), slice(None, None, -2), slice(-1, 0, -1), 0 if host.size else slice(0))
    for key in itertools.product(steps, repeat=len(shape)):
        expected = host[key]
        found = array[key]
        if not found.is_array:
            assert dummyarray.is_element_indexing(key, len(shape))
            assert list(found.iter_contiguous_extent()) == [found.extent]
            assert found.extent.begin == START + np.ravel_multi_index(key, shape) * 2 == found.extent.end - 2
            continue
        check(found, expected)
        pieces = list(found.iter_contiguous_extent())
        covered = {byte for begin, end in pieces for byte in range(begin, end)}
        assert covered == places(expected, host)
        assert all(found.extent.begin <= begin <= end <= found.extent.end for begin, end in pieces)


def test_other_shapes(dummyarray: ModuleType) -> None:
    host = np.empty((3, 1, 4))
    array = dummyarray.Array.from_desc(START, host.shape, host.strides, host.itemsize)
    for shape in ((12,), (4, 3), (-1, 6), (2, -1, 3)):
        for given in (shape, (shape,)):
            found, pieces = array.reshape(*given)
            check(found, host.reshape(shape))
            assert pieces == [array.extent]
    check(array.squeeze()[0], host.squeeze())
    check(array.squeeze(axis=1)[0], host.squeeze(1))
    check(array.ravel()[0], host.ravel())
    moved, pieces = array[::2].ravel()
    assert (moved.shape, moved.is_c_contig, len(pieces)) == ((8,), True, 2)
    for call, words in (
        (lambda: array.reshape(-1, -1), "can only specify one unknown dimension"),
        (lambda: array.reshape(-1, 7), "cannot infer valid shape for unknown dimension"),
        (lambda: array.reshape(5), "does not fit"),
        (lambda: array[::2].reshape(8), "without a copy"),
        (lambda: array.squeeze(axis=0), "only 1 is squeezed"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    assert [part.extent.begin for part in array] == [START, START + 32, START + 64]
    with pytest.raises(IndexError):
        array[3]
