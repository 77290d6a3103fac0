"""What can be decorated, and what is refused right there."""

import functools
import inspect

import numba
import numpy as np
import pytest

import numba_hip as hip
from numba_hip import config
from numba_hip.errors import DeviceFunctionError, KernelSignatureError, NotAFunctionError


async def coroutine(out):
    out[0] = 1


async def async_generator(out):
    yield out


def generator(out):
    yield out


def named(out, **rest):
    out[0] = len(rest)


def both(out, *rest, last=1, **more):
    out[0] = last


def by_name(out, *, step=1):
    out[0] = step


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@decorated
def wrapped(out):
    out[0] = 1


@functools.wraps(generator)
def several(*args):
    args[0][0] = 1


REFUSED = [
    (coroutine, r"is a coroutine, and a device has no event loop: write def"),
    (async_generator, r"is a coroutine"),
    (generator, r"is a generator, and nobody takes what it yields"),
    (several, r"has the parameter \*args; it wraps another function: let hip.jit decorate that one"),
    (named, r"has the parameter \*\*rest, which has no type"),
    (both, r"has the parameter \*\*more"),
    (by_name, r"has the keyword-only parameter step"),
    (wrapped, r"has the parameter \*\*kwargs.*; it wraps another function: let hip.jit decorate that one"),
]


@pytest.mark.parametrize(("function", "says"), REFUSED, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("simulated", [False, True])
def test_kernels_that_are_refused(function, says, simulated):
    line = function.__code__.co_firstlineno
    assert line == inspect.getsourcelines(function.__code__)[1]
    place = rf"^kernel {function.__qualname__} \(.*test_function_checks\.py:{line}\) {says}"
    with config.simulator.scope(simulated):
        with pytest.raises(KernelSignatureError, match=place):
            hip.jit("void(float64[:])")(function)
        for decorate in (hip.jit, hip.jit(), hip.jit(cache=True)):
            if function in (generator, several):  # which other kernels may call
                with pytest.raises(KernelSignatureError, match=place):
                    decorate(function)[1, 1]
                with pytest.raises(KernelSignatureError, match=place):
                    decorate(function).forall(1)(np.zeros(1))
            else:
                with pytest.raises(KernelSignatureError, match=place):
                    decorate(function)


@pytest.mark.parametrize("simulated", [False, True])
def test_kernels_call_what_cannot_be_launched(simulated):
    with config.simulator.scope(simulated):

        @hip.jit
        def apply(function, *values):
            return function(*values)

        @hip.jit
        def pairs(value):
            yield value
            yield 2 * value

        @hip.jit
        def kernel(out):
            def product(x, y):
                return x * y

            for value in pairs(5):
                out[0] += apply(product, value, 3)

        out = np.zeros(1)
        kernel[1, 1](out)
    assert out.tolist() == [45]


@pytest.mark.parametrize(
    ("function", "says"), [REFUSED[0], REFUSED[1], REFUSED[4], REFUSED[6]], ids=["async", "async gen", "**", "*, step"]
)
def test_device_functions_that_are_refused(function, says):
    place = rf"^device function {function.__name__} \(.*test_function_checks\.py:[0-9]+\) {says}"
    for decorate in (hip.jit(device=True), hip.vectorize(["float64(float64)"]), hip.reduce):
        with pytest.raises(DeviceFunctionError, match=place):
            decorate(function)


def test_device_functions_that_work():
    @hip.jit(device=True)
    def total(*values):
        result = 0
        for value in values:
            result += value
        return result

    @hip.jit(device=True)
    def scale(value, by=3):
        return value * by

    @hip.jit(device=True)
    def twice(value):
        yield value
        yield value

    @hip.jit
    def kernel(out):
        for value in twice(5):
            out[0] += total(1, 2, value)
        out[1] = scale(out[0]) + scale(1, by=100)

    out = np.zeros(2)
    kernel[1, 1](out)
    assert out.tolist() == [16, 148]


class Callable:
    def __call__(self, out):
        out[0] = 1

    def method(self, out, value):
        out[0] = value

    @staticmethod
    def static(out, value):
        out[0] = value


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Callable(), ".*Callable object at .*: decorate a function, one that calls it"),
        (Callable, "<class .*Callable.*: decorate a function; what it does can be in functions with device=True"),
        (Callable.__dict__["static"], "<staticmethod.*: put @staticmethod above the decorator"),
        (len, "<built-in function len>: write a Python function that calls it"),
        (np.add, "<ufunc 'add'>: decorate a function, one that calls it"),
        (functools.partial(several, 1), "functools.partial.*: write a function that passes those arguments on"),
        (functools.lru_cache(several), ".*lru_cache.*: decorate a function"),
        (5, "5: decorate a function"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("decorate", [hip.jit, hip.jit(), hip.jit(device=True), hip.jit("void(float64[:])")])
def test_what_is_no_function(decorate, given, says):
    with pytest.raises(NotAFunctionError, match=rf"^hip.jit takes a Python function, or a signature; got {says}"):
        decorate(given)


def test_functions_of_every_kind_that_work():
    for function in (
        Callable.static, Callable().static, Callable().method, numba.njit(Callable.static), hip.jit(Callable.static),
    ):  # fmt: skip
        out = np.zeros(2)
        hip.jit(function)[1, 1](out, 7.0)
        assert out.tolist() == [7, 0]
    out = np.zeros(1)
    hip.jit(lambda out, value: None)[1, 1](out, 7.0)
    assert out[0] == 0
