"""A blurred image: weights in constant memory, pixels with their surroundings in shared memory."""

from pathlib import Path

import numpy as np
from gallery import command_line, pictures
from numba import float32, hip

SMALL = 50
RADIUS = 3
TILE = 16
SIDE = TILE + 2 * RADIUS
WEIGHTS = np.exp(-(np.arange(-RADIUS, RADIUS + 1) ** 2) / 4.0).astype(np.float32)
WEIGHTS /= WEIGHTS.sum()


@hip.jit
def blur(image, blurred):
    """Each block loads its tile and *RADIUS* pixels around it; beyond the edge, those at the edge count."""
    weights = hip.const.array_like(WEIGHTS)
    tile = hip.shared.array((SIDE, SIDE), float32)
    x, y = hip.threadIdx.x, hip.threadIdx.y
    left, top = hip.blockIdx.x * TILE - RADIUS, hip.blockIdx.y * TILE - RADIUS
    for i in range(y, SIDE, TILE):
        for j in range(x, SIDE, TILE):
            row = min(max(top + i, 0), image.shape[0] - 1)
            column = min(max(left + j, 0), image.shape[1] - 1)
            tile[i, j] = image[row, column]
    hip.syncthreads()
    column, row = hip.grid(2)
    if row < image.shape[0] and column < image.shape[1]:
        total = float32(0)
        for i in range(2 * RADIUS + 1):
            for j in range(2 * RADIUS + 1):
                total += weights[i] * weights[j] * tile[y + i, x + j]
        blurred[row, column] = total


def draw(size):
    """Rings and a chequerboard, with noise."""
    y, x = np.mgrid[:size, :size] / size - 0.5
    rings = 0.5 + 0.5 * np.sin(40 * np.hypot(x, y) ** 1.5 * 6)
    squares = ((x * 12).astype(int) + (y * 12).astype(int)) % 2
    noise = np.random.default_rng(5).normal(0, 0.15, (size, size))
    return (np.where(x * y > 0, rings, squares) + noise).astype(np.float32)


def reference(image):
    padded = np.pad(image.astype(np.float64), RADIUS, mode="edge")
    rows = sum(w * padded[i : i + image.shape[0]] for i, w in enumerate(WEIGHTS))
    return sum(w * rows[:, i : i + image.shape[1]] for i, w in enumerate(WEIGHTS))


def main(size: int = 500, output: Path | None = None) -> None:
    image = draw(size)
    blurred = np.zeros_like(image)
    blocks = -(-size // TILE)
    blur[(blocks, blocks), (TILE, TILE)](image, blurred)

    np.testing.assert_allclose(blurred, reference(image), rtol=1e-4, atol=1e-5)
    pictures.save_image(output, np.hstack([image, blurred]), "gray")
    print(
        f"image convolution: {size} x {size} pixels, {2 * RADIUS + 1} x {2 * RADIUS + 1} weights, NumPy's within 1e-4"
    )


if __name__ == "__main__":
    command_line.run(main)
