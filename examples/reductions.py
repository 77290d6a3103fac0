"""Sums: by one call, by a function of Python as the operator, and by hand with shared memory and an atomic."""

import numpy as np
from gallery import command_line
from numba import float64, hip
from numba.hip import algorithms

SMALL = 5_000
THREADS = 256


@hip.jit
def add_up(values, total):
    """Each thread sums some values, each block its threads' in a tree, and the blocks add to *total*."""
    partial = hip.shared.array(THREADS, float64)
    thread = hip.threadIdx.x
    mine = 0.0
    for i in range(hip.grid(1), values.size, hip.gridsize(1)):
        mine += values[i]
    partial[thread] = mine
    width = THREADS // 2
    while width > 0:
        hip.syncthreads()
        if thread < width:
            partial[thread] += partial[thread + width]
        width //= 2
    if thread == 0:
        hip.atomic.add(total, 0, partial[0])


@hip.reduce
def add(a, b):
    return a + b


def main(size: int = 2_000_000) -> None:
    values = np.random.default_rng(2).random(size)
    on_device = hip.to_device(values)

    total = hip.zeros(1)
    add_up[128, THREADS](on_device, total)
    by_hand = total.copy_to_host()[0]
    by_operator = add(on_device)
    largest = algorithms.reduce(on_device, max)
    norm = algorithms.transform_reduce(on_device, lambda x: x * x, init=0.0) ** 0.5

    np.testing.assert_allclose([by_hand, by_operator], values.sum(), rtol=1e-11)
    assert largest == values.max()
    np.testing.assert_allclose(norm, np.linalg.norm(values), rtol=1e-11)
    print(f"reductions: {size:,} float64, sums, maximum and norm, NumPy's within 1e-11")


if __name__ == "__main__":
    command_line.run(main)
