"""``hip.wave``: what the lanes of a wave compute together, for values of every kind."""

import operator
from collections import namedtuple
from types import FunctionType

import numpy as np
import pytest
from numba.core.errors import TypingError

import numba_hip as hip
from numba_hip import config

Affine = namedtuple("Affine", "slope shift")


@hip.jit(device=True)
def after(first, second):
    """*first* and then *second*, which are x -> slope * x + shift: not commutative."""
    return Affine(np.float32(first.slope * second.slope), np.float32(second.slope * first.shift + second.shift))


@hip.jit
def combine(x, count, out):
    i = hip.threadIdx.x
    out[i, 0] = hip.wave.reduce(x[i], operator.add, count)
    out[i, 1] = hip.wave.inclusive_scan(x[i], operator.add)
    out[i, 2] = hip.wave.exclusive_scan(x[i], max, -5)
    out[i, 3] = hip.wave.inclusive_scan(Affine(np.float32(0.5), x[i]), after).shift
    below, all_of_them = hip.wave.rank(x[i] > 3)
    out[i, 4], out[i, 5] = below, all_of_them
    out[i, 6] = hip.wave.aggregate_of(hip.wave.inclusive_scan(x[i], np.minimum))


def test_lanes_are_combined_in_their_order():
    lanes = hip.get_current_device().WARP_SIZE
    x = np.random.default_rng(1).integers(0, 9, lanes).astype(np.float32)
    out = np.zeros((lanes, 7))
    combine[1, lanes](x, 20, out)
    assert (out[:, 0] == x[:20].sum()).all()
    np.testing.assert_array_equal(out[:, 1], np.cumsum(x))
    np.testing.assert_array_equal(out[:, 2], np.maximum.accumulate([-5, *x[:-1]]))
    followed = [0.0]
    for number in x:
        followed.append(followed[-1] / 2 + number)
    np.testing.assert_allclose(out[:, 3], followed[1:], rtol=1e-6)
    np.testing.assert_array_equal(out[:, 4], np.cumsum(x > 3) - (x > 3))
    assert (out[:, 5] == (x > 3).sum()).all()
    assert (out[:, 6] == x.min()).all()


@pytest.mark.long
@pytest.mark.parametrize("dtype", "? i1 u1 i2 f2 i4 u4 f4 i8 u8 f8 c8 c16 M8[s]".split())
def test_values_of_every_type_are_exchanged(dtype):
    @hip.jit
    def exchange(x, out):
        i = hip.threadIdx.x
        out[0, i] = hip.wave.shuffle(x[i], 3)
        out[1, i] = hip.wave.shuffle_up(x[i], 2)
        out[2, i] = hip.wave.shuffle_down((x[i], i), 2)[0]
        out[3, i] = hip.wave.shuffle_xor(x[i], 1)
        out[4, i] = hip.wave.broadcast(x[i], 5)

    lanes = hip.get_current_device().WARP_SIZE
    x = np.random.default_rng(2).integers(0, 100, lanes).astype(dtype)
    out = np.zeros((5, lanes), dtype)
    exchange[1, lanes](x, out)
    place = np.arange(lanes)
    above = np.where(place + 2 < lanes, place + 2, place) % lanes
    for row, source in enumerate([np.full(lanes, 3), np.where(place < 2, place, place - 2), above, place ^ 1]):
        np.testing.assert_array_equal(out[row], x[source])
    assert (out[4] == x[5]).all()


MASKS = [1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 31]


@pytest.mark.parametrize("dtype", ["f8", "u2"])
@pytest.mark.sample(1)
def test_distances_that_are_constants(dtype):
    """AMD GPUs have other instructions for these than for distances that are known when the kernel runs."""

    @hip.jit
    def exchange(x, out):
        i = hip.threadIdx.x
        value = x[i]
        shuffle = hip.wave.shuffle_xor
        out[0, i], out[1, i], out[2, i] = shuffle(value, 1), shuffle(value, 2), shuffle(value, 3)
        out[3, i], out[4, i], out[5, i] = shuffle(value, 4), shuffle(value, 5), shuffle(value, 7)
        out[6, i], out[7, i], out[8, i] = shuffle(value, 8), shuffle(value, 12), shuffle(value, 15)
        out[9, i], out[10, i] = shuffle(value, 16), shuffle(value, 31)
        out[11, i], out[12, i] = hip.wave.shuffle_up(value, 1), hip.wave.shuffle(value, 17)
        out[13, i] = hip.wave.shuffle((value, i), 200)[0]

    lanes = hip.get_current_device().WARP_SIZE
    x = np.random.default_rng(2).integers(0, 9999, lanes).astype(dtype)
    out, place = np.zeros((14, lanes), dtype), np.arange(lanes)
    exchange[1, lanes](x, out)
    for row, mask in enumerate(MASKS):
        np.testing.assert_array_equal(out[row], x[place ^ mask], f"exclusive or {mask}")
    np.testing.assert_array_equal(out[11], x[np.maximum(place - 1, 0)])
    assert (out[12] == x[17]).all()
    assert (out[13] == x[200 % lanes]).all()


@pytest.mark.parametrize("threads", [0, 3, 16, 21])
@pytest.mark.sample(2)
def test_constant_distances_over_the_end_of_a_row_and_of_the_threads(threads):
    """A whole wave, where *threads* is 0, and shorter ones."""

    @hip.jit
    def exchange(x, out):
        i = hip.threadIdx.x
        value = x[i]
        out[0, i], out[1, i] = hip.wave.shuffle_up(value, 1), hip.wave.shuffle_up(value, 5)
        out[2, i], out[3, i] = hip.wave.shuffle_up(value, 15), hip.wave.shuffle_up(value, 16)
        out[4, i], out[5, i] = hip.wave.shuffle_down(value, 1), hip.wave.shuffle_down(value, 5)
        out[6, i], out[7, i] = hip.wave.shuffle_down(value, 15), hip.wave.shuffle_down(value, 16)
        out[8, i], out[9, i] = hip.wave.shuffle_xor(value, 17), hip.wave.shuffle_xor(value, 21)

    lanes = threads or hip.get_current_device().WARP_SIZE
    x = np.random.default_rng(4).integers(0, 2**62, lanes)
    out, place = np.zeros((10, lanes), np.int64), np.arange(lanes)
    exchange[1, lanes](x, out)
    for row, distance in enumerate([1, 5, 15, 16]):
        np.testing.assert_array_equal(out[row], x[np.where(place < distance, place, place - distance)])
        above = place + distance < lanes
        np.testing.assert_array_equal(out[4 + row][above], x[distance:])
        if not threads:
            np.testing.assert_array_equal(out[4 + row][~above], x[~above])
    for row, mask in ((8, 17), (9, 21)):
        there = (place ^ mask) < lanes
        np.testing.assert_array_equal(out[row][there], x[(place ^ mask)[there]])


@pytest.mark.parametrize("threads", [1, 15, 16, 17, 33, 47, 48, 49, 63])
@pytest.mark.sample(1)
def test_the_last_wave_of_a_block_may_be_short(threads):
    @hip.jit
    def combine(x, out):
        i = hip.threadIdx.x
        wave = i - i % hip.warpsize
        scanned = hip.wave.inclusive_scan((x[i], i), lambda a, b: (a[0] * np.float32(0.5) + b[0], max(a[1], b[1])))
        out[0, i], out[1, i] = hip.wave.reduce(x[i], operator.add, hip.blockDim.x - wave), scanned[1]

    lanes = hip.get_current_device().WARP_SIZE
    x = np.random.default_rng(2).integers(0, 99, threads).astype(np.float32)
    out = np.zeros((2, threads), np.float32)
    combine[1, threads](x, out)
    for start in range(0, threads, lanes):
        assert (out[0, start : start + lanes] == x[start : start + lanes].sum()).all()
    np.testing.assert_array_equal(out[1], np.arange(threads))


def test_in_the_simulator():
    assert not isinstance(hip.wave.reduce, FunctionType), "decorated to be compiled, before"
    with config.simulator.scope(True):

        @hip.jit
        def combine(x, out):
            i = hip.threadIdx.x
            out[i, 0] = hip.wave.reduce(x[i], operator.add, 5)
            out[i, 1] = hip.wave.shuffle_up((x[i], i), 1)[1]
            out[i, 2] = hip.wave.rank(x[i] > 3)[0]

        x, out = np.arange(8), np.zeros((8, 3), int)
        combine[1, 8](x, out)
    assert out.T.tolist() == [[10] * 8, [0, 0, 1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 0, 1, 2, 3]]


def test_arrays_are_not_exchanged():
    @hip.jit
    def exchange(x):
        hip.wave.shuffle(x, 3)

    with pytest.raises(
        TypingError, match=r"wave.shuffle exchanges numbers and tuples of numbers between lanes, not arr"
    ):
        exchange[1, 1](np.zeros(3))
