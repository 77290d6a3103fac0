"""Heat in a plate: many time steps in one launch, all threads of the grid wait for each other."""

from pathlib import Path

import numpy as np
from gallery import command_line, pictures
from numba import hip

SMALL = 40
BLOCK = (32, 8)


@hip.jit
def diffuse(warm, next_warm, steps, rate):
    """*steps* steps; the edges stay as they are. Rows are shared out among the blocks there are."""
    column = hip.grid(1)
    for _ in range(steps):
        for row in range(1 + hip.blockIdx.y * hip.blockDim.y + hip.threadIdx.y, warm.shape[0] - 1, hip.gridsize(2)[1]):
            if 0 < column < warm.shape[1] - 1:
                here = warm[row, column]
                around = warm[row - 1, column] + warm[row + 1, column] + warm[row, column - 1] + warm[row, column + 1]
                next_warm[row, column] = here + rate * (around - 4 * here)
        hip.cg.this_grid().sync()
        warm, next_warm = next_warm, warm


def reference(warm, steps, rate):
    warm = warm.copy()
    for _ in range(steps):
        around = warm[:-2, 1:-1] + warm[2:, 1:-1] + warm[1:-1, :-2] + warm[1:-1, 2:]
        warm[1:-1, 1:-1] = warm[1:-1, 1:-1] + rate * (around - 4 * warm[1:-1, 1:-1])
    return warm


def start(size):
    """A cold plate with two hot spots and a warm edge."""
    plate = np.zeros((size, size))
    third = max(size // 3, 1)
    plate[third : third + third // 2 + 1, third : third + third // 2 + 1] = 100.0
    plate[-third:-1, -third // 2 : -1] = 60.0
    plate[0] = 40.0
    return plate


def main(size: int = 256, output: Path | None = None) -> None:
    steps, rate, count = 50, 0.2, 40 if output else 4
    plate = start(size)
    warm, next_warm = hip.to_device(plate), hip.to_device(plate)
    grid = -(-size // BLOCK[0]), 2  # all blocks of a cooperative launch run at once, so there are few
    frames = [plate]
    for _ in range(count):
        diffuse[grid, BLOCK](warm, next_warm, steps, rate)
        frames.append(warm.copy_to_host())  # the number of steps is even

    np.testing.assert_allclose(frames[4], reference(plate, 4 * steps, rate), rtol=1e-12, atol=1e-12)
    pictures.save_animation(output, frames)
    print(f"heat equation: {size} x {size} points, {count * steps} steps in {count} launches, NumPy's within 1e-12")


if __name__ == "__main__":
    command_line.run(main)
