"""Private arrays and recursion: what the stack cannot hold does not end the process."""

import threading

import numpy as np
import pytest
from numba import float64

import numba_hip as hip
from hip_runtime import UnsupportedError
from hip_runtime import config as runtime_config

on_the_cpu = pytest.mark.cpu_device("an AMD GPU has limits of its own")

LENGTH = 0  # each test has one of its own
FORMS = ["auto", "loop", "regions", "vectors"]


@hip.jit(device=True)
def count_down(n, x):
    if n == 0:
        return x
    return count_down(n - 1, x + 1.0) + 1.0


@hip.jit(device=True)
def is_even(n):
    return n == 0 or is_odd(n - 1)


@hip.jit(device=True)
def is_odd(n):
    return n != 0 and is_even(n - 1)


def descend(depths, out):
    i = hip.grid(1)
    out[i] = count_down(depths[i], 0.0)


def test_recursion_that_the_stack_has_no_room_for():
    kernel = hip.jit(exceptions=True)(descend)
    depths, out = np.arange(64), np.zeros(64)
    for _ in range(2):
        kernel[2, 32](depths, out)
        np.testing.assert_array_equal(out, 2.0 * np.arange(64))
        depths[37] = 10**12
        with pytest.raises(
            RecursionError, match=r"tid=\[5, 0, 0\] ctaid=\[1, 0, 0\]: functions call one another so often"
        ):
            kernel[2, 32](depths, np.zeros(64))
        depths[37] = 37


@pytest.mark.skipif(hip.get_current_device().is_cpu, reason="the CPU device has megabytes for each thread")
def test_recursion_with_private_arrays_that_leave_no_room_for_it():
    @hip.jit
    def kernel(n, out):
        own = hip.local.array(1500, np.float64)
        for i in range(n):
            own[(i * 7) % 1500] = i
        out[0] = count_down(n, own[n])

    with pytest.raises(
        UnsupportedError, match="bytes for its private arrays and one call of each function; with recursion"
    ):
        kernel[1, 1](5, np.zeros(1))


@on_the_cpu
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sample(2)
def test_recursion_without_end_is_an_error(form):
    with runtime_config.cpu_form.scope(form):
        kernel = hip.jit(descend)
        depths, out = np.arange(64), np.zeros(64)
        kernel[2, 32](depths, out)
        np.testing.assert_array_equal(out, 2.0 * np.arange(64))
        depths[37] = 10**12
        for _ in range(2):
            with pytest.raises(RecursionError) as caught:
                kernel[2, 32](depths, np.zeros(64))
            text = str(caught.value)
            assert text.startswith("tid=[5, 0, 0] ctaid=[1, 0, 0]: functions call one another so often")
            assert f"test_stack.py:{count_down.py_func.__code__.co_firstlineno + 4} in count_down" in text
            depths[37] = 20_000
            kernel[2, 32](depths, out)
            assert out[37] == 40_000
            depths[37] = -1


@on_the_cpu
def test_functions_that_call_one_another():
    @hip.jit
    def kernel(numbers, out):
        i = hip.grid(1)
        out[i] = is_even(numbers[i])

    numbers, out = np.array([0, 1, 4, 1001]), np.zeros(4, np.bool_)
    kernel[1, 4](numbers, out)
    np.testing.assert_array_equal(out, numbers % 2 == 0)
    with pytest.raises(RecursionError, match=r"tid=\[2, 0, 0\]"):
        kernel[1, 4](np.array([0, 1, -1, 3]), out)


@on_the_cpu
def test_the_stack_of_every_thread_is_looked_at():
    """Those of threads of Python, of which this one has little, and of the pool."""
    kernel, found = hip.jit(descend), []

    def launch():
        for depth in (100, 10**12):
            try:
                out = np.zeros(4096)
                kernel[512, 8](np.full(4096, depth), out)
                found.append(out[-1])
            except RecursionError as error:
                found.append(type(error))

    size = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=launch)
        thread.start()
    finally:
        threading.stack_size(size)
    thread.join()
    assert found == [200.0, RecursionError]


def fill(out):
    values = hip.local.array(LENGTH, float64)
    i = hip.grid(1)
    for k in range(values.size):
        values[k] = i + k
    total = 0.0
    for k in range(0, values.size, 1000):
        total += values[k]
    out[i] = total


def filled(length, threads):
    steps = np.arange(0, length, 1000, dtype=np.float64)
    return steps.sum() + steps.size * np.arange(threads)


@on_the_cpu
@pytest.mark.sample(2)
@pytest.mark.parametrize("form", ["auto", "regions", "vectors"])
@pytest.mark.parametrize("length", [20_000, 4_000_000])
def test_private_arrays_that_the_stack_cannot_hold(length, form):
    """Those of one thread, or those of all that run at a time."""
    kernel = hip.jit(_with_length(fill, length))
    out = np.zeros(32)
    with runtime_config.cpu_form.scope(form):
        kernel[1, 32](out)
    np.testing.assert_array_equal(out, filled(length, 32))


@on_the_cpu
def test_a_form_that_cannot_hold_them_says_so():
    with runtime_config.cpu_form.scope("loop"):
        with pytest.raises(UnsupportedError, match="at most 262144 bytes, and this kernel has 32000000; set NUMBA_HIP"):
            hip.jit(_with_length(fill, 4_000_000))[1, 32](np.zeros(32))
        out = np.zeros(32)
        hip.jit(_with_length(fill, 20_000))[1, 32](out)
        np.testing.assert_array_equal(out, filled(20_000, 32))


@on_the_cpu
def test_private_arrays_of_functions_that_call_themselves():
    @hip.jit(device=True)
    def hold(n, x):
        values = hip.local.array(60_000, float64)
        for k in range(values.size):
            values[k] = x + k
        if n == 0:
            return values[7]
        return hold(n - 1, values[n]) + values[3]

    @hip.jit
    def kernel(n, out):
        out[hip.grid(1)] = hold(n, 0.0)

    out = np.zeros(2)
    kernel[1, 2](2, out)
    assert out[0] == out[1] == (0 + 3) + (2 + 3) + (3 + 7)
    with pytest.raises(RecursionError):
        kernel[1, 2](1000, out)


def _with_length(function, length):
    """*function*, for which the global LENGTH is *length*."""
    return type(function)(function.__code__, {**function.__globals__, "LENGTH": length}, function.__name__)
