"""The kernels in OpenCL."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks import atomics, block_work, elementwise, images, integers, matmul, reduction
from benchmarks import black_scholes as bs
from benchmarks import haversine as sphere
from benchmarks import histogram as hist
from benchmarks import integration as lorenz
from benchmarks import mandelbrot as mandel
from benchmarks import nbody as bodies
from benchmarks import saxpy as axpy
from benchmarks import stencil as five
from benchmarks.peers.opencl_device import OpenCL as OpenCL
from benchmarks.peers.opencl_device import in_order, launcher, round_up, square

LANES = 16
"""The subgroup size of the shuffle reduction, with which Intel's runtime uses a processor's 512-bit vectors."""


def saxpy(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    threads, block = (round_up(problem.size, axpy.THREADS),), (axpy.THREADS,)
    return launcher("saxpy", threads, block, problem.a, on.x, on.y, np.int32(problem.size))


def black_scholes(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    arguments = (on.stock, on.strike, on.years, problem.rate, problem.volatility, on.call, on.put)
    threads, block = (round_up(problem.size, bs.THREADS),), (bs.THREADS,)
    return launcher("black_scholes", threads, block, *arguments, np.int32(problem.size))


def mandelbrot(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    arguments = (on.image, problem.step, np.int32(problem.size), np.int32(mandel.ROUNDS))
    return square("mandelbrot", problem.size, mandel.BLOCK, *arguments)


def nbody(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    arguments = (on.x, on.y, on.z, on.mass, on.ax, on.ay, on.az, np.int32(problem.size))
    return launcher("nbody", (round_up(problem.size, bodies.THREADS),), (bodies.THREADS,), *arguments)


def matmul_naive(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    block = (matmul.TILE, matmul.TILE)
    return square("matmul_naive", problem.size, block, on.a, on.b, on.c, np.int32(problem.size))


def matmul_tiled(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    block = (matmul.TILE, matmul.TILE)
    return square("matmul_tiled", problem.size, block, on.a, on.b, on.c, np.int32(problem.size))


def _reduction(problem: Any, on: SimpleNamespace, name: str, factor: int) -> Callable[[], None]:
    launches = []
    for source, count, target in problem.steps(on, factor):
        threads, block = (round_up(count, reduction.THREADS),), (reduction.THREADS,)
        launches.append(launcher(name, threads, block, source, np.int32(count), target))
    return in_order(*launches)


def tree_reduction(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _reduction(problem, on, "tree_reduction", reduction.THREADS)


def warp_reduction(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _reduction(problem, on, "warp_reduction", LANES)


def histogram(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    clear = launcher("clear", (hist.BINS,), (hist.BINS,), on.counts)
    threads, block = (hist.BLOCKS * hist.THREADS,), (hist.THREADS,)
    count = launcher("histogram", threads, block, on.values, np.int32(problem.size), on.counts)
    return in_order(clear, count)


def stencil(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return square("stencil", problem.size, five.BLOCK, on.source, on.target, np.int32(problem.size))


def _plane(name: str, extents: tuple[int, ...], block: tuple[int, ...], *arguments: Any) -> Callable[[], None]:
    """A thread for each element of an array whose first extent is along y, or along z; the kernel gets them last."""
    threads = tuple(map(round_up, reversed(extents), block))
    return launcher(name, threads, block, *arguments, *map(np.int32, extents))


def elementwise_ij(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    threads = tuple(map(round_up, problem.shape, elementwise.BLOCK))
    arguments = (on.left, on.right, on.total, *map(np.int32, problem.shape))
    return launcher("elementwise_ij", threads, elementwise.BLOCK, *arguments)


def elementwise_ji(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _plane("elementwise_ji", problem.shape, elementwise.BLOCK, on.left, on.right, on.total)


def elementwise_ijk(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    threads = tuple(map(round_up, problem.shape, elementwise.BLOCK_3D))
    arguments = (on.left, on.right, on.total, *map(np.int32, problem.shape))
    return launcher("elementwise_ijk", threads, elementwise.BLOCK_3D, *arguments)


def integration(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    threads, block = (round_up(problem.size, lorenz.THREADS),), (lorenz.THREADS,)
    arguments = (on.x, on.y, on.z, np.int32(problem.size), np.int32(lorenz.STEPS))
    return launcher("integration", threads, block, *arguments)


def atomic_sum(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    threads, block = (problem.blocks * atomics.THREADS,), (atomics.THREADS,)
    add = launcher("atomic_sum", threads, block, on.values, on.total, np.int32(problem.size))
    return in_order(launcher("clear_total", (1,), (1,), on.total), add)


def atomic_places(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    threads, block = (problem.blocks * atomics.THREADS,), (atomics.THREADS,)
    choose = launcher("atomic_places", threads, block, on.values, on.found, on.count, np.int32(problem.size))
    return in_order(launcher("clear_count", (1,), (1,), on.count), choose)


def atomic_clusters(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    threads, block = (problem.blocks * atomics.THREADS,), (atomics.THREADS,)
    arguments = (on.points, on.labels, on.sums, on.counts, np.int32(problem.size))
    clear = launcher("clear_clusters", (atomics.CLUSTERS,), (atomics.CLUSTERS,), on.sums, on.counts)
    return in_order(clear, launcher("atomic_clusters", threads, block, *arguments))


def life(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _plane("life", (problem.edge, problem.edge), integers.BLOCK, on.before, on.after)


def transpose_by_index(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    rows, columns = problem.shape
    threads, block = (round_up(rows * columns, integers.THREADS),), (integers.THREADS,)
    return launcher("transpose_by_index", threads, block, on.matrix, on.turned, np.int32(rows), np.int32(columns))


def haversine(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    threads, block = (round_up(problem.size, sphere.THREADS),), (sphere.THREADS,)
    places = (getattr(on, name) for name in sphere.INPUTS)
    return launcher("haversine", threads, block, *places, on.found, np.int32(problem.size))


def sparse_rows(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    threads, block = (problem.rows * block_work.ROW_THREADS,), (block_work.ROW_THREADS,)
    return launcher("sparse_rows", threads, block, on.values, on.columns, on.starts, on.vector, on.product)


def scan(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    threads, block = (problem.size,), (block_work.SCAN_THREADS,)
    return in_order(
        launcher("scan_blocks", threads, block, on.numbers, on.before, on.sums),
        launcher("scan_sums", (1,), (1,), on.sums, np.int32(problem.blocks)),
        launcher("add_sums", threads, block, on.before, on.sums),
    )


def rgb_to_grey(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _plane("rgb_to_grey", problem.shape, images.BLOCK, on.colours, on.grey)


def blur_rgb(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _plane("blur_rgb", problem.shape, images.BLOCK, on.colours, on.blurred)


def median(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _plane("median_of_nine", problem.shape, images.BLOCK, on.pixels, on.medians)
