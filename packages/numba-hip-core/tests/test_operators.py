"""Functions that users pass to algorithms: which of them are the same to a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from numba_hip import algorithms
from numba_hip.cooperative.operators import in_kernels
from numba_hip.errors import AlgorithmError

FACTOR = 3


def compiled(function: Callable[..., Any], takes: int = 2) -> Any:
    return in_kernels(function, "operator", takes)


def test_equal_functions_are_one_wherever_they_are_written() -> None:
    first = compiled(lambda a, b: a * FACTOR + b)
    assert compiled(lambda a, b: a * FACTOR + b) is first
    assert compiled(
        lambda a,
               b: a * FACTOR
                  + b
    ) is first  # fmt: skip

    def nested(a: Any) -> Any:
        return (lambda b: b + 1)(a)

    one = compiled(nested, 1)

    def nested(a: Any) -> Any:  # type: ignore[no-redef]
        return (lambda b: b + 1)(a)

    assert compiled(nested, 1) is one


@pytest.mark.parametrize(
    "other",
    [
        lambda a, b: a * FACTOR - b,
        lambda a, b: a * 3 + b,
        lambda a, b: a * FACTOR + b + 1,
        lambda a, b=1: a * FACTOR + b,
        lambda b, a: a * FACTOR + b,
    ],
)
def test_functions_that_differ_are_not_one(other: Callable[..., Any]) -> None:
    assert compiled(other) is not compiled(lambda a, b: a * FACTOR + b)


def test_constants_of_other_types_are_others() -> None:
    assert compiled(lambda a: a + 1, 1) is not compiled(lambda a: a + 1.0, 1)


def test_what_a_function_captures_counts() -> None:
    made = [compiled(lambda a, step=step: a + step) for step in (1, 2, 1)]
    assert made[0] is made[2] is not made[1]
    for step in (1, 2):
        np.testing.assert_array_equal(algorithms.transform(lambda a: a + step, np.arange(3)), np.arange(3) + step)  # noqa: B023


def test_a_variable_without_a_value_is_named() -> None:
    def early(a: Any) -> Any:
        return a + late

    with pytest.raises(AlgorithmError, match="operator captures a variable that has no value yet"):
        compiled(early, 1)
    late = 1
    assert late == 1
