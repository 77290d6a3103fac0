"""Rows of arrays in kernels: attributes, indices, and NumPy's functions that need no memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.supported.model import INTEGERS, row

VECTOR = np.array([3.0, 1.0, 2.0, np.nan])
WHOLE = np.array([3.0, 1.0, 2.0, 5.0])
MATRIX = np.arange(12.0).reshape(3, 4)
SECTION = "Arrays"


@row(SECTION, "`shape`, `size`, `ndim`, `strides`, `itemsize`, `len(a)`")
def attributes(x: Any) -> Any:
    return MATRIX.shape[1] + MATRIX.size + MATRIX.ndim + MATRIX.strides[0] + MATRIX.itemsize + len(MATRIX)


@row(SECTION, "views: slices, `a.T`, `a.transpose(axes)`, `a.ravel()`, `a.reshape(...)`")
def views(x: Any) -> Any:
    turned = MATRIX.T[1, 2] + MATRIX.transpose((1, 0))[3, 2]
    return turned + MATRIX[:, 1:3][x % 3, 1] + MATRIX.ravel()[5] + MATRIX.reshape(4, 3)[1, 1]


@row(SECTION, "reductions: `a.sum()`, `a.prod()`, `a.mean()`, `a.min()`, `a.max()`, `a.argmin()`, `a.argmax()`",
     close=True)  # fmt: skip
def reductions(x: Any) -> Any:
    first = WHOLE.sum() + WHOLE.prod() + WHOLE.mean() + WHOLE.min()
    return first + WHOLE.max() + WHOLE.argmin() + WHOLE.argmax() + x


@row(SECTION, "`np.sum`, `np.mean`, `np.var`, `np.std`, `np.count_nonzero`", close=True)
def functions(x: Any) -> Any:
    first = np.sum(WHOLE) + np.mean(WHOLE) + np.var(WHOLE) + np.std(WHOLE) + np.count_nonzero(WHOLE)
    return first + x


@row(SECTION, "`np.nansum`, `np.nanmin`, `np.nanmax`, `np.nanmean`", close=True)
def without_nan(x: Any) -> Any:
    return np.nansum(VECTOR) + np.nanmin(VECTOR) + np.nanmax(VECTOR) + np.nanmean(VECTOR) + x


@row(SECTION, "`np.dot`, `np.vdot`, `a @ b` of vectors; `np.linalg.norm`, `np.trace`", close=True)
def products(x: Any) -> Any:
    return np.dot(WHOLE, WHOLE) + WHOLE @ WHOLE + np.linalg.norm(WHOLE) + np.trace(MATRIX) + x


@row(SECTION, "`np.searchsorted`, `x in a`", INTEGERS)
def search(x: Any) -> Any:
    return np.searchsorted(MATRIX.ravel(), x) + (100 if float(x) in WHOLE else 200)


@row(SECTION, "`for` over an array, `np.ndindex(a.shape)`, `np.ndenumerate(a)`, `a.flat`")
def iteration(x: Any) -> Any:
    total = 0.0
    for value in WHOLE:
        total += value
    for i, j in np.ndindex(MATRIX.shape):
        total += MATRIX[i, j] * i
    for (_, j), value in np.ndenumerate(MATRIX):
        total += value * j
    for value in MATRIX.flat:
        total += value
    return total + x
