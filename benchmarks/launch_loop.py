"""Launches in a loop, of a kernel with three arrays: the common part of the benchmarks of empty launches."""

from __future__ import annotations

import numpy as np

from benchmarks.case import Case

THREADS = 64
"""Threads of each launch."""


class Launches(Case):
    """Launches of a kernel that counts them, so that a missing one is noticed."""

    def __init__(self, quick: bool) -> None:
        self.operations = 50 if quick else 2000
        self.launched = 0
        self.arrays = [np.zeros(THREADS), np.ones(THREADS), np.ones(THREADS)]

    def check_against_numpy(self, counts: np.ndarray) -> None:
        """Element 0 of *counts* counts the launches; nothing else was written to."""
        expected = np.zeros(THREADS)
        expected[0] = self.launched
        np.testing.assert_array_equal(counts, expected)


class HipLaunches(Launches):
    """Launches on the default stream, one after the other; waiting for them is not timed."""

    def __init__(self, quick: bool) -> None:
        super().__init__(quick)
        from numba import hip

        @hip.jit
        def count(counts, x, y):
            i = hip.grid(1)
            if i == 0:
                counts[i] += x[i] * y[i]

        self.hip = hip
        self.kernel = count
        self.device_arrays = [hip.to_device(array) for array in self.arrays]

    def run(self) -> None:
        counts, x, y = self.device_arrays
        for _ in range(self.operations):
            self.kernel[1, THREADS](counts, x, y)
        self.launched += self.operations

    def settle(self) -> None:
        self.hip.synchronize()

    def check(self) -> None:
        self.check_against_numpy(self.device_arrays[0].copy_to_host())

    def device(self) -> str:
        return str(self.hip.get_current_device().name)
