"""Matrix product: tiles of both factors in shared memory, so that each element is loaded once for 16 threads."""

import time

import numpy as np
from gallery import command_line
from numba import float32, hip

SMALL = 50
TILE = 16


@hip.jit
def multiply(a, b, product):
    """One thread for each element of *product*; the sizes may be any, tiles are filled up with zeros."""
    tile_a = hip.shared.array((TILE, TILE), float32)
    tile_b = hip.shared.array((TILE, TILE), float32)
    column, row = hip.grid(2)
    x, y = hip.threadIdx.x, hip.threadIdx.y
    total = float32(0)
    for first in range(0, a.shape[1], TILE):
        inside_a = row < a.shape[0] and first + x < a.shape[1]
        inside_b = first + y < b.shape[0] and column < b.shape[1]
        tile_a[y, x] = a[row, first + x] if inside_a else 0
        tile_b[y, x] = b[first + y, column] if inside_b else 0
        hip.syncthreads()
        for k in range(TILE):
            total += tile_a[y, k] * tile_b[k, x]
        hip.syncthreads()
    if row < product.shape[0] and column < product.shape[1]:
        product[row, column] = total


def main(size: int = 777) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.random((size, size), np.float32), rng.random((size, size), np.float32)
    d_a, d_b, d_product = hip.to_device(a), hip.to_device(b), hip.device_array((size, size), np.float32)
    blocks = -(-size // TILE)
    multiply[(blocks, blocks), (TILE, TILE)](d_a, d_b, d_product)  # compiles
    hip.synchronize()
    start = time.perf_counter()
    multiply[(blocks, blocks), (TILE, TILE)](d_a, d_b, d_product)
    hip.synchronize()
    seconds = time.perf_counter() - start

    np.testing.assert_allclose(d_product.copy_to_host(), a @ b, rtol=1e-4)
    print(f"tiled matmul: {size} x {size} float32, {2 * size**3 / seconds / 1e9:.1f} GFLOP/s, NumPy's within 1e-4")


if __name__ == "__main__":
    command_line.run(main)
