"""Flat indices over matrices whose number of columns is a constant of the kernel: gangs are as wide as rows have room
for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import hip

from hip_runtime import config as runtime_config


def scale_of(columns: int) -> Any:
    @hip.jit
    def scale(matrix, factors):
        i = hip.grid(1)
        if i < matrix.size:
            matrix[i // columns, i % columns] *= factors[i % columns]

    return scale


def lookup_of(columns: int) -> Any:
    """What is divided is no row of an array."""

    @hip.jit
    def lookup(numbers, out):
        i = hip.grid(1)
        if i < out.size:
            out[i] = numbers[i] * (i // columns) + i % columns

    return lookup


@pytest.mark.parametrize("form", ["auto", "vectors", "loop"])
@pytest.mark.parametrize("columns", [1, 2, 7, 16, 17, 31, 37, 64, 100, 127, 129])
@pytest.mark.sample(6)
def test_rows(columns: int, form: str) -> None:
    rows = 1000 // columns + 3
    generator = np.random.default_rng(columns)
    host, factors = generator.random((rows, columns), np.float32), generator.random(columns, np.float32)
    with runtime_config.cpu_form.scope(form):
        for block in (64, 100, 256):
            matrix = host.copy()
            scale_of(columns)[-(-host.size // block), block](matrix, factors)
            np.testing.assert_array_equal(matrix, host * factors, f"blocks of {block}")


@pytest.mark.parametrize("columns", [7, 17, 37, 100])
def test_numbers(columns: int) -> None:
    numbers = np.arange(1000.0)
    out = np.zeros(1000)
    lookup_of(columns)[4, 256](numbers, out)
    i = np.arange(1000)
    np.testing.assert_array_equal(out, numbers * (i // columns) + i % columns)


@pytest.mark.cpu_device("the width of gangs is its choice")
def test_widths() -> None:
    """Two gangs have room in a row; where no element is apart from the next, and where rows are shorter than two of
    the narrowest gangs, they are as wide as else."""
    matrix = "(float32[:, ::1], float32[::1])"
    for columns in (17, 20, 37, 50, 100, 127):
        assert columns // 4 < scale_of(columns).explain(matrix).lanes <= columns // 2
    assert scale_of(7).explain(matrix).lanes >= 32
    vector = "(float64[::1], float64[::1])"
    assert lookup_of(37).explain(vector).lanes == lookup_of(1000).explain(vector).lanes
