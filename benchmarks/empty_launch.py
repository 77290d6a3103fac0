"""The cost of a launch for its caller: a kernel of 64 threads with three device arrays, which does almost nothing.

The forms are those that programs use: each configures the launch anew, as ``kernel[grid, block, ...]`` in a loop does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.case import Benchmark, Case
from benchmarks.environments import ON_GPUS, REQUIREMENTS
from benchmarks.launch_loop import THREADS, HipLaunches, Launches

MOST_BLOCKS = 1024


Form = Callable[[Any, int], Any]
"""Takes what the form needs and the number of the launch; returns the configured kernel."""


class HipForm(HipLaunches):
    """Launches in other forms."""

    def __init__(self, quick: bool, form: Form) -> None:
        super().__init__(quick)
        self.form = form
        stream = self.hip.stream()
        self.given = SimpleNamespace(
            kernel=self.kernel, stream=stream, foreign=SimpleNamespace(cuda_stream=stream.handle), one=np.int64(1)
        )

    def run(self) -> None:
        counts, x, y = self.device_arrays
        given, form = self.given, self.form
        for number in range(self.operations):
            form(given, number)(counts, x, y)
        self.launched += self.operations

    def settle(self) -> None:
        self.given.stream.synchronize()


FORMS: dict[str, Form] = {
    "stream": lambda given, number: given.kernel[1, THREADS, given.stream],
    "foreign-stream": lambda given, number: given.kernel[1, THREADS, given.foreign],
    "numpy-integers": lambda given, number: given.kernel[given.one, (THREADS,)],
    "changing-grid": lambda given, number: given.kernel[1 + number % MOST_BLOCKS, 1],
    "shared-memory": lambda given, number: given.kernel[1, THREADS, given.stream, 512],
    "forall": lambda given, number: given.kernel.forall(THREADS, THREADS),
}
"""Besides ``kernel[grid, block]``, integers that are the same each time."""


class HipTuples(HipLaunches):
    """Launches with two tuples, of numbers and of arrays."""

    def __init__(self, quick: bool) -> None:
        super().__init__(quick)
        hip = self.hip

        @hip.jit
        def count(counts, shape, factors):
            i = hip.grid(1)
            if i == 0 and i < shape[0] * shape[1]:
                counts[i] += factors[0][i] * factors[1][i]

        self.kernel = count

    def run(self) -> None:
        counts, x, y = self.device_arrays
        for _ in range(self.operations):
            self.kernel[1, THREADS](counts, (1, THREADS), (x, y))
        self.launched += self.operations


class Njit(Launches):
    """Calls of a hand-written ``njit(parallel=True)`` function, each of which waits until it has finished."""

    def __init__(self, quick: bool) -> None:
        super().__init__(quick)
        from numba import njit, prange

        @njit(parallel=True)
        def count(counts, x, y):
            for i in prange(THREADS):
                if i == 0:
                    counts[i] += x[i] * y[i]

        self.function = count

    def run(self) -> None:
        counts, x, y = self.arrays
        for _ in range(self.operations):
            self.function(counts, x, y)
        self.launched += self.operations

    def check(self) -> None:
        self.check_against_numpy(self.arrays[0])


def make_hipcc(quick: bool) -> Case:
    """The same loop in C++, on AMD GPUs."""
    from benchmarks.peers import hipcc

    return hipcc.Launches(quick)


BENCHMARK = Benchmark(
    name="empty-launch",
    description="one launch with three device arrays, the caller's time",
    peer="njit-parallel",
    scale=1e6,
    unit="us",
    implementations={"hip": HipLaunches, "njit-parallel": Njit, "hipcc": make_hipcc},
)

LAUNCH_FORMS = Benchmark(
    name="launch-forms",
    description="one launch, the caller's time, by the form in which it is written; hip is kernel[grid, block]",
    peer="hip",
    scale=1e6,
    unit="us",
    implementations={
        "hip": HipLaunches,
        **{name: partial(HipForm, form=form) for name, form in FORMS.items()},
        "tuples": HipTuples,
    },
    unable=dict.fromkeys((*REQUIREMENTS, *ON_GPUS), "has one form of a launch"),
)
