"""Division by zero: an exception where it is asked for, else a number; the process lives on in any case."""

import re

import numpy as np
import pytest

import numba_hip as hip
from hip_runtime import config as runtime_config
from numba_hip.errors import OptionError

on_the_cpu = pytest.mark.skipif(not hip.get_current_device().is_cpu, reason="an AMD GPU gives any number")

INTEGERS = [np.dtype(name) for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")]


def floor(a, b, out):
    i = hip.grid(1)
    if i < a.size:
        out[i] = a[i] // b[i]


def remainder(a, b, out):
    i = hip.grid(1)
    if i < a.size:
        out[i] = a[i] % b[i]


def both(a, b, out):
    i = hip.grid(1)
    if i < a.size:
        quotient, rest = divmod(a[i], b[i])
        out[i] = quotient + rest


def true_division(a, b, out):
    i = hip.grid(1)
    if i < a.size:
        out[i] = a[i] / b[i]


def operands(dtype):
    """Seven by two, with both signs where there are two, six by zero, and zero by zero."""
    return np.array([7, 7 if dtype.kind == "u" else -7, 6, 0]).astype(dtype), np.array([2, 2, 0, 0]).astype(dtype)


@on_the_cpu
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_give_zero(dtype):
    a, b = operands(dtype)
    quotients, rests = np.zeros((2, 4), dtype)
    hip.jit(floor)[1, 32](a, b, quotients)
    hip.jit(remainder)[1, 32](a, b, rests)
    np.testing.assert_array_equal(quotients[:2], a[:2] // b[:2])
    np.testing.assert_array_equal(rests[:2], a[:2] % b[:2])
    assert not quotients[2:].any()
    assert not rests[2:].any()


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_raise_in_pythons_model(dtype):
    a, b = operands(dtype)
    out = np.zeros(4, dtype)
    kernel = hip.jit(floor, error_model="python")
    with pytest.raises(ZeroDivisionError, match=r"^tid=\[2, 0, 0\] ctaid=\[0, 0, 0\]: integer division by zero \("):
        kernel[1, 32](a, b, out)
    assert not out.any()
    kernel[1, 32](a[:2], b[:2], out[:2])
    np.testing.assert_array_equal(out[:2], a[:2] // b[:2])


@pytest.mark.parametrize("function", [floor, remainder, both, true_division])
@pytest.mark.parametrize("dtype", [np.dtype(np.int64), np.dtype(np.float32)], ids=str)
def test_the_place_is_told(function, dtype):
    a, b = operands(dtype)
    line = function.__code__.co_firstlineno + 3
    with pytest.raises(ZeroDivisionError) as caught:
        hip.jit(function, error_model="python")[1, 32](a, b, np.zeros(4))
    assert re.search(rf"by zero \(.*test_division\.py:{line} in {function.__name__}\)$", str(caught.value))


@pytest.mark.parametrize("form", ["loop", "regions", "vectors"])
@on_the_cpu
def test_every_form_raises_and_goes_on(form):
    a, b = operands(np.dtype(np.int32))
    with runtime_config.cpu_form.scope(form):
        kernel = hip.jit(remainder, error_model="python")
        for _ in range(3):
            out = np.zeros(4, np.int32)
            with pytest.raises(ZeroDivisionError, match=r"tid=\[2, 0, 0\].*integer modulo by zero"):
                kernel[1, 32](a, b, out)
            kernel[1, 32](a, b + (b == 0), out)
            np.testing.assert_array_equal(out, [1, 1, 0, 0])


def test_floats_give_what_numpy_gives():
    a, b = operands(np.dtype(np.float32))
    out = np.zeros(4, np.float32)
    hip.jit(true_division)[1, 32](a, b, out)
    np.testing.assert_array_equal(out, [3.5, -3.5, np.inf, np.nan])


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8"])
def test_the_quotient_that_has_no_place_does_not_trap(dtype):
    """The smallest integer by -1 ends a process that just divides. Numba gives 0 for int64, on the host too."""
    smallest = np.full(4, np.iinfo(dtype).min, dtype)
    for function in (floor, remainder):
        out = np.full(4, 77, dtype)
        hip.jit(function)[1, 4](smallest, np.full(4, -1, dtype), out)
        assert out.tolist() == [np.iinfo(dtype).min if function is floor and dtype != "i8" else 0] * 4


def test_debug_is_pythons_model_unless_told_otherwise():
    a, b = operands(np.dtype(np.int32))
    with pytest.raises(ZeroDivisionError):
        hip.jit(floor, debug=True, opt=False)[1, 32](a, b, np.zeros(4, np.int32))
    hip.jit(floor, debug=True, opt=False, error_model="numpy")[1, 32](a, b, np.zeros(4, np.int32))


def test_a_device_function_has_a_model_of_its_own():
    divide = hip.jit(lambda a, b: a // b, device=True, error_model="python")

    @hip.jit
    def call(b, out):
        out[hip.grid(1)] = divide(8, b[hip.grid(1)])

    out = np.zeros(2, np.int64)
    call[1, 2](np.array([2, 4]), out)
    np.testing.assert_array_equal(out, [4, 2])
    with pytest.raises(ZeroDivisionError):
        call[1, 2](np.array([2, 0]), out)


def test_there_are_two_models():
    with pytest.raises(OptionError, match="error_model is 'c'; it can be 'python' or 'numpy'"):
        hip.jit(floor, error_model="c")
