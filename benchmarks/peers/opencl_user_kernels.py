"""Some of the kernels of users in OpenCL; they run in an environment that has Numba, too, as it makes their data."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl

from benchmarks.peers.opencl_device import OpenCL as OpenCL
from benchmarks.peers.opencl_device import context, in_order, kernel_of, launcher, round_up


def julia_f64(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    height, width = problem.arrays["image"].shape
    values = (np.float64(-0.8), np.float64(0.156), np.int32(50), on.image, np.int32(height), np.int32(width))
    return launcher("julia_f64", (round_up(width, 16), round_up(height, 16)), (16, 16), *values)


def fft_stages(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    size = problem.arrays["values"].size
    stages = [1 << bit for bit in range(size.bit_length() - 1)]
    threads, block = (round_up(size // 2, 256),), (256,)
    return in_order(
        _restore(problem, on, "values"),
        *(
            launcher("fft_stages", threads, block, on.values, on.factors, np.int32(half), np.int32(size))
            for half in stages
        ),
    )


def transpose_tiles(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    height, width = problem.arrays["matrix"].shape
    threads = round_up(width, 32), round_up(height, 32) // 4
    return launcher("transpose_tiles", threads, (32, 8), on.matrix, on.turned, np.int32(height), np.int32(width))


def gauss_5x5_rgb(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    height, width, colours = problem.arrays["image"].shape
    threads = round_up(width, 32), round_up(height, 8)
    return launcher("gauss_5x5_rgb", threads, (32, 8), on.image, on.result, *map(np.int32, (height, width, colours)))


def floyd_warshall(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    size = len(problem.arrays["distances"])
    threads, block = (round_up(size, 16),) * 2, (16, 16)
    steps = (launcher("floyd_warshall", threads, block, on.distances, np.int32(k), np.int32(size)) for k in range(4))
    return in_order(_restore(problem, on, "distances"), *steps)


def lennard_jones_cells(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    size, cells = len(problem.arrays["positions"]), round((problem.arrays["starts"].size - 1) ** (1 / 3))
    values = on.positions, on.starts, np.int32(cells), on.energies, np.int32(size)
    return launcher("lennard_jones_cells", (round_up(size, 128),), (128,), *values)


def murmur_buckets(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    size = problem.arrays["keys"].size
    values = on.keys, on.buckets, np.uint32(1009), np.int32(size)
    return launcher("murmur_buckets", (round_up(size, 256),), (256,), *values)


def black_scholes_f64(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    size = problem.arrays["spots"].size
    values = on.spots, on.strikes, on.years, np.float64(0.02), np.float64(0.3), on.calls, on.puts, np.int32(size)
    return launcher("black_scholes_f64", (round_up(size, 128),), (128,), *values)


def histogram_2d(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    size, (rows, columns) = problem.arrays["xs"].size, problem.arrays["counts"].shape
    values = on.xs, on.ys, on.counts, np.int32(rows), np.int32(columns), np.int32(size)
    count = launcher("histogram_2d", (round_up(size, 256),), (256,), *values)
    return in_order(_restore(problem, on, "counts"), count)


def edit_distance(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    height, width = problem.arrays["left"].size, problem.arrays["right"].size
    lines = [on.first, on.second, on.third]
    step = kernel_of("edit_distance")
    _, queue = context()
    threads, bounds = (round_up(height + 1, 128),), (np.int32(height), np.int32(width))

    def launch() -> None:
        for diagonal in range(height + width + 1):
            before, last, current = (lines[(diagonal + k) % 3] for k in (1, 2, 0))
            step.set_args(on.left, on.right, before, last, current, np.int32(diagonal), *bounds)
            cl.enqueue_nd_range_kernel(queue, step, threads, (128,))
        result = lines[(height + width) % 3]
        cl.enqueue_copy(queue, on.distance, result, src_offset=4 * height, dst_offset=0, byte_count=4)

    return launch


def _restore(problem: Any, on: SimpleNamespace, name: str) -> Callable[[], None]:
    """Copies what *name* was at first over what the last run has left."""
    original, held = OpenCL().upload(problem.arrays[name]), getattr(on, name)
    _, queue = context()

    def copy() -> None:
        cl.enqueue_copy(queue, held, original)

    return copy
