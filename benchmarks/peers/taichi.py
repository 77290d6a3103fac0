"""The kernels in Taichi, for its processor back end, with its defaults (which allow fast arithmetic).

Taichi reads annotations while it compiles, so that they must not be strings here.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import taichi as ti

from benchmarks.mandelbrot import ROUNDS

Vector = ti.types.ndarray(dtype=ti.f32, ndim=1)
Matrix = ti.types.ndarray(dtype=ti.f32, ndim=2)
Image = ti.types.ndarray(dtype=ti.i32, ndim=2)
TYPES = {np.dtype(np.float32): ti.f32, np.dtype(np.int32): ti.i32}


class Taichi:
    """Taichi's own arrays."""

    def __init__(self) -> None:
        ti.init(arch=ti.cpu, log_level=ti.WARN, offline_cache=False)

    def upload(self, array: np.ndarray) -> Any:
        held = ti.ndarray(TYPES[array.dtype], array.shape)
        held.from_numpy(array)
        return held

    def overwrite(self, held: Any, array: np.ndarray) -> None:
        held.from_numpy(array)

    def download(self, held: Any) -> np.ndarray:
        return held.to_numpy()

    def wait(self) -> None:
        ti.sync()

    def device(self) -> str:
        return "Taichi " + ".".join(map(str, ti.__version__))


@ti.kernel
def _saxpy(a: ti.f32, x: Vector, y: Vector):
    for i in y:
        y[i] = a * x[i] + y[i]


def saxpy(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return lambda: _saxpy(problem.a, on.x, on.y)


@ti.func
def _normal(d):
    k = 1.0 / (1.0 + 0.2316419 * ti.abs(d))
    series = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = 0.39894228 * ti.exp(-0.5 * d * d) * series
    return ti.select(d > 0.0, 1.0 - tail, tail)


@ti.kernel
def _price(stock: Vector, strike: Vector, years: Vector, rate: ti.f32, volatility: ti.f32, call: Vector, put: Vector):
    for i in stock:
        s, x, t = stock[i], strike[i], years[i]
        root = ti.sqrt(t)
        d1 = (ti.log(s / x) + (rate + 0.5 * volatility * volatility) * t) / (volatility * root)
        d2 = d1 - volatility * root
        n1, n2 = _normal(d1), _normal(d2)
        discounted = x * ti.exp(-rate * t)
        call[i] = s * n1 - discounted * n2
        put[i] = discounted * (1.0 - n2) - s * (1.0 - n1)


def black_scholes(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    rate, volatility = problem.rate, problem.volatility
    return lambda: _price(on.stock, on.strike, on.years, rate, volatility, on.call, on.put)


@ti.kernel
def _draw(image: Image, step: ti.f32):
    for i, j in image:
        cx, cy = -2.0 + j * step, -1.25 + i * step
        x, y, count = 0.0, 0.0, 0
        while count < ROUNDS and x * x + y * y < 4.0:
            following = x * x - y * y + cx
            y = (x + x) * y + cy
            x = following
            count += 1
        image[i, j] = count


def mandelbrot(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return lambda: _draw(on.image, problem.step)


@ti.kernel
def _attract(x: Vector, y: Vector, z: Vector, mass: Vector, ax: Vector, ay: Vector, az: Vector):
    for i in x:
        xi, yi, zi = x[i], y[i], z[i]
        sx, sy, sz = 0.0, 0.0, 0.0
        for j in range(x.shape[0]):
            dx, dy, dz = x[j] - xi, y[j] - yi, z[j] - zi
            inverse = 1.0 / ti.sqrt(dx * dx + dy * dy + dz * dz + 1e-3)
            pull = mass[j] * inverse * inverse * inverse
            sx += dx * pull
            sy += dy * pull
            sz += dz * pull
        ax[i] = sx
        ay[i] = sy
        az[i] = sz


def nbody(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return lambda: _attract(on.x, on.y, on.z, on.mass, on.ax, on.ay, on.az)


@ti.kernel
def _multiply(a: Matrix, b: Matrix, c: Matrix):
    for i, j in c:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


def matmul_naive(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return lambda: _multiply(on.a, on.b, on.c)


@ti.kernel
def _average(s: Matrix, target: Matrix):
    for i, j in s:
        if 0 < i < s.shape[0] - 1 and 0 < j < s.shape[1] - 1:
            target[i, j] = (s[i, j] + s[i - 1, j] + s[i + 1, j] + s[i, j - 1] + s[i, j + 1]) * 0.2


def stencil(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return lambda: _average(on.source, on.target)
