"""Elements of arrays of any layout, by indices of any integer type, counted from either end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numba_hip as hip

KINDS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
VIEWS = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "reversed": lambda a: a[::-1, :, ::-1],
    "parts": lambda a: np.repeat(np.repeat(a, 2, axis=0), 3, axis=2)[::2, :, 1::3],
    "transposed": lambda a: a.transpose(1, 0, 2).copy().transpose(1, 0, 2),
}


@hip.jit
def exchange(array, i, j, k, value, found):
    found[0] = array[i, j, k]
    array[i, j, k] = value
    found[1] = hip.atomic.add(array, (i, j, k), 1)


@pytest.mark.sample(1)
@pytest.mark.parametrize("view", VIEWS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_an_element_is_the_one_that_numpy_finds(view, data):
    shape = data.draw(st.tuples(*[st.integers(1, 4)] * 3))
    host = VIEWS[view](np.arange(1, 1 + np.prod(shape), dtype=np.int32).reshape(shape))
    device = hip.to_device(host)
    kind = data.draw(st.sampled_from(KINDS))
    low = 0 if np.dtype(kind).kind == "u" else None
    index = tuple(data.draw(st.integers(-size if low is None else low, size - 1)) for size in shape)
    found = np.zeros(2, np.int32)
    exchange[1, 1](device, *map(kind, index), 100, found)
    assert found.tolist() == [host[index], 100]
    wanted = host.copy()
    wanted[index] = 101
    np.testing.assert_array_equal(device.copy_to_host(), wanted)


@hip.jit
def rows(array, target):
    i = hip.threadIdx.x
    target[i] = array[i - 1]
    target[i, 0] += array[-1][i - 2] + array[(i, 1)]
    target[i][2] = array[2, -3:][i - 1]


def test_parts_of_arrays_are_read_and_written():
    source, target = np.arange(1.0, 10.0).reshape(3, 3), np.zeros((3, 3))
    rows[1, 3](source, target)
    i = np.arange(3)
    wanted = source[i - 1]
    wanted[:, 0] += source[-1, i - 2] + source[i, 1]
    wanted[:, 2] = source[2, i - 1]
    np.testing.assert_array_equal(target, wanted)


@hip.jit
def single(point, numbers, found):
    point[()] = numbers[-1] + point[()]
    found[np.uint8(0)] = numbers[np.uint64(1)]


def test_arrays_without_dimensions_and_unsigned_constants():
    point, found = hip.to_device(np.array(5.0)), np.zeros(1)
    single[1, 1](point, np.array([1.0, 2.0, 3.0]), found)
    assert point.copy_to_host() == 8.0
    assert found[0] == 2.0


@hip.jit
def one_row(array, total):
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            total[0] += array[i, j]


def test_steps_of_axes_with_one_element_do_not_matter():
    wide = np.lib.stride_tricks.as_strided(np.arange(4.0), (1, 4), (8 * 10**9, 8))
    high = np.lib.stride_tricks.as_strided(np.arange(4.0), (4, 1), (8, 8 * 10**9))
    for array in (wide, high):
        total = np.zeros(1)
        one_row[1, 1](array, total)
        assert total[0] == 6.0


def permute(array, axes, by_tuple, by_numbers, by_function, by_variable):
    tuple_view, numbers, function = (
        array.transpose((2, 0, 1)),
        array.transpose(2, 0, 1),
        np.transpose(array, (-1, 0, 1)),
    )
    variable = array.transpose(axes)
    for i in range(tuple_view.shape[0]):
        for j in range(tuple_view.shape[1]):
            for k in range(tuple_view.shape[2]):
                by_tuple[i, j, k], by_numbers[i, j, k] = tuple_view[i, j, k], numbers[i, j, k]
                by_function[i, j, k] = function[i, j, k]
    for i in range(variable.shape[0]):
        for j in range(variable.shape[1]):
            for k in range(variable.shape[2]):
                by_variable[i, j, k] = variable[i, j, k]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.sample(1)
def test_axes_in_another_order(view):
    host = VIEWS[view](np.arange(24).reshape(2, 3, 4))
    found = [np.zeros(host.transpose(2, 0, 1).shape, int) for _ in range(3)]
    turned = np.zeros(host.transpose(1, 2, 0).shape, int)
    hip.jit(permute)[1, 1](host, (1, 2, 0), *found, turned)
    for one in found:
        np.testing.assert_array_equal(one, host.transpose(2, 0, 1))
    np.testing.assert_array_equal(turned, host.transpose(1, 2, 0))


@pytest.mark.parametrize("axes", [(0, 0, 1), (0, 1, 3), (-4, 1, 2)])
@pytest.mark.sample(2)
def test_axes_that_are_no_order_of_those_of_the_array(axes):
    found = [np.zeros((4, 2, 3), int) for _ in range(4)]
    with pytest.raises(ValueError, match="axes don't match array"):
        hip.jit(permute)[1, 1](np.zeros((2, 3, 4), int), axes, *found)


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_known_axes_cost_nothing_on_amd_gpus(target):
    def kernel(array, out):
        i = hip.grid(1)
        out[i] = array.transpose((2, 0, 1))[0, 0, i]

    assembly, _ = hip.compile(kernel, "(int32[:, :, ::1], int32[::1])", target=target, output="asm")
    assert "scratch_" not in assembly
    assert "ScratchSize: 0" in assembly or "private_segment_fixed_size: 0" in assembly
