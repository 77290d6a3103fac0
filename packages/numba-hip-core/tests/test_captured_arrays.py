"""Device arrays that kernels capture: the memory itself, which stays alive, of the device that the kernel is for."""

from __future__ import annotations

import gc
import pickle
import types as python_types
import weakref
from collections import namedtuple

import numpy as np
import pytest
from numba.core.errors import TypingError

import numba_hip as hip
from hip_runtime import current_device
from hip_runtime.protocols import array_interface
from numba_hip.errors import KernelArgumentError
from numba_hip.language.captured_arrays import check_captured

POINT = np.dtype([("a", np.int32), ("b", np.float64)], align=True)
SHARED = hip.to_device(np.arange(5.0))


class Foreign:
    """An array of another library."""

    def __init__(self, array):
        self.kept = array
        self.__cuda_array_interface__ = array_interface(array)


def made_by(kind, values):
    array = hip.to_device(values)
    return array, Foreign(array) if kind == "foreign" else array


@pytest.mark.parametrize("kind", ["own", "foreign"])
class TestCapture:
    def test_in_kernels_and_device_functions(self, kind):
        array, captured = made_by(kind, np.arange(6, dtype=np.float32).reshape(2, 3))

        @hip.jit(device=True)
        def read(i, j):
            return captured[i, j]

        @hip.jit
        def kernel(out):
            i = hip.grid(1)
            out[i] = read(i // 3, i % 3) + captured.shape[1]
            captured[i // 3, i % 3] *= 2

        out = np.zeros(6, np.float32)
        kernel[1, 6](out)
        np.testing.assert_array_equal(out, np.arange(6) + 3)
        np.testing.assert_array_equal(array.copy_to_host().ravel(), np.arange(6) * 2)
        array.copy_to_device(np.ones((2, 3), np.float32))
        kernel[1, 6](out)
        np.testing.assert_array_equal(out, 4)

    def test_views_and_arrays_without_axes(self, kind):
        array, _ = made_by(kind, np.arange(24.0).reshape(4, 6))
        _, view = (None, Foreign(array[::-2, 1::2])) if kind == "foreign" else (None, array[::-2, 1::2])
        _, number = made_by(kind, np.array(0.5))

        @hip.jit
        def kernel(out):
            i, j = hip.grid(2)
            out[i, j] = view[i, j] + number[()]

        out = np.zeros((2, 3))
        kernel[1, (2, 3)](out)
        np.testing.assert_array_equal(out, np.arange(24.0).reshape(4, 6)[::-2, 1::2] + 0.5)

    def test_in_tuples_and_modules(self, kind):
        pair = namedtuple("Pair", "array factor")
        (first, one), (second, other) = (made_by(kind, np.arange(3.0) * step) for step in (1, 10))
        both, named = (one, other, 2.0), pair(one, 3)
        module = python_types.ModuleType("holder")
        module.array = second

        @hip.jit
        def kernel(out):
            i = hip.grid(1)
            out[i] = both[0][i] * both[2] + both[1][i] + named.array[i] * named.factor + module.array[i]
            both[1][i] = -1

        out = np.zeros(3)
        kernel[1, 3](out)
        np.testing.assert_array_equal(out, np.arange(3) * (2 + 10 + 3 + 10))
        assert (second.copy_to_host() == -1).all()
        np.testing.assert_array_equal(first.copy_to_host(), np.arange(3))


def test_records():
    point = hip.to_device(np.array((1, 2.5), POINT))
    points = hip.to_device(np.array([(1, 2.5), (3, 4.5)], POINT))

    @hip.jit
    def kernel(out):
        i = hip.grid(1)
        out[i] = point.b + points[i].b
        points[i].a = 7 + i

    out = np.zeros(2)
    kernel[1, 2](out)
    assert out.tolist() == [5, 7]
    assert points.copy_to_host()["a"].tolist() == [7, 8]


def test_the_memory_lives_as_long_as_what_was_compiled():
    def make():
        array = hip.to_device(np.arange(4.0))

        @hip.jit
        def kernel(out):
            out[hip.grid(1)] = array[hip.grid(1)]

        return kernel.compile("void(float64[::1])"), weakref.ref(array)

    code, array = make()
    gc.collect()
    assert code.captured == (array(),)
    del code
    gc.collect()
    assert array() is None


def test_a_global_that_is_another_array_when_compiled_anew():
    namespace = {"hip": hip, "values": hip.to_device(np.ones(2))}
    exec("@hip.jit\ndef kernel(out):\n    out[hip.grid(1)] = values[hip.grid(1)]\n", namespace)
    kernel, out = namespace["kernel"], np.zeros(2)
    kernel[1, 2](out)
    namespace["values"] = hip.to_device(np.full(2, 5.0))
    gc.collect()
    kernel[1, 2](out)
    assert (out == 1).all(), "the array that was captured is still there"
    kernel.recompile()
    kernel[1, 2](out)
    assert (out == 5).all()


def read_shared(out):
    out[hip.grid(1)] = SHARED[hip.grid(1)]


def test_code_for_another_device_cannot_refer_to_it():
    with pytest.raises(TypingError, match="code for gfx942 cannot refer to: pass it as an argument"):
        hip.compile(read_shared, "void(float64[::1])", target="gfx942")
    with pytest.raises(KernelArgumentError, match="kernel k captured a device array .* is launched on another"):
        check_captured("k", (SHARED,), "another")
    check_captured("k", (SHARED,), current_device())


def test_such_kernels_are_not_cached():
    kernel = hip.jit(cache=True)(read_shared)
    with pytest.raises(pickle.PicklingError, match="global device arrays, by their addresses"):
        kernel[1, 5](np.zeros(5))


def test_writing_to_a_captured_host_array_is_refused():
    constant = np.arange(3.0)

    @hip.jit
    def kernel(out):
        constant[0] = 1

    with pytest.raises(TypingError, match="readonly array"):
        kernel[1, 1](np.zeros(1))
