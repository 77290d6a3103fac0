"""Arguments of launches that are named as the parameters of the kernel are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numba_hip as hip
from numba_hip import config
from numba_hip.errors import KernelArgumentError


def fill(out: Any, first: Any, step: Any = 2.0) -> None:
    i = hip.grid(1)
    if i < out.size:
        out[i] = first + i * step


def collect(out: Any, *rest: Any) -> None:
    for value in rest:
        out[0] += value


@pytest.mark.parametrize("simulated", [False, True])
def test_arguments_by_name(simulated: bool) -> None:
    with config.simulator.scope(simulated):
        kernel, several = hip.jit(fill), hip.jit(collect)
    for launch in (kernel[1, 4], kernel.forall(4)):
        for args, named, expected in (
            ((), {"out": None, "first": 1.0}, [1, 3, 5, 7]),
            ((), {"step": 3.0, "first": 1.0, "out": None}, [1, 4, 7, 10]),
            ((1.0,), {"step": 1.0}, [1, 2, 3, 4]),
            ((1.0, 0.0), {}, [1, 1, 1, 1]),
        ):
            out = np.zeros(4)
            passed = {name: out if value is None else value for name, value in named.items()}
            launch(*(() if "out" in passed else (out,)), *args, **passed)
            assert out.tolist() == expected
    out = np.zeros(1)
    several[1, 1](out, 2, 3)
    assert out[0] == 5


def test_names_that_do_not_fit() -> None:
    kernel, out = hip.jit(fill)[1, 4], np.zeros(4)
    for args, named, says in (
        ((out,), {"frist": 1.0}, "without the argument 'first', and has no parameter 'frist'; did you mean 'first'"),
        ((out, 1.0), {"setp": 1.0}, r"has no parameter 'setp'; did you mean 'step'\?; it takes \(out, first, step\)"),
        ((out, 1.0), {"out": out}, "argument 'out' is passed by position and by name"),
        ((out,), {"step": 1.0}, "is launched without the argument 'first'"),
        ((out,), {}, "takes 3 arguments"),
    ):
        with pytest.raises(KernelArgumentError, match=says):
            kernel(*args, **named)
    with pytest.raises(KernelArgumentError, match="has no parameter 'rest'"):
        hip.jit(collect)[1, 1](out, rest=3)
    assert not out.any()
