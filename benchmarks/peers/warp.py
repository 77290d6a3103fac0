"""The kernels in NVIDIA Warp, on its processor device, which has one thread; fast arithmetic is allowed.

Warp reads annotations while it compiles, so that they must not be strings here.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from benchmarks.mandelbrot import ROUNDS

Vector = wp.array(dtype=wp.float32)
Matrix = wp.array2d(dtype=wp.float32)
Image = wp.array2d(dtype=wp.int32)
LIMIT = wp.constant(ROUNDS)

wp.config.quiet = True
wp.set_module_options({"fast_math": True, "enable_backward": False})


class Warp:
    """Warp's own arrays."""

    def __init__(self) -> None:
        wp.init()

    def upload(self, array: np.ndarray) -> Any:
        return wp.array(array, device="cpu")

    def overwrite(self, held: Any, array: np.ndarray) -> None:
        held.assign(array)

    def download(self, held: Any) -> np.ndarray:
        return held.numpy().copy()

    def wait(self) -> None:
        wp.synchronize()

    def device(self) -> str:
        return f"Warp {wp.config.version}"


def _launcher(kernel: Any, threads: Any, *arguments: Any) -> Callable[[], None]:
    return lambda: wp.launch(kernel, dim=threads, inputs=list(arguments), device="cpu")


@wp.kernel
def _saxpy(a: wp.float32, x: Vector, y: Vector):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


def saxpy(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _launcher(_saxpy, problem.size, problem.a, on.x, on.y)


@wp.func
def _normal(d: wp.float32) -> wp.float32:
    k = 1.0 / (1.0 + 0.2316419 * wp.abs(d))
    series = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = 0.39894228 * wp.exp(-0.5 * d * d) * series
    return wp.where(d > 0.0, 1.0 - tail, tail)


@wp.kernel
def _price(
    stock: Vector, strike: Vector, years: Vector, rate: wp.float32, volatility: wp.float32, call: Vector, put: Vector
):
    i = wp.tid()
    s = stock[i]
    x = strike[i]
    t = years[i]
    root = wp.sqrt(t)
    d1 = (wp.log(s / x) + (rate + 0.5 * volatility * volatility) * t) / (volatility * root)
    d2 = d1 - volatility * root
    n1 = _normal(d1)
    n2 = _normal(d2)
    discounted = x * wp.exp(-rate * t)
    call[i] = s * n1 - discounted * n2
    put[i] = discounted * (1.0 - n2) - s * (1.0 - n1)


def black_scholes(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    arguments = (on.stock, on.strike, on.years, problem.rate, problem.volatility, on.call, on.put)
    return _launcher(_price, problem.size, *arguments)


@wp.kernel
def _draw(image: Image, step: wp.float32):
    i, j = wp.tid()
    cx = -2.0 + wp.float32(j) * step
    cy = -1.25 + wp.float32(i) * step
    x = wp.float32(0.0)
    y = wp.float32(0.0)
    count = wp.int32(0)
    while count < LIMIT and x * x + y * y < 4.0:
        following = x * x - y * y + cx
        y = (x + x) * y + cy
        x = following
        count += 1
    image[i, j] = count


def mandelbrot(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _launcher(_draw, (problem.size, problem.size), on.image, problem.step)


@wp.kernel
def _attract(x: Vector, y: Vector, z: Vector, mass: Vector, ax: Vector, ay: Vector, az: Vector):
    i = wp.tid()
    xi = x[i]
    yi = y[i]
    zi = z[i]
    sx = wp.float32(0.0)
    sy = wp.float32(0.0)
    sz = wp.float32(0.0)
    for j in range(x.shape[0]):
        dx = x[j] - xi
        dy = y[j] - yi
        dz = z[j] - zi
        inverse = 1.0 / wp.sqrt(dx * dx + dy * dy + dz * dz + 1.0e-3)
        pull = mass[j] * inverse * inverse * inverse
        sx += dx * pull
        sy += dy * pull
        sz += dz * pull
    ax[i] = sx
    ay[i] = sy
    az[i] = sz


def nbody(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _launcher(_attract, problem.size, on.x, on.y, on.z, on.mass, on.ax, on.ay, on.az)


@wp.kernel
def _multiply(a: Matrix, b: Matrix, c: Matrix):
    i, j = wp.tid()
    total = wp.float32(0.0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[k, j]
    c[i, j] = total


def matmul_naive(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _launcher(_multiply, (problem.size, problem.size), on.a, on.b, on.c)


@wp.kernel
def _average(s: Matrix, target: Matrix):
    i, j = wp.tid()
    if i > 0 and i < s.shape[0] - 1 and j > 0 and j < s.shape[1] - 1:
        target[i, j] = (s[i, j] + s[i - 1, j] + s[i + 1, j] + s[i, j - 1] + s[i, j + 1]) * 0.2


def stencil(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _launcher(_average, (problem.size, problem.size), on.source, on.target)
