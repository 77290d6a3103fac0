"""A strip of a warm plate on one device: what each process of `heat.py` holds and computes."""

from __future__ import annotations

import numpy as np
from numba import hip

BLOCK = (64, 4)
HOT = 100.0


@hip.jit(cache=True)
def average(new, old, first, last):
    """Rows *first* to *last* of *new*: the mean of four neighbours. The outermost columns stay as they are."""
    j, i = hip.grid(2)
    i += first
    if i < last and 0 < j < old.shape[1] - 1:
        new[i, j] = 0.25 * (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1])


class Strip:
    """Some rows of a plate, between two that belong to its neighbours or are an edge of the plate."""

    def __init__(self, shape: tuple[int, int], first_row: float) -> None:
        self.old, self.new = hip.zeros(shape), hip.zeros(shape)
        self.old[0] = self.new[0] = first_row
        self._outer, self._inner = hip.stream(), hip.stream()

    def compile(self) -> None:
        """Launch the kernel once with no rows to compute."""
        self._launch(1, 1, self._outer)
        self._outer.synchronize()

    def begin_step(self) -> None:
        """Compute the two outermost rows, which the neighbours need, and begin with those between them."""
        rows = self.old.shape[0]
        self._launch(1, 2, self._outer)
        self._launch(rows - 2, rows - 1, self._outer)
        self._launch(2, rows - 2, self._inner)
        self._outer.synchronize()

    def finish_step(self) -> None:
        """Wait for all rows."""
        self._inner.synchronize()
        self.old, self.new = self.new, self.old

    def _launch(self, first: int, last: int, stream) -> None:
        grid = -(-self.old.shape[1] // BLOCK[0]), -(-max(last - first, 1) // BLOCK[1])
        average[grid, BLOCK, stream](self.new, self.old, first, last)

    # What actors do, whose neighbours are in other processes that the caller connects.

    def step(self) -> tuple[np.ndarray, np.ndarray]:
        """Begin a step; returns its outermost rows."""
        self.begin_step()
        return self.new[1].copy_to_host(stream=self._outer), self.new[-2].copy_to_host(stream=self._outer)

    def receive(self, above, below) -> None:
        """End a step with what `step` returned for the strips *above* and *below*, or None at the edge of the plate."""
        if above is not None:
            self.new[0].copy_to_device(above[1], stream=self._outer)
        if below is not None:
            self.new[-1].copy_to_device(below[0], stream=self._outer)
        self._outer.synchronize()
        self.finish_step()

    def result(self) -> np.ndarray:
        """The rows between those of the neighbours."""
        return self.old.copy_to_host()[1:-1]


def make_plate(shape: tuple[int, int]) -> np.ndarray:
    """A cold plate with one hot edge."""
    plate = np.zeros(shape)
    plate[0] = HOT
    return plate


def strips(shape: tuple[int, int], count: int) -> list[tuple[tuple[int, int], float]]:
    """The arguments of `Strip` for each part of `make_plate`: a shape with the neighbours' rows, and the first row."""
    rows = [len(part) + 2 for part in np.array_split(np.arange(shape[0] - 2), count)]
    return [((number, shape[1]), HOT if strip == 0 else 0.0) for strip, number in enumerate(rows)]


def reference(plate: np.ndarray, steps: int) -> np.ndarray:
    """The same in NumPy, on one processor."""
    old = plate.copy()
    for _ in range(steps):
        new = old.copy()
        new[1:-1, 1:-1] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
        old = new
    return old
