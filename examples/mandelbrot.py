"""The Mandelbrot set: a two-dimensional grid, a device function, and threads that do very different amounts of work."""

from pathlib import Path

import numpy as np
from gallery import command_line, pictures
from numba import hip

SMALL = 72
LIMIT = 100
TOP, LEFT = 1.2, -2.4


@hip.jit(device=True)
def escape_time(re, im, limit):
    """After how many steps the orbit of this point leaves the circle of radius 2; *limit* if it has not by then."""
    x = y = 0.0
    for step in range(limit):
        xx, yy = x * x, y * y
        if xx + yy >= 4.0:
            return step
        x, y = xx - yy + re, 2.0 * x * y + im
    return limit


@hip.jit
def mandelbrot(image, left, top, step, limit):
    column, row = hip.grid(2)
    if row < image.shape[0] and column < image.shape[1]:
        image[row, column] = escape_time(left + column * step, top - row * step, limit)


def mandelbrot_numpy(height: int, width: int) -> np.ndarray:
    """The same image, all points of it one step at a time."""
    step = 2.4 / height
    re = (LEFT + np.arange(width) * step)[None, :]
    im = (TOP - np.arange(height) * step)[:, None]
    x = np.zeros((height, width))
    y = np.zeros_like(x)
    image = np.full(x.shape, LIMIT, dtype=np.int32)
    for count in range(LIMIT):
        xx, yy = x * x, y * y
        image[(image == LIMIT) & (xx + yy >= 4.0)] = count
        alive = image == LIMIT
        x, y = np.where(alive, xx - yy + re, x), np.where(alive, 2.0 * x * y + im, y)
    return image


def main(size: int = 480, output: Path | None = None) -> None:
    height, width = size, size * 3 // 2
    image = np.zeros((height, width), dtype=np.int32)
    block = (16, 16)
    grid = (-(-width // block[0]), -(-height // block[1]))
    mandelbrot[grid, block](image, LEFT, TOP, 2.4 / height, LIMIT)

    # On the border of the set one rounding decides, and a compiler may fuse a product and a sum into one rounding.
    different = np.count_nonzero(image != mandelbrot_numpy(height, width))
    inside = np.count_nonzero(image == LIMIT)
    assert different <= image.size // 1000, f"{different} of {image.size} points differ from NumPy's"
    assert 0.17 < inside / image.size < 0.19, f"{inside} points are inside"
    pictures.save_image(output, np.log1p(image))
    print(f"mandelbrot: {width} x {height} points, {inside:,} inside the set, {different} differ from NumPy's")


if __name__ == "__main__":
    command_line.run(main)
