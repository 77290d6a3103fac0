"""Elements that neighbouring threads share: larger pictures, packed numbers, scales of groups, each third number."""

import numpy as np
import pytest

import numba_hip as hip

COUNT, THREADS = 5003, 96


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("times", [2, 3, 4])
@pytest.mark.parametrize("kind", ["u1", "i2", "f4", "f8"])
@pytest.mark.sample(6)
def test_larger_pictures(kind, times, order):
    @hip.jit
    def enlarge(picture, out):
        y, x = hip.grid(2)
        if y < out.shape[0] and x < out.shape[1]:
            out[y, x] = picture[y // times, x // times]

    picture = np.asarray(np.random.default_rng(times).integers(0, 200, (31, 47)), kind, order)
    wanted = picture.repeat(times, axis=0).repeat(times, axis=1)[:, : 47 * times - 1]
    out = np.zeros(wanted.shape, kind, order)
    enlarge[(out.shape[0] // 16 + 1, out.shape[1] // 16 + 1), (16, 16)](picture, out)
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("group", [5, 16, 32])
def test_packed_numbers_with_scales(group):
    @hip.jit
    def unpack(packed, scales, out):
        i = hip.grid(1)
        if i < out.size:
            out[i] = ((packed[i // 2] >> (4 * (i % 2))) & 15) * scales[i // group]

    random = np.random.default_rng(group)
    packed = random.integers(0, 256, COUNT // 2 + 1).astype(np.uint8)
    scales = random.random(COUNT // group + 1).astype(np.float32)
    out = np.zeros(COUNT, np.float32)
    unpack[COUNT // THREADS + 1, THREADS](packed, scales, out)
    numbers = np.stack([packed & 15, packed >> 4], axis=1).ravel()[:COUNT]
    np.testing.assert_array_equal(out, numbers * scales.repeat(group)[:COUNT])


@pytest.mark.parametrize(("step", "divisor"), [(1, 3), (2, 3), (1, 7), (5, 6), (1, 2)])
@pytest.mark.parametrize("shift", [0, 1, -4])
@pytest.mark.sample(6)
def test_quotients_in_a_loop(step, divisor, shift):
    """Each thread steps over the grid; some do not load, and may be below zero."""

    @hip.jit
    def copy(data, flags, out, rests):
        for i in range(hip.grid(1), out.size, hip.gridsize(1)):
            rests[i] = (step * i + shift) % divisor
            if flags[i] and step * i + shift >= 0:
                out[i] = data[(step * i + shift) // divisor]

    random = np.random.default_rng(divisor)
    numbers = step * np.arange(COUNT) + shift
    data = random.random(numbers.max() // divisor + 1)
    flags = random.random(COUNT) < 0.8
    out, rests = np.zeros(COUNT), np.zeros(COUNT, np.int64)
    copy[7, THREADS](data, flags, out, rests)
    taken = flags & (numbers >= 0)
    np.testing.assert_array_equal(out, np.where(taken, data[numbers // divisor], 0))
    np.testing.assert_array_equal(rests, numbers % divisor)
