"""Neighbours in memory that are cast to narrower types and stored side by side, in every form of the CPU device."""

import numpy as np
import pytest
from numba import int8, int16, int32, int64, uint8, uint16, uint32, uint64

import numba_hip as hip
from hip_runtime import config as runtime_config

KINDS = [int8, uint8, int16, uint16, int32, uint32, int64, uint64]
ODD = -60920304090223328
"""A number of which the low 8, 16 and 32 bits are numbers of different signs."""

FORMS = [("auto", None), ("loop", None), ("regions", None), ("vectors", None), ("vectors", 1), ("vectors", 2)]


def numbers():
    """Of length 48: one number over and over, and such as differ in each part."""
    return [np.full(48, ODD), np.random.default_rng(5).integers(-(2**63), 2**63, 48)]


def cast(array, kind):
    return array.astype(str(kind)).astype(np.int64)


def store_pairs(one, other):
    """Four neighbours, cast by turns, from three places."""

    @hip.jit
    def kernel(inp, out):
        t = hip.threadIdx.x
        for first in range(3):
            a, b, c, d = (
                one(inp[t + first]),
                one(inp[t + first + 1]),
                one(inp[t + first + 2]),
                other(inp[t + first + 3]),
            )
            out[first, t, 0] = int64(a)
            out[first, t, 1] = int64(b)
            out[first, t, 2] = int64(c)
            out[first, t, 3] = int64(d)

    return kernel


@pytest.mark.sample(2)
@pytest.mark.parametrize("other", KINDS[:4], ids=str)
@pytest.mark.parametrize("one", [int8, int16, int32], ids=str)
def test_neighbours_are_cast_each_to_its_own_type(one, other):
    kernel = store_pairs(one, other)
    for inp in numbers():
        out = np.zeros((3, 7, 4), np.int64)
        kernel[1, 7](inp, out)
        for first in range(3):
            near = np.stack([inp[first + lane : first + lane + 7] for lane in range(4)], axis=1)
            expected = np.concatenate([cast(near[:, :3], one), cast(near[:, 3:], other)], axis=1)
            np.testing.assert_array_equal(out[first], expected)


@hip.jit
def take_apart(inp, out):
    t = hip.threadIdx.x
    v0, v1, v2, v3 = int32(inp[t]), int16(inp[t + 1]), int32(inp[t + 2]), uint8(inp[t + 3])
    out[t, 0] = int64(v0)
    out[t, 1] = int64(v1)
    out[t, 2] = int64(v2)
    out[t, 3] = int64(v3)


@pytest.mark.parametrize(("form", "width"), FORMS)
def test_a_number_is_taken_apart_in_each_form(form, width):
    with runtime_config.cpu_form.scope(form), runtime_config.cpu_width.scope(width):
        for inp in numbers():
            out = np.zeros((3, 4), np.int64)
            take_apart[1, 3](inp, out)
            parts = [cast(inp[lane : lane + 3], kind) for lane, kind in enumerate((int32, int16, int32, uint8))]
            np.testing.assert_array_equal(out, np.stack(parts, axis=1))


@hip.jit
def take_pixels_apart(pixels, channels, by):
    t = hip.grid(1)
    for k in range(2):
        pixel = pixels[2 * t + k]
        channels[2 * t + k, 0] = pixel >> 24
        channels[2 * t + k, 1] = pixel >> by & 255
        channels[2 * t + k, 2] = pixel >> 8 & 255
        channels[2 * t + k, 3] = pixel & 255


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint32])
@pytest.mark.sample(1)
def test_a_pixel_is_taken_apart(kind):
    pixels = numbers()[1].astype(kind)
    channels = np.zeros((48, 4), kind)
    take_pixels_apart[3, 8](pixels, channels, 16)
    expected = np.stack([pixels >> 24, pixels >> 16 & 255, pixels >> 8 & 255, pixels & 255], axis=1)
    np.testing.assert_array_equal(channels, expected)


@hip.jit
def store_one_more(inp, own, outi, n):
    gid = int64(hip.threadIdx.x) + int64(hip.blockDim.x) * int64(hip.blockIdx.x)
    v0, v1, v2 = uint8(inp[(gid * 3) % n]), int16(inp[(gid * 5 + 1) % n]), int8(inp[(gid * 3 + 2) % n])
    local = hip.local.array(8, uint32)
    for q in range(8):
        local[q] = uint32(q * v2)
    own[gid, 0] = int32(abs(int32(v1) << 3))
    outi[gid, 0] = int64(v0) + int64(local[gid % 8])


@pytest.mark.sample(1)
@pytest.mark.parametrize(("width", "block"), [(1, 3), (2, 31), (4, 29), (8, 25), (16, 33), (32, 33), (64, 65)])
@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32])
def test_no_thread_stores_past_the_end_of_its_block(kind, width, block):
    """A column of an array in Fortran's order ends where the next one begins; a last group may have one thread."""
    inp, threads = numbers()[1], np.arange(7 * block)
    places = (threads * 3, threads * 5 + 1, threads * 3 + 2)
    v0, v1, v2 = (cast(inp[place % 48], narrow) for place, narrow in zip(places, (uint8, int16, int8), strict=True))
    own, outi = np.zeros((7 * block, 2), kind, order="F"), np.zeros((7 * block, 2), np.int64)
    with runtime_config.cpu_form.scope("vectors"), runtime_config.cpu_width.scope(width):
        store_one_more[7, block](inp, own, outi, 48)
    np.testing.assert_array_equal(own[:, 0], np.abs(v1 << 3).astype(kind))
    np.testing.assert_array_equal(outi[:, 0], v0 + cast(threads % 8 * v2, uint32))
    assert not own[:, 1].any()
    assert not outi[:, 1].any()
