"""The Mandelbrot set: a two-dimensional grid, a device function, and threads that do very different amounts of work."""

import numpy as np
from numba import hip

HEIGHT, WIDTH = 480, 720
LIMIT = 100
TOP, LEFT, STEP = 1.2, -2.4, 1 / 200


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


def mandelbrot_numpy() -> np.ndarray:
    """The same image, all points of it one step at a time."""
    re = (LEFT + np.arange(WIDTH) * STEP)[None, :]
    im = (TOP - np.arange(HEIGHT) * STEP)[:, None]
    x = np.zeros((HEIGHT, WIDTH))
    y = np.zeros_like(x)
    image = np.full(x.shape, LIMIT, dtype=np.int32)
    for step in range(LIMIT):
        xx, yy = x * x, y * y
        image[(image == LIMIT) & (xx + yy >= 4.0)] = step
        alive = image == LIMIT
        x, y = np.where(alive, xx - yy + re, x), np.where(alive, 2.0 * x * y + im, y)
    return image


def main() -> None:
    image = np.zeros((HEIGHT, WIDTH), dtype=np.int32)
    block = (16, 16)
    grid = (-(-WIDTH // block[0]), -(-HEIGHT // block[1]))
    mandelbrot[grid, block](image, LEFT, TOP, STEP, LIMIT)

    # On the border of the set one rounding decides, and a compiler may fuse a product and a sum into one rounding.
    different = np.count_nonzero(image != mandelbrot_numpy())
    inside = np.count_nonzero(image == LIMIT)
    assert different <= image.size // 1000, f"{different} of {image.size} points differ from NumPy's"
    assert 0.17 < inside / image.size < 0.19, f"{inside} points are inside"
    print(f"mandelbrot: {WIDTH} x {HEIGHT} points, {inside:,} inside the set, {different} differ from NumPy's")


if __name__ == "__main__":
    main()
