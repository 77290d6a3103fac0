"""The kernels in OpenCL, on the only platform in the environment. Fast arithmetic is allowed, as for ours."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl

from benchmarks import black_scholes as bs
from benchmarks import histogram as hist
from benchmarks import mandelbrot as mandel
from benchmarks import matmul, reduction
from benchmarks import nbody as bodies
from benchmarks import saxpy as axpy
from benchmarks import stencil as five

LANES = 16
"""The subgroup size of the shuffle reduction, with which Intel's runtime uses a processor's 512-bit vectors."""


@cache
def _context() -> tuple[cl.Context, cl.CommandQueue]:
    (platform,) = cl.get_platforms()
    context = cl.Context([platform.get_devices()[0]])
    return context, cl.CommandQueue(context)


@cache
def _program() -> cl.Program:
    context, _ = _context()
    source = (Path(__file__).parent / "kernels.cl").read_text()
    options = ["-cl-fast-relaxed-math"]
    (device,) = context.devices
    if "cl_intel_required_subgroup_size" in device.extensions:
        intel = "Intel" in device.platform.name
        shuffle = "intel_sub_group_shuffle_xor" if intel else "sub_group_shuffle_xor"  # PoCL only has Khronos's
        options += ["-cl-std=CL2.0" if intel else "-cl-std=CL3.0", f"-DSHUFFLE_XOR={shuffle}"]
    return cl.Program(context, source).build(options)


class OpenCL:
    """Buffers of the platform's device."""

    def upload(self, array: np.ndarray) -> Any:
        context, _ = _context()
        return cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=array)

    def overwrite(self, held: Any, array: np.ndarray) -> None:
        cl.enqueue_copy(_context()[1], held, array)
        self.shape, self.dtype = array.shape, array.dtype

    def download(self, held: Any) -> np.ndarray:
        # Only arrays that were just overwritten are read: outputs of a problem have one shape and type.
        array = np.empty(self.shape, self.dtype)
        cl.enqueue_copy(_context()[1], array, held)
        return array

    def wait(self) -> None:
        _context()[1].finish()

    def device(self) -> str:
        platform = _context()[0].devices[0].platform
        return f"{platform.name} {platform.version}"


def _launcher(name: str, threads: tuple[int, ...], block: tuple[int, ...], *arguments: Any) -> Callable[[], None]:
    kernel = getattr(_program(), name)
    kernel.set_args(*arguments)
    _, queue = _context()

    def launch() -> None:
        cl.enqueue_nd_range_kernel(queue, kernel, threads, block)

    return launch


def _up(threads: int, block: int) -> int:
    return -(-threads // block) * block


def _square(name: str, size: int, block: tuple[int, int], *arguments: Any) -> Callable[[], None]:
    return _launcher(name, (_up(size, block[0]), _up(size, block[1])), block, *arguments)


def saxpy(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    threads, block = (_up(problem.size, axpy.THREADS),), (axpy.THREADS,)
    return _launcher("saxpy", threads, block, problem.a, on.x, on.y, np.int32(problem.size))


def black_scholes(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    arguments = (on.stock, on.strike, on.years, problem.rate, problem.volatility, on.call, on.put)
    threads, block = (_up(problem.size, bs.THREADS),), (bs.THREADS,)
    return _launcher("black_scholes", threads, block, *arguments, np.int32(problem.size))


def mandelbrot(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    arguments = (on.image, problem.step, np.int32(problem.size), np.int32(mandel.ROUNDS))
    return _square("mandelbrot", problem.size, mandel.BLOCK, *arguments)


def nbody(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    arguments = (on.x, on.y, on.z, on.mass, on.ax, on.ay, on.az, np.int32(problem.size))
    return _launcher("nbody", (_up(problem.size, bodies.THREADS),), (bodies.THREADS,), *arguments)


def matmul_naive(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    block = (matmul.TILE, matmul.TILE)
    return _square("matmul_naive", problem.size, block, on.a, on.b, on.c, np.int32(problem.size))


def matmul_tiled(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    block = (matmul.TILE, matmul.TILE)
    return _square("matmul_tiled", problem.size, block, on.a, on.b, on.c, np.int32(problem.size))


def _reduction(problem: Any, on: SimpleNamespace, name: str, factor: int) -> Callable[[], None]:
    launches = []
    for source, count, target in problem.steps(on, factor):
        kernel = cl.Kernel(_program(), name)
        kernel.set_args(source, np.int32(count), target)
        launches.append((kernel, (_up(count, reduction.THREADS),)))
    _, queue = _context()

    def launch() -> None:
        for kernel, threads in launches:
            cl.enqueue_nd_range_kernel(queue, kernel, threads, (reduction.THREADS,))

    return launch


def tree_reduction(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _reduction(problem, on, "tree_reduction", reduction.THREADS)


def warp_reduction(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _reduction(problem, on, "warp_reduction", LANES)


def histogram(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    clear = _launcher("clear", (hist.BINS,), (hist.BINS,), on.counts)
    threads, block = (hist.BLOCKS * hist.THREADS,), (hist.THREADS,)
    count = _launcher("histogram", threads, block, on.values, np.int32(problem.size), on.counts)

    def launch() -> None:
        clear()
        count()

    return launch


def stencil(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _square("stencil", problem.size, five.BLOCK, on.source, on.target, np.int32(problem.size))
