"""Factors of small matrices, one for each thread, in a private array: loops whose bounds are the counters of others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import float32, float64, hip

COUNT = 300


def make_cholesky(order: int, kind: Any) -> Any:
    """A kernel of Cholesky's factors of matrices of *order* x *order*."""

    @hip.jit
    def cholesky(matrices, factors):
        i = hip.grid(1)
        if i < matrices.shape[0]:
            own = hip.local.array((order, order), kind)
            for row in range(order):
                for column in range(row + 1):
                    total = matrices[i, row, column]
                    for k in range(column):
                        total -= own[row, k] * own[column, k]
                    if row == column:
                        own[row, row] = math.sqrt(total)
                    else:
                        own[row, column] = total / own[column, column]
            for row in range(order):
                for column in range(order):
                    factors[i, row, column] = own[row, column] if column <= row else 0

    return cholesky


def make_solver(order: int, kind: Any) -> Any:
    """A kernel that solves equations by Gauss's method, which goes backwards at the end."""
    width = order + 1

    @hip.jit
    def solve(matrices, sides):
        i = hip.grid(1)
        if i < matrices.shape[0]:
            own = hip.local.array((order, width), kind)
            for row in range(order):
                for column in range(order):
                    own[row, column] = matrices[i, row, column]
                own[row, order] = sides[i, row]
            for pivot in range(order):
                for row in range(pivot + 1, order):
                    factor = own[row, pivot] / own[pivot, pivot]
                    for column in range(pivot, width):
                        own[row, column] -= factor * own[pivot, column]
            for row in range(order - 1, -1, -1):
                total = own[row, order]
                for column in range(row + 1, order):
                    total -= own[row, column] * own[column, order]
                own[row, order] = total / own[row, row]
            for row in range(order):
                sides[i, row] = own[row, order]

    return solve


def definite(order: int, dtype: str) -> np.ndarray:
    """Symmetric matrices that are positive definite."""
    half = np.random.default_rng(order).random((COUNT, order, order)).astype(dtype)
    return half @ half.transpose(0, 2, 1) + order * np.eye(order, dtype=dtype)


def private_arrays(kernel: Any, *arguments: Any) -> str:
    told = str(kernel[1, 64].explain(*arguments)).splitlines()
    return next((line for line in told if line.startswith("private arrays")), "")


@pytest.mark.parametrize(("order", "kind", "dtype", "in_registers"), [
    (1, float32, "f4", True), (3, float32, "f4", True), (4, float32, "f4", True), (4, float64, "f8", True),
    (5, float32, "f4", True), (8, float32, "f4", False), (8, float64, "f8", False), (13, float32, "f4", False),
])  # fmt: skip
@pytest.mark.sample(1)
def test_factors(order: int, kind: Any, dtype: str, in_registers: bool) -> None:
    matrices, kernel = definite(order, dtype), make_cholesky(order, kind)
    factors = np.full_like(matrices, np.nan)
    kernel[-(-COUNT // 64), 64](matrices, factors)
    np.testing.assert_allclose(factors, np.linalg.cholesky(matrices), rtol=1e-4 if dtype == "f4" else 1e-12, atol=1e-6)
    if hip.get_current_device().is_cpu:
        assert ("on the stack" in private_arrays(kernel, matrices, factors)) == (not in_registers)


@pytest.mark.parametrize(("order", "kind", "dtype"), [
    (1, float64, "f8"), (2, float32, "f4"), (3, float64, "f8"), (4, float32, "f4"), (4, float64, "f8"),
    (6, float64, "f8"), (11, float64, "f8"),
])  # fmt: skip
@pytest.mark.sample(2)
def test_solutions(order: int, kind: Any, dtype: str) -> None:
    matrices = definite(order, dtype)
    wanted = np.random.default_rng(7).random((COUNT, order)).astype(dtype)
    sides = (matrices @ wanted[:, :, None])[:, :, 0]
    make_solver(order, kind)[-(-COUNT // 32), 32](matrices, sides)
    np.testing.assert_allclose(sides, wanted, rtol=1e-3 if dtype == "f4" else 1e-10)
