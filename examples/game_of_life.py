"""Conway's Game of Life on a torus of bytes, one thread for each cell."""

from pathlib import Path

import numpy as np
from gallery import command_line, pictures
from numba import hip

SMALL = 50
BLOCK = (64, 4)


@hip.jit
def live(old, new):
    x, y = hip.grid(2)
    rows, columns = old.shape
    if x < columns and y < rows:
        neighbours = 0
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                if dx != 0 or dy != 0:
                    neighbours += old[(y + dy) % rows, (x + dx) % columns]
        new[y, x] = neighbours == 3 or (neighbours == 2 and old[y, x] == 1)


def reference(cells, steps):
    for _ in range(steps):
        shifts = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dx or dy]
        neighbours = sum(np.roll(cells, shift, (0, 1)) for shift in shifts)
        cells = ((neighbours == 3) | ((neighbours == 2) & (cells == 1))).astype(np.uint8)
    return cells


def main(size: int = 400, output: Path | None = None) -> None:
    steps = 60
    cells = (np.random.default_rng(8).random((size, size)) < 0.3).astype(np.uint8)
    old, new = hip.to_device(cells), hip.device_array_like(cells)
    grid = -(-size // BLOCK[0]), -(-size // BLOCK[1])
    frames = [cells]
    for step in range(steps):
        live[grid, BLOCK](old, new)
        old, new = new, old
        if output is not None and step % 2 == 1:
            frames.append(old.copy_to_host())

    found = old.copy_to_host()
    np.testing.assert_array_equal(found, reference(cells, steps))
    pictures.save_animation(output, frames, "gray_r")
    print(f"game of life: {size} x {size} cells, {steps} generations, {found.sum():,} alive, equal to NumPy's")


if __name__ == "__main__":
    command_line.run(main)
