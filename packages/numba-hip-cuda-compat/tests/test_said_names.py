"""What a program for `numba.cuda` is told to write: names of the module that it has."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba.core import config as numba_config
from numba.core.errors import NumbaPerformanceWarning

import numba_hip as hip
from numba_hip_cuda import posing

OURS = re.compile(r"\bhip\.\w")

Write = Callable[[ModuleType], Callable[..., Any]]
"""Makes the function of a kernel, for the module by which the program names this library."""


def helper(x: float) -> float:
    return x


def _calls_a_function(module: ModuleType) -> Callable[..., Any]:
    def kernel(x: Any) -> None:
        x[0] = helper(x[0])

    return kernel


def _makes_an_array(module: ModuleType) -> Callable[..., Any]:
    def kernel(x: Any) -> None:
        x[0] = np.zeros(3)[0]

    return kernel


def _makes_a_list(module: ModuleType) -> Callable[..., Any]:
    def kernel(x: Any) -> None:
        y = [1.0, 2.0]
        x[0] = y[0]

    return kernel


def _has_a_shape_of_variables(module: ModuleType) -> Callable[..., Any]:
    def kernel(x: Any) -> None:
        room = module.shared.array(x.size, np.float32)
        x[0] = room[0]

    return kernel


def _has_a_negative_shape(module: ModuleType) -> Callable[..., Any]:
    def kernel(x: Any) -> None:
        room = module.local.array(-1, np.float32)
        x[0] = room[0]

    return kernel


def _returns(module: ModuleType) -> Callable[..., Any]:
    def kernel(x: Any) -> Any:
        return x[0]

    return kernel


def _takes_random_numbers(module: ModuleType) -> Callable[..., Any]:
    def kernel(x: Any) -> None:
        x[0] = np.random.default_rng().random()

    return kernel


def _has_four_axes(module: ModuleType) -> Callable[..., Any]:
    def kernel(x: Any) -> None:
        x[module.grid(4)] = 1

    return kernel


def _reads_another_axis(module: ModuleType) -> Callable[..., Any]:
    def kernel(x: Any) -> None:
        x[module.threadIdx.w] = 1

    return kernel


def _adds_to_a_number(module: ModuleType) -> Callable[..., Any]:
    def kernel(x: Any) -> None:
        module.atomic.add(x[0], 0, 1)

    return kernel


def _calls_itself(module: ModuleType) -> Callable[..., Any]:
    def kernel(x: Any) -> None:
        def inner(n: int) -> int:
            return inner(n - 1) if n else 0

        x[0] = inner(3)

    return kernel


def _passes_too_much(module: ModuleType) -> Callable[..., Any]:
    def kernel(x: Any) -> None:
        module.syncthreads(x)

    return kernel


def _calls_a_number(module: ModuleType) -> Callable[..., Any]:
    def kernel(x: Any) -> None:
        x[0] = module.fp16.hsin(1j)

    return kernel


MISTAKES: list[tuple[Write, str]] = [
    (_calls_a_function, "put @{}.jit(device=True) above helper"),
    (_makes_an_array, "use {0}.local.array or {0}.shared.array"),
    (_makes_a_list, "{}.local.array(n, dtype)"),
    (_has_a_shape_of_variables, "{0}.shared.array: the shape must .* launch gives: {0}.shared.array(0, dtype)"),
    (_has_a_negative_shape, "{}.local.array: the shape has extent -1"),
    (_returns, "@{}.jit(device=True)"),
    (_takes_random_numbers, "{}.random has generators for kernels"),
    (_has_four_axes, "{}.grid(4): the number of axes can be 1, 2 or 3"),
    (_reads_another_axis, "Unknown attribute 'w' of type {}.threadIdx"),
    (_adds_to_a_number, "{}.atomic.add: the first argument has to be an array"),
    (_calls_itself, "@{}.jit(device=True)"),
    (_passes_too_much, "{}.syncthreads takes ()"),
    (_calls_a_number, "{}.fp16.hsin takes numbers of type float16, not a complex128"),
]


def told(module: ModuleType, write: Write) -> str:
    """What is said of a kernel with a mistake."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - what it says is what is tested
        module.jit(write(module))[1, 1](np.ones(1))
    return str(caught.value)


def pattern(says: str, module: str) -> str:
    """*says*, with ``.*`` for anything, as a regular expression that names *module*."""
    return ".*".join(map(re.escape, says.format(module).split(".*")))


@pytest.mark.parametrize(("write", "says"), MISTAKES, ids=lambda value: getattr(value, "__name__", ""))
def test_mistakes_in_a_kernel(write: Write, says: str) -> None:
    with posing() as cuda:
        said = told(cuda, write)
    assert re.search(pattern(says, "cuda"), said), said
    assert not OURS.search(said), said
    assert re.search(pattern(says, "hip"), told(hip, write)), "afterwards it is as before"


CALLS: list[tuple[Callable[[ModuleType], Any], str]] = [
    (lambda module: module.jit(fast_math=True), "{}.jit has no option fast_math"),
    (lambda module: module.jit(3), "{}.jit takes a Python function, or a signature"),
    (lambda module: module.grid(1), "{}.grid can be called in kernels only"),
    (lambda module: module.threadIdx.x, "{}.threadIdx has no attribute 'x' outside of kernels"),
    (lambda module: module.jit(helper)[1, 1, "x"], "it must be a stream of {}.stream()"),
]


@pytest.mark.parametrize(("call", "says"), CALLS, ids=[says for _, says in CALLS])
def test_mistakes_of_the_host(cuda: ModuleType, call: Callable[[ModuleType], Any], says: str) -> None:
    with pytest.raises(Exception, match=pattern(says, "cuda")) as caught:
        call(cuda)
    assert not OURS.search(str(caught.value))


def test_names_that_cuda_lacks_are_ours(cuda: ModuleType) -> None:
    @hip.jit
    def kernel(x: Any) -> None:
        hip.texture.sample(x, 1, 2)

    with pytest.raises(Exception, match=r"hip\.texture\.sample"):
        kernel[1, 1](np.ones(3))


def test_warnings_name_the_variables_of_cuda(cuda: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    @cuda.jit
    def kernel(x: Any) -> None:
        x[0] = 1

    variables = ("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "NUMBA_CUDA_WARN_ON_IMPLICIT_COPY")
    for variable in variables:
        monkeypatch.setattr(numba_config, variable.removeprefix("NUMBA_"), 1)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        kernel[1, 1](np.zeros(1))
    said = [str(one.message) for one in given if one.category is NumbaPerformanceWarning]
    assert f"{variables[1]}=0 turns this warning off" in "".join(said)
    assert cuda.get_current_device().MULTIPROCESSOR_COUNT < 2 or f"{variables[0]}=0 turns" in "".join(said)
