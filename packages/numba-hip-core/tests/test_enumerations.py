"""Members of enumerations whose values are integers, and flags, where kernels use them as numbers."""

from __future__ import annotations

import enum

import numpy as np
import pytest
from numba import hip


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Access(enum.IntFlag):
    READ = 4
    WRITE = 2
    RUN = 1


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex128, np.int8])
def test_a_member_is_stored_as_a_number(dtype):
    @hip.jit
    def kernel(out, level):
        out[0] = level
        out[1] = Level.LOW
        out[2] = int(level) + float(Level.LOW)
        out[3] = 7 if level else 8

    out = np.zeros(4, dtype)
    kernel[1, 1](out, Level.HIGH)
    np.testing.assert_array_equal(out, [5, 1, 6, 7])


def test_a_member_is_an_index():
    @hip.jit
    def kernel(counts, level):
        hip.atomic.add(counts, level, 1)
        hip.atomic.add(counts, Level.LOW, Level.HIGH)

    counts = np.zeros(6, np.int32)
    kernel[1, 8](counts, Level.HIGH)
    np.testing.assert_array_equal(counts, [0, 40, 0, 0, 0, 8])


@hip.jit
def flags_of(access, out):
    i = hip.grid(1)
    out[i, 0] = (access[i] & Access.READ) != 0
    out[i, 1] = access[i] & (Access.READ | Access.WRITE)
    out[i, 2] = Access.WRITE.value if access[i] & Access.RUN else 0
    out[i, 3] = access[i] == Access.READ
    access[i] |= Access.RUN


def test_flags():
    access, out = np.arange(8, dtype=np.int32), np.zeros((8, 4))
    flags_of[1, 8](access, out)
    i = np.arange(8)
    np.testing.assert_array_equal(out, np.stack([i & 4 != 0, i & 6, 2 * (i & 1), i == 4], axis=1))
    np.testing.assert_array_equal(access, i | 1)
    code, _ = hip.compile(flags_of, "(int32[::1], float64[:,::1])", target="gfx942", output="object")
    assert code[:4] == b"\x7fELF"


def test_flags_as_arguments():
    @hip.jit
    def kernel(out, access):
        out[0] = (access & Access.WRITE) != 0
        out[1] = access

    for access in (Access.READ, Access.READ | Access.WRITE):
        out = np.zeros(2)
        kernel[1, 1](out, access)
        np.testing.assert_array_equal(out, [bool(access & Access.WRITE), access])
