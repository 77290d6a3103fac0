"""Indices and operands that are ``None`` on some paths of a kernel."""

import numpy as np
import pytest

import numba_hip as hip


@hip.jit
def fill_first(values, count):
    i = hip.grid(1)
    place = None
    if i < count:
        place = i
    if place is not None:
        values[place] = place + 1
        values[place] += 1


@hip.jit
def read_and_write_pairs(pairs, source):
    i = hip.grid(1)
    place = None
    if i < 100:
        place = i
    pairs[place, 1] = source[place] * place


@hip.jit
def count_in(bins, values, limit):
    i = hip.grid(1)
    place = None
    step = None
    if values[i] < limit:
        place = values[i]
        step = 2
    if place is not None:
        hip.atomic.add(bins, place, step)


@hip.jit(exceptions=True)
def write_at_none(values):
    i = hip.grid(1)
    place = None
    if i < 3:
        place = i
    values[place] = 1


def test_reading_and_writing():
    values = np.zeros(8)
    fill_first[1, 8](values, 5)
    assert values.tolist() == [2, 3, 4, 5, 6, 0, 0, 0]


def test_among_several_indices():
    pairs, source = np.zeros((8, 2)), np.arange(8.0) + 1
    read_and_write_pairs[1, 8](pairs, source)
    np.testing.assert_array_equal(pairs[:, 1], source * np.arange(8))
    assert not pairs[:, 0].any()


def test_atomic_operations():
    values = np.random.default_rng(1).integers(0, 10, 256)
    bins = np.zeros(10, np.int64)
    count_in[2, 128](bins, values, 6)
    wanted = 2 * np.bincount(values, minlength=10)
    wanted[6:] = 0
    np.testing.assert_array_equal(bins, wanted)


def test_none_is_an_exception_of_the_thread():
    with pytest.raises(TypeError, match=r"tid=\[3, 0, 0\].*got None.*write_at_none"):
        write_at_none[1, 4](np.zeros(4))


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_for_amd_gpus(target):
    signature = "void(int64[::1], int64[::1], int64)"
    image, _ = hip.compile(count_in.py_func, signature, target=target, output="object")
    assert image[:4] == b"\x7fELF"
