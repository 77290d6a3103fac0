"""Arrays of wider integers for the only signature of a kernel: refused, or narrowed with a warning where asked for."""

import gc
import warnings

import numpy as np
import pytest
from numba.core.errors import NumbaWarning

import numba_hip as hip
from numba_hip import config
from numba_hip.errors import KernelArgumentError

WIDER = [np.uint16, np.int32, np.uint32, np.int64, np.uint64]


@pytest.fixture(scope="module")
def copy():
    @hip.jit("void(int16[:,:], int16[:,:])")
    def copy(source, target):
        row, column = hip.grid(2)
        if row < source.shape[0] and column < source.shape[1]:
            target[row, column] = source[row, column]

    return copy


def numbers(kind):
    """Whole numbers of type *kind*, of which many have no room in an int16."""
    return (np.arange(35, dtype=np.int64).reshape(5, 7) * 7919 - 60000).astype(kind)


def arranged(array):
    return [array, array[::-2, 1::2], array.T, np.asfortranarray(array), hip.to_device(array), hip.to_device(array)[1:]]


@pytest.mark.parametrize("kind", WIDER, ids=lambda kind: kind.__name__)
def test_the_low_bytes_are_read_at_the_strides_of_the_array(copy, kind):
    with config.truncate_arguments.scope(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaWarning)
        for source in arranged(numbers(kind)):
            target = np.zeros(source.shape, np.int16)
            copy[(1, 1), (8, 8)](source, target)
            np.testing.assert_array_equal(target, np.asarray(source).astype(np.int16))


@pytest.mark.parametrize("kind", [np.int32, np.uint64], ids=lambda kind: kind.__name__)
def test_what_is_above_the_low_bytes_stays(copy, kind):
    source, target = numbers(np.int16), numbers(kind) * 1_000_003
    expected = target.copy()
    expected.view(np.int16)[:, :: expected.itemsize // 2] = source
    around = np.full((7, 9), 77, kind)
    inner = around[1:-1, 1:-1]
    inner[:] = target
    with config.truncate_arguments.scope(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaWarning)
        copy[(1, 1), (8, 8)](source, inner)
    np.testing.assert_array_equal(inner, expected)
    assert (around == 77).sum() == around.size - inner.size


def test_the_warning_comes_once():
    @hip.jit("void(int32[:])")
    def increment(values):
        values[hip.grid(1)] += 1

    says = r"argument 'values' of kernel increment has elements of type int64, .* compiled for array\(int32, 1d, A\)"
    with config.truncate_arguments.scope(True):
        with pytest.warns(NumbaWarning, match=says) as told:
            increment[1, 4](np.zeros(4, np.int64))
        assert [warning.filename for warning in told] == [__file__]
        for _ in range(3):
            gc.collect()  # the type of the array, too
            increment[1, 4](np.zeros(4, np.int64))
    assert len(increment._loaded) == 2  # by its own types, and by those that were passed


def test_it_is_refused_otherwise(copy):
    fine = numbers(np.int16)
    with pytest.raises(KernelArgumentError, match=r"No matching def.*'target' has elements of type int64: .* to int16"):
        copy[(1, 1), (8, 8)](fine, numbers(np.int64))
    with config.truncate_arguments.scope(True):
        for kind in (np.int8, np.uint8, np.float64, np.bool_):  # shorter ones end too early
            with pytest.raises(KernelArgumentError, match=r"Argument 'source' has elements of type"):
                copy[(1, 1), (8, 8)](numbers(kind), numbers(np.int64))
        with pytest.raises(KernelArgumentError, match="No matching definition"):
            copy[1, 8](np.zeros(3, np.int64), np.zeros(3, np.int64))
        fixed = numbers(np.int64)
        fixed.flags.writeable = False
        with pytest.raises(KernelArgumentError, match="'source' is one, .* pass source.copy"):
            copy[(1, 1), (8, 8)](fixed, fine)


@pytest.mark.parametrize("signatures", ["void(int16[::1])", ["void(int16[:])", "void(int16[:, :])"]])
def test_elements_side_by_side_and_several_signatures_are_not_narrowed(signatures):
    @hip.jit(signatures)
    def kernel(values):
        pass

    with config.truncate_arguments.scope(True), pytest.raises(KernelArgumentError, match="No matching definition"):
        kernel[1, 1](np.zeros(3, np.int64))
