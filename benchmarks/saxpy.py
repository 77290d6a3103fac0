"""``y = a * x + y`` over arrays that are on the device already: the bandwidth of memory, and little else."""

from __future__ import annotations

import numpy as np

from benchmarks.case import Benchmark, Case

A = np.float32(0.5)


class _Saxpy(Case):
    def __init__(self, quick: bool) -> None:
        rng = np.random.default_rng(1)
        size = 2**16 if quick else 2**24
        self.x = rng.standard_normal(size, dtype=np.float32)
        self.y = rng.standard_normal(size, dtype=np.float32)

    def check_against_numpy(self, result: np.ndarray) -> None:
        """*result* has to be one step from ``self.y``; a fused product and sum is rounded once instead of twice."""
        np.testing.assert_allclose(result, A * self.x + self.y, rtol=1e-5, atol=1e-6)


class Hip(_Saxpy):
    """A kernel with one thread for each element."""

    THREADS = 256

    def __init__(self, quick: bool) -> None:
        super().__init__(quick)
        from numba import hip

        @hip.jit
        def saxpy(a, x, y):
            i = hip.grid(1)
            if i < y.size:
                y[i] = a * x[i] + y[i]

        self.hip = hip
        self.kernel = saxpy
        self.blocks = -(-self.x.size // self.THREADS)
        self.d_x = hip.to_device(self.x)
        self.d_y = hip.to_device(self.y)

    def run(self) -> None:
        self.kernel[self.blocks, self.THREADS](A, self.d_x, self.d_y)
        self.hip.synchronize()

    def check(self) -> None:
        self.d_y.copy_to_device(self.y)
        self.run()
        self.check_against_numpy(self.d_y.copy_to_host())

    def device(self) -> str:
        return str(self.hip.get_current_device().name)


class Njit(_Saxpy):
    """Hand-written ``njit(parallel=True)``."""

    def __init__(self, quick: bool) -> None:
        super().__init__(quick)
        from numba import njit, prange

        @njit(parallel=True)
        def saxpy(a, x, y):
            for i in prange(y.size):
                y[i] = a * x[i] + y[i]

        self.function = saxpy
        self.own_y = self.y.copy()

    def run(self) -> None:
        self.function(A, self.x, self.own_y)

    def check(self) -> None:
        self.own_y[:] = self.y
        self.run()
        self.check_against_numpy(self.own_y)


BENCHMARK = Benchmark(
    name="saxpy",
    description="y = a * x + y, 16M float32 on the device",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations={"hip": Hip, "njit-parallel": Njit},
)
