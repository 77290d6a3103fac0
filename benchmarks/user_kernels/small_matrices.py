"""Many small systems, each of which is solved by one thread."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, hip

from benchmarks.user_kernels.definition import UserKernel, blocks, kernel, peer

THREADS = 64


def definite(count: int, size: int) -> np.ndarray:
    """Symmetric positive definite matrices of float32."""
    factors = np.random.default_rng(111).random((count, size, size))
    products: np.ndarray = factors @ factors.transpose(0, 2, 1) + size * np.eye(size)
    return products.astype(np.float32)


@hip.jit
def cholesky(matrices, factors):
    i = hip.grid(1)
    if i < matrices.shape[0]:
        own = hip.local.array((4, 4), float32)
        for row in range(4):
            for column in range(row + 1):
                total = matrices[i, row, column]
                for k in range(column):
                    total -= own[row, k] * own[column, k]
                if row == column:
                    own[row, row] = math.sqrt(total)
                else:
                    own[row, column] = total / own[column, column]
        for row in range(4):
            for column in range(4):
                factors[i, row, column] = own[row, column] if column <= row else 0


@peer
def cholesky_by_loop(matrices, factors):
    for i in range(matrices.shape[0]):
        for row in range(4):
            for column in range(row + 1):
                total = matrices[i, row, column]
                for k in range(column):
                    total -= factors[i, row, k] * factors[i, column, k]
                if row == column:
                    factors[i, row, row] = math.sqrt(total)
                else:
                    factors[i, row, column] = total / factors[i, column, column]
            for column in range(row + 1, 4):
                factors[i, row, column] = 0


@kernel("cholesky-4x4")
def CHOLESKY(quick: bool) -> UserKernel:
    """Cholesky's factors of matrices of 4 x 4, in a private array"""
    count = 200 if quick else 20_000
    matrices = definite(count, 4)
    return UserKernel(
        {"matrices": matrices, "factors": np.zeros_like(matrices)},
        ("factors",),
        lambda on: cholesky[blocks(count, THREADS), THREADS](on.matrices, on.factors),
        lambda on: cholesky_by_loop(on.matrices, on.factors),
        rtol=1e-4,
        atol=1e-5,
    )


@hip.jit
def orthonormalise(matrices, result):
    i = hip.grid(1)
    if i < matrices.shape[0]:
        own = hip.local.array((8, 8), float32)
        for row in range(8):
            for column in range(8):
                own[row, column] = matrices[i, row, column]
        for row in range(8):
            for other in range(row):
                product = float32(0)
                for k in range(8):
                    product += own[row, k] * own[other, k]
                for k in range(8):
                    own[row, k] -= product * own[other, k]
            length = float32(0)
            for k in range(8):
                length += own[row, k] * own[row, k]
            length = math.sqrt(length)
            for k in range(8):
                own[row, k] /= length
        for row in range(8):
            for column in range(8):
                result[i, row, column] = own[row, column]


@peer
def orthonormalise_by_loop(matrices, result):
    for i in range(matrices.shape[0]):
        own = result[i]
        own[:] = matrices[i]
        for row in range(8):
            for other in range(row):
                product = np.float32(0)
                for k in range(8):
                    product += own[row, k] * own[other, k]
                for k in range(8):
                    own[row, k] -= product * own[other, k]
            length = np.float32(0)
            for k in range(8):
                length += own[row, k] * own[row, k]
            length = np.float32(1) / math.sqrt(length)
            for k in range(8):
                own[row, k] *= length


@kernel("gram-schmidt-8x8")
def GRAM_SCHMIDT(quick: bool) -> UserKernel:
    """orthonormal rows of matrices of 8 x 8, in a private array"""
    count = 100 if quick else 3000
    matrices = definite(count, 8)
    return UserKernel(
        {"matrices": matrices, "result": np.zeros_like(matrices)},
        ("result",),
        lambda on: orthonormalise[blocks(count, THREADS), THREADS](on.matrices, on.result),
        lambda on: orthonormalise_by_loop(on.matrices, on.result),
        rtol=1e-3,
        atol=1e-4,
    )


@hip.jit
def invert(m, inverse):
    i = hip.grid(1)
    if i < m.shape[0]:
        a = m[i, 1, 1] * m[i, 2, 2] - m[i, 1, 2] * m[i, 2, 1]
        b = m[i, 1, 2] * m[i, 2, 0] - m[i, 1, 0] * m[i, 2, 2]
        c = m[i, 1, 0] * m[i, 2, 1] - m[i, 1, 1] * m[i, 2, 0]
        factor = 1 / (m[i, 0, 0] * a + m[i, 0, 1] * b + m[i, 0, 2] * c)
        inverse[i, 0, 0] = a * factor
        inverse[i, 1, 0] = b * factor
        inverse[i, 2, 0] = c * factor
        inverse[i, 0, 1] = (m[i, 0, 2] * m[i, 2, 1] - m[i, 0, 1] * m[i, 2, 2]) * factor
        inverse[i, 1, 1] = (m[i, 0, 0] * m[i, 2, 2] - m[i, 0, 2] * m[i, 2, 0]) * factor
        inverse[i, 2, 1] = (m[i, 0, 1] * m[i, 2, 0] - m[i, 0, 0] * m[i, 2, 1]) * factor
        inverse[i, 0, 2] = (m[i, 0, 1] * m[i, 1, 2] - m[i, 0, 2] * m[i, 1, 1]) * factor
        inverse[i, 1, 2] = (m[i, 0, 2] * m[i, 1, 0] - m[i, 0, 0] * m[i, 1, 2]) * factor
        inverse[i, 2, 2] = (m[i, 0, 0] * m[i, 1, 1] - m[i, 0, 1] * m[i, 1, 0]) * factor


@peer
def invert_by_loop(m, inverse):
    for i in range(m.shape[0]):
        a = m[i, 1, 1] * m[i, 2, 2] - m[i, 1, 2] * m[i, 2, 1]
        b = m[i, 1, 2] * m[i, 2, 0] - m[i, 1, 0] * m[i, 2, 2]
        c = m[i, 1, 0] * m[i, 2, 1] - m[i, 1, 1] * m[i, 2, 0]
        factor = 1 / (m[i, 0, 0] * a + m[i, 0, 1] * b + m[i, 0, 2] * c)
        inverse[i, 0, 0] = a * factor
        inverse[i, 1, 0] = b * factor
        inverse[i, 2, 0] = c * factor
        inverse[i, 0, 1] = (m[i, 0, 2] * m[i, 2, 1] - m[i, 0, 1] * m[i, 2, 2]) * factor
        inverse[i, 1, 1] = (m[i, 0, 0] * m[i, 2, 2] - m[i, 0, 2] * m[i, 2, 0]) * factor
        inverse[i, 2, 1] = (m[i, 0, 1] * m[i, 2, 0] - m[i, 0, 0] * m[i, 2, 1]) * factor
        inverse[i, 0, 2] = (m[i, 0, 1] * m[i, 1, 2] - m[i, 0, 2] * m[i, 1, 1]) * factor
        inverse[i, 1, 2] = (m[i, 0, 2] * m[i, 1, 0] - m[i, 0, 0] * m[i, 1, 2]) * factor
        inverse[i, 2, 2] = (m[i, 0, 0] * m[i, 1, 1] - m[i, 0, 1] * m[i, 1, 0]) * factor


@kernel("inverse-3x3")
def INVERSE(quick: bool) -> UserKernel:
    """inverses of matrices of 3 x 3 by cofactors, float64"""
    count = 200 if quick else 20_000
    matrices = definite(count, 3).astype(np.float64)
    return UserKernel(
        {"m": matrices, "inverse": np.zeros_like(matrices)},
        ("inverse",),
        lambda on: invert[blocks(count, THREADS), THREADS](on.m, on.inverse),
        lambda on: invert_by_loop(on.m, on.inverse),
        rtol=1e-8,
        atol=1e-12,
    )


@hip.jit
def thomas(lower, diagonal, upper, right, factors, solution):
    j = hip.grid(1)
    rows = diagonal.shape[0]
    if j < diagonal.shape[1]:
        factors[0, j] = upper[0, j] / diagonal[0, j]
        solution[0, j] = right[0, j] / diagonal[0, j]
        for i in range(1, rows):
            pivot = diagonal[i, j] - lower[i, j] * factors[i - 1, j]
            factors[i, j] = upper[i, j] / pivot
            solution[i, j] = (right[i, j] - lower[i, j] * solution[i - 1, j]) / pivot
        for i in range(rows - 2, -1, -1):
            solution[i, j] -= factors[i, j] * solution[i + 1, j]


@peer
def thomas_by_loop(lower, diagonal, upper, right, factors, solution):
    rows, columns = diagonal.shape
    for j in range(columns):
        factors[0, j] = upper[0, j] / diagonal[0, j]
        solution[0, j] = right[0, j] / diagonal[0, j]
    for i in range(1, rows):
        for j in range(columns):
            inverse = 1 / (diagonal[i, j] - lower[i, j] * factors[i - 1, j])
            factors[i, j] = upper[i, j] * inverse
            solution[i, j] = (right[i, j] - lower[i, j] * solution[i - 1, j]) * inverse
    for i in range(rows - 2, -1, -1):
        for j in range(columns):
            solution[i, j] -= factors[i, j] * solution[i + 1, j]


@kernel("thomas-columns")
def THOMAS(quick: bool) -> UserKernel:
    """a tridiagonal system for each column, by Thomas' algorithm, float64"""
    rows, columns = (10, 100) if quick else (64, 1500)
    rng = np.random.default_rng(112)
    arrays = {name: rng.random((rows, columns)) for name in ("lower", "upper", "right")}
    arrays["diagonal"] = 3 + rng.random((rows, columns))
    arrays |= {name: np.zeros((rows, columns)) for name in ("factors", "solution")}
    return UserKernel(
        arrays,
        ("solution",),
        lambda on: thomas[blocks(columns, THREADS), THREADS](
            on.lower, on.diagonal, on.upper, on.right, on.factors, on.solution
        ),
        lambda on: thomas_by_loop(on.lower, on.diagonal, on.upper, on.right, on.factors, on.solution),
        rtol=1e-8,
    )
