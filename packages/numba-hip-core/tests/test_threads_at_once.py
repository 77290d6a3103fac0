"""Many Python threads that begin at the same time, with nothing compiled yet; without the interpreter's lock, too."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import hip

THREADS = 6


def test_first_use_by_many_threads():
    """Both functions are compiled for two types by whoever comes first; every launch of every thread counts."""

    @hip.jit(device=True)
    def add_half(value):
        return value + value / 2

    @hip.jit
    def kernel(source, target, launches):
        index = hip.grid(1)
        if index < source.size:
            target[index] = add_half(source[index])
        if index == 0:
            hip.atomic.add(launches, 0, 1)

    launches = hip.to_device(np.zeros(1, np.int64))
    together = threading.Barrier(THREADS, timeout=30)

    def work(number):
        source = np.arange(3000, dtype=(np.float32, np.float64)[number % 2]) + number
        stream = hip.stream()
        together.wait()
        for _ in range(5):
            given = hip.to_device(source, stream=stream)
            target = hip.device_array_like(given)
            kernel[12, 256, stream](given, target, launches)
            kernel[12, 256](given, target, launches)
            stream.synchronize()
            np.testing.assert_array_equal(target.copy_to_host(), source * 1.5)
        return number

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(work, range(THREADS))) == list(range(THREADS))
    assert launches.copy_to_host()[0] == THREADS * 5 * 2
    assert len(kernel.signatures) == 2
