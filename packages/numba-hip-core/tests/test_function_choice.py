"""Functions that are chosen while a kernel runs, by a condition or a number."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from numba import hip, njit
from numba.core.errors import TypingError

from hip_runtime import config


@hip.jit(device=True)
def double(x):
    return x * 2


@hip.jit(device=True)
def add_two(x):
    return x + 2


@njit
def halve(x):
    return x / 2


@hip.jit("float32(float32)", device=True)
def negate(x):
    return -x


@hip.jit(device=True)
def scale(x, factor=3):
    return x * factor


@hip.jit(device=True)
def pair(x):
    return x, x


@hip.jit(device=True)
def apply(function, x):
    return function(x) + 1


@hip.jit
def one_of_three(values):
    i = hip.grid(1)
    function = double
    if i % 3 == 1:
        function = add_two
    elif i % 3 == 2:
        function = halve
    values[i] = function(values[i])


def expected(values):
    i = np.arange(values.size)
    return np.where(i % 3 == 0, values * 2, np.where(i % 3 == 1, values + 2, values / 2))


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", ["auto", "loop", "regions", "vectors"])
@pytest.mark.parametrize("options", [{}, {"debug": True, "opt": False}, {"cache": True}])
def test_by_conditions(form, options):
    values = np.arange(70.0)
    with config.cpu_form.scope(form):
        hip.jit(**options)(one_of_three.py_func)[1, 70](values)
    np.testing.assert_array_equal(values, expected(np.arange(70.0)))


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_on_amd_gpus(target):
    code, _ = hip.compile(one_of_three, "(float64[::1],)", target=target, output="object")
    assert code[:4] == b"\x7fELF"
    text, _ = hip.compile(one_of_three, "(float64[::1],)", target=target, output="asm")
    assert "s_swappc" not in text, "nothing is called by its address"


def test_by_an_expression_in_a_loop_and_as_an_argument():
    @hip.jit
    def kernel(values, first):
        one = double if first else add_two
        other = add_two if first else double
        for i in range(4):
            values[i] = one(values[i])
            one, other = other, one
        values[4] = apply(one, values[4])
        values[5] = apply(halve, values[5])

    values = np.ones(6)
    kernel[1, 1](values, True)
    np.testing.assert_array_equal(values, [2, 3, 2, 3, 3, 1.5])


def test_functions_of_modules_and_a_signature():
    @hip.jit
    def kernel(values):
        i = hip.threadIdx.x
        function = math.sin if i % 2 else math.cos
        values[i] = function(values[i])
        other = negate if i % 2 else double
        values[i] = other(values[i])

    values = np.linspace(0, 3, 20)
    kernel[1, 20](values)
    odd = np.arange(20) % 2 == 1
    x = np.linspace(0, 3, 20)
    np.testing.assert_allclose(values, np.where(odd, -np.sin(x), 2 * np.cos(x)), rtol=1e-6)


OPERATIONS = operator.add, operator.mul, max


@pytest.mark.parametrize("functions", [OPERATIONS, (hip.jit(device=True)(lambda a, b: a + b), *OPERATIONS[1:])])
def test_by_a_number(functions, recwarn):
    @hip.jit(exceptions=True)
    def kernel(out, number):
        i = hip.threadIdx.x
        out[i] = functions[number](3.0, 4.0)

    for number, result in enumerate((7, 12, 4)):
        for place in (number, number - 3):
            out = np.zeros(3)
            kernel[1, 3](out, place)
            np.testing.assert_array_equal(out, result)
    assert not recwarn.list
    for place in (3, -4):
        with pytest.raises(IndexError, match="tuple index out of range"):
            kernel[1, 3](np.zeros(3), place)


def test_an_error_in_one_of_them():
    @hip.jit(device=True)
    def set_one(values, i):
        values[i] = 1

    @hip.jit(device=True)
    def refuse(values, i):
        if i == 3:
            raise ValueError("not 3")

    @hip.jit(exceptions=True)
    def kernel(values):
        i = hip.threadIdx.x
        function = refuse if i % 2 else set_one
        function(values, i)

    values = np.zeros(8)
    with pytest.raises(ValueError, match=r"tid=\[3, 0, 0\].*not 3"):
        kernel[1, 8](values)


@pytest.mark.parametrize(
    ("other", "call", "says"),
    [
        (pair, "function(x[0])", "one of double, pair is called, and double gives float64, pair gives UniTuple"),
        (scale, "function(x[0])", r"one of double, scale is called with \(float64\), and scale has other parameters"),
        (add_two, "function(x=x[0])", "one of .*double.* is called with arguments by position, not with x="),
    ],
)
def test_calls_that_not_all_of_them_take(other, call, says):
    space = {"hip": hip, "double": double, "other": other}
    exec(f"def kernel(x, n):\n    function = double if n else other\n    x[0] = {call}\n", space)
    with pytest.raises(TypingError, match=says):
        hip.jit(space["kernel"])[1, 1](np.ones(1), 1)
