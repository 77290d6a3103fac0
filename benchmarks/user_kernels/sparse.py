"""Sparse matrices times vectors, in the layouts and with the teams of threads that are usual."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from numba import float32, float64, hip

from benchmarks.user_kernels.definition import UserKernel, blocks, fast_peer, kernel, peer

THREADS = 128


def random_rows(rows: int, columns: int, filled: int, kind: type[np.floating]) -> dict[str, np.ndarray]:
    """A matrix in CSR whose rows have *filled* elements on average, a vector, and a place for the product."""
    rng = np.random.default_rng(11)
    lengths = rng.integers(filled // 2, filled * 3 // 2 + 1, rows)
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return {
        "starts": starts,
        "columns": rng.integers(0, columns, starts[-1]).astype(np.int32),
        "values": rng.random(starts[-1]).astype(kind),
        "vector": rng.random(columns).astype(kind),
        "product": np.zeros(rows, kind),
    }


def product_by_numpy(on: SimpleNamespace) -> dict[str, np.ndarray]:
    """The product of a matrix in CSR."""
    sums = np.add.reduceat(on.values.astype(np.float64) * on.vector[on.columns], on.starts[:-1])
    return {"product": sums.astype(on.product.dtype)}


@hip.jit
def rows_by_threads(starts, columns, values, vector, product):
    row = hip.grid(1)
    if row < product.size:
        total = 0.0
        for at in range(starts[row], starts[row + 1]):
            total += values[at] * vector[columns[at]]
        product[row] = total


def _rows_by_loop(starts, columns, values, vector, product):
    for row in range(product.size):
        total = values.dtype.type(0)
        for at in range(starts[row], starts[row + 1]):
            total += values[at] * vector[columns[at]]
        product[row] = total


rows_by_loop = peer(_rows_by_loop)
fast_rows_by_loop = fast_peer(_rows_by_loop)


@kernel("spmv-threads")
def BY_THREADS(quick: bool) -> UserKernel:
    """a sparse matrix in CSR of float64 with some 12 elements in a row, a thread for each row"""
    size = 500 if quick else 30_000
    return UserKernel(
        random_rows(size, size, 12, np.float64),
        ("product",),
        lambda on: rows_by_threads[blocks(size, THREADS), THREADS](
            on.starts, on.columns, on.values, on.vector, on.product
        ),
        lambda on: rows_by_loop(on.starts, on.columns, on.values, on.vector, on.product),
        rtol=1e-10,
        expected=product_by_numpy,
    )


@hip.jit(fastmath=True)
def rows_by_waves(starts, columns, values, vector, product):
    row = hip.grid(1) // hip.warpsize
    lane = hip.laneid
    if row < product.size:
        total = float32(0)
        for at in range(starts[row] + lane, starts[row + 1], hip.warpsize):
            total += values[at] * vector[columns[at]]
        step = hip.warpsize // 2
        while step > 0:
            total += hip.shfl_down_sync(0xFFFFFFFF, total, step)
            step //= 2
        if lane == 0:
            product[row] = total


@kernel("spmv-waves")
def BY_WAVES(quick: bool) -> UserKernel:
    """a sparse matrix in CSR of float32 with some 128 elements in a row, a wave for each row, sums by shuffles"""
    size = 50 if quick else 4000
    waves = THREADS // 64
    return UserKernel(
        random_rows(size, 20_000, 128, np.float32),
        ("product",),
        lambda on: rows_by_waves[blocks(size, waves), THREADS](on.starts, on.columns, on.values, on.vector, on.product),
        lambda on: fast_rows_by_loop(on.starts, on.columns, on.values, on.vector, on.product),
        rtol=1e-5,
        expected=product_by_numpy,
    )


@hip.jit(fastmath=True)
def rows_by_blocks(starts, columns, values, vector, product):
    sums = hip.shared.array(THREADS, float64)
    row, thread = hip.blockIdx.x, hip.threadIdx.x
    total = 0.0
    for at in range(starts[row] + thread, starts[row + 1], hip.blockDim.x):
        total += values[at] * vector[columns[at]]
    sums[thread] = total
    hip.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            sums[thread] += sums[thread + half]
        hip.syncthreads()
        half //= 2
    if thread == 0:
        product[row] = sums[0]


@kernel("spmv-blocks")
def BY_BLOCKS(quick: bool) -> UserKernel:
    """a sparse matrix in CSR of float64 with some 512 elements in a row, a block for each row, sums in shared memory"""
    size = 20 if quick else 1000
    return UserKernel(
        random_rows(size, 20_000, 512, np.float64),
        ("product",),
        lambda on: rows_by_blocks[size, THREADS](on.starts, on.columns, on.values, on.vector, on.product),
        lambda on: fast_rows_by_loop(on.starts, on.columns, on.values, on.vector, on.product),
        rtol=1e-10,
        expected=product_by_numpy,
    )


@hip.jit
def add_elements(rows, columns, values, vector, product):
    at = hip.grid(1)
    if at < values.size:
        hip.atomic.add(product, rows[at], values[at] * vector[columns[at]])


@peer
def add_elements_by_loop(rows, columns, values, vector, product):
    for at in range(values.size):
        product[rows[at]] += values[at] * vector[columns[at]]


@kernel("spmv-coo")
def COO(quick: bool) -> UserKernel:
    """a sparse matrix in COO of float32, by atomic additions"""
    size = 500 if quick else 20_000
    arrays = random_rows(size, size, 12, np.float32)
    starts = arrays.pop("starts")
    arrays["rows"] = np.repeat(np.arange(size, dtype=np.int32), np.diff(starts))
    count = arrays["values"].size
    return UserKernel(
        arrays,
        ("product",),
        lambda on: add_elements[blocks(count, THREADS), THREADS](on.rows, on.columns, on.values, on.vector, on.product),
        lambda on: add_elements_by_loop(on.rows, on.columns, on.values, on.vector, on.product),
        rtol=1e-5,
        restored=("product",),
    )


@hip.jit
def rows_of_ell(columns, values, vector, product):
    row = hip.grid(1)
    if row < product.size:
        total = float32(0)
        for place in range(columns.shape[0]):
            column = columns[place, row]
            if column >= 0:
                total += values[place, row] * vector[column]
        product[row] = total


@peer
def rows_of_ell_by_loop(columns, values, vector, product):
    product[:] = 0
    for place in range(columns.shape[0]):
        for row in range(product.size):
            column = columns[place, row]
            if column >= 0:
                product[row] += values[place, row] * vector[column]


@kernel("spmv-ell")
def ELL(quick: bool) -> UserKernel:
    """a sparse matrix in ELL of float32: elements of rows side by side, -1 where a row has no more"""
    size, filled = (500, 12) if quick else (30_000, 12)
    rng = np.random.default_rng(12)
    columns = rng.integers(0, size, (filled, size)).astype(np.int32)
    columns[np.arange(filled)[:, None] >= rng.integers(4, filled + 1, size)] = -1
    arrays = {
        "columns": columns,
        "values": rng.random((filled, size), np.float32),
        "vector": rng.random(size, np.float32),
        "product": np.zeros(size, np.float32),
    }
    return UserKernel(
        arrays,
        ("product",),
        lambda on: rows_of_ell[blocks(size, THREADS), THREADS](on.columns, on.values, on.vector, on.product),
        lambda on: rows_of_ell_by_loop(on.columns, on.values, on.vector, on.product),
        rtol=1e-5,
    )
