"""Matrix cores: a product of float16 matrices, tile by tile, in the instructions that AMD GPUs have for it."""

import time

import numpy as np
from gallery import command_line
from numba import hip

SMALL = 70
SIDE = 64
"""A block computes SIDE x SIDE elements of the product, from as many of each factor at a time."""

SHAPE = (16, 16, 32)
"""Rows, columns and depth of what a wave multiplies at once: one or two instructions of every GPU with matrix cores."""

PITCH = SIDE + 8
"""Elements from one row to the next in shared memory: more than there are, so that rows start in different banks."""


@hip.jit
def fill_transposed(tile, y, first, left):
    """Copy SIDE x SIDE elements of *y* transposed; zeros beyond the end. Blocks are SIDE threads wide."""
    across = hip.threadIdx.x
    for down in range(hip.threadIdx.y, SIDE, hip.blockDim.y):
        k, column = first + down, left + across
        tile[across, down] = y[k, column] if k < y.shape[0] and column < y.shape[1] else 0


@hip.jit
def multiply(x, y, product):
    """Four waves of a block compute a quarter of its tile each: two by two fragments. Matrices of any size."""
    tile_x = hip.shared.array((SIDE, PITCH), np.float16)
    tile_y = hip.shared.array((SIDE, PITCH), np.float16)
    top, left = hip.blockIdx.y * SIDE, hip.blockIdx.x * SIDE
    wave = (hip.threadIdx.y * SIDE + hip.threadIdx.x) // hip.warpsize
    row, column = wave // 2 * 32, wave % 2 * 32

    x0, x1 = hip.matrix.fragment("a", SHAPE, np.float16), hip.matrix.fragment("a", SHAPE, np.float16)
    y0, y1 = hip.matrix.fragment("b", SHAPE, np.float16), hip.matrix.fragment("b", SHAPE, np.float16)
    sum00 = hip.matrix.fragment("accumulator", SHAPE, np.float32)
    sum01 = hip.matrix.fragment("accumulator", SHAPE, np.float32)
    sum10 = hip.matrix.fragment("accumulator", SHAPE, np.float32)
    sum11 = hip.matrix.fragment("accumulator", SHAPE, np.float32)
    hip.matrix.fill(sum00, 0)
    hip.matrix.fill(sum01, 0)
    hip.matrix.fill(sum10, 0)
    hip.matrix.fill(sum11, 0)

    for first in range(0, x.shape[1], SIDE):
        hip.shared.load(tile_x[:, :SIDE], x, (top, first))  # zeros beyond the end
        fill_transposed(tile_y, y, first, left)
        hip.syncthreads()
        for k in range(0, SIDE, 32):
            hip.matrix.load(x0, tile_x, row, k)
            hip.matrix.load(x1, tile_x, row + 16, k)
            hip.matrix.load(y0, tile_y.T, k, column)
            hip.matrix.load(y1, tile_y.T, k, column + 16)
            hip.matrix.mma(sum00, x0, y0, sum00)
            hip.matrix.mma(sum01, x0, y1, sum01)
            hip.matrix.mma(sum10, x1, y0, sum10)
            hip.matrix.mma(sum11, x1, y1, sum11)
        hip.syncthreads()

    hip.matrix.store(sum00, product, top + row, left + column, partial=True)
    hip.matrix.store(sum01, product, top + row, left + column + 16, partial=True)
    hip.matrix.store(sum10, product, top + row + 16, left + column, partial=True)
    hip.matrix.store(sum11, product, top + row + 16, left + column + 16, partial=True)


def main(size: int = 500) -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.random((size, size), np.float32).astype(np.float16) for _ in range(2))
    blocks = -(-size // SIDE)
    d_x, d_y = hip.to_device(x), hip.to_device(y)
    d_product = hip.device_array((size, size), np.float32)
    threads = (SIDE, 4 * hip.get_current_device().WARP_SIZE // SIDE)
    multiply[(blocks, blocks), threads](d_x, d_y, d_product)  # compiles
    hip.synchronize()
    start = time.perf_counter()
    multiply[(blocks, blocks), threads](d_x, d_y, d_product)
    hip.synchronize()
    seconds = time.perf_counter() - start

    product = d_product.copy_to_host()
    np.testing.assert_allclose(product, x.astype(np.float32) @ y.astype(np.float32), rtol=1e-5)
    rate = 2 * size**3 / seconds / 1e9
    print(f"matrix cores: {size} x {size} float16, {rate:.1f} GFLOP/s, NumPy's float32 product within 1e-5")


if __name__ == "__main__":
    command_line.run(main)
