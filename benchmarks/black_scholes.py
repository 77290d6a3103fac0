"""Prices of European options, by the formula of Black and Scholes: arithmetic with exp, log and sqrt.

The normal distribution is the polynomial 26.2.17 of Abramowitz and Stegun, as is usual for this benchmark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from benchmarks.case import Benchmark
from benchmarks.problem import PEERS, Problem, implementations

THREADS = 256
A1, A2, A3, A4, A5 = (np.float32(c) for c in (0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429))
K = np.float32(0.2316419)
RSQRT2PI = np.float32(0.39894228)
ONE, HALF = np.float32(1), np.float32(0.5)


class BlackScholes(Problem):
    """4M options; stock and strike prices, and years to go."""

    outputs = ("call", "put")
    rate = np.float32(0.02)
    volatility = np.float32(0.3)

    def __init__(self, quick: bool) -> None:
        rng = np.random.default_rng(2)
        self.size = 2**12 if quick else 2**22
        ranges = {"stock": (5, 30), "strike": (1, 100), "years": (0.25, 10)}
        self.arrays = {name: rng.uniform(*limits, self.size).astype(np.float32) for name, limits in ranges.items()}
        self.arrays |= {name: np.zeros(self.size, np.float32) for name in self.outputs}

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        s, x, t = (self.arrays[name].astype(np.float64) for name in ("stock", "strike", "years"))
        r, v = float(self.rate), float(self.volatility)
        root = np.sqrt(t)
        d1 = (np.log(s / x) + (r + 0.5 * v * v) * t) / (v * root)
        discounted = x * np.exp(-r * t)
        call = s * _normal(d1) - discounted * _normal(d1 - v * root)
        np.testing.assert_allclose(results["call"], call, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(results["put"], call + discounted - s, rtol=1e-4, atol=1e-4)


def _normal(d: np.ndarray) -> np.ndarray:
    k = 1 / (1 + float(K) * np.abs(d))
    tail = k * np.polyval([float(a) for a in (A5, A4, A3, A2, A1)], k) * np.exp(-d * d / 2) * float(RSQRT2PI)
    return np.where(d > 0, 1 - tail, tail)


def normal(d):
    """The cumulative normal distribution, in float32; compiled for either side."""
    k = ONE / (ONE + K * abs(d))
    tail = RSQRT2PI * math.exp(-HALF * d * d) * (k * (A1 + k * (A2 + k * (A3 + k * (A4 + k * A5)))))
    return ONE - tail if d > 0 else tail


def hip(problem: BlackScholes, on: SimpleNamespace) -> Callable[[], None]:
    """One thread for each option."""
    from numba import hip

    cnd = hip.jit(device=True, fastmath=True)(normal)

    @hip.jit(fastmath=True)
    def price(stock, strike, years, rate, volatility, call, put):
        i = hip.grid(1)
        if i < stock.size:
            s, x, t = stock[i], strike[i], years[i]
            root = math.sqrt(t)
            d1 = (math.log(s / x) + (rate + HALF * volatility * volatility) * t) / (volatility * root)
            d2 = d1 - volatility * root
            n1, n2 = cnd(d1), cnd(d2)
            discounted = x * math.exp(-rate * t)
            call[i] = s * n1 - discounted * n2
            put[i] = discounted * (ONE - n2) - s * (ONE - n1)

    blocks = -(-problem.size // THREADS)
    rate, volatility = problem.rate, problem.volatility
    return lambda: price[blocks, THREADS](on.stock, on.strike, on.years, rate, volatility, on.call, on.put)


def njit(problem: BlackScholes, on: SimpleNamespace) -> Callable[[], None]:
    """One loop."""
    from numba import njit, prange

    cnd = njit(fastmath=True)(normal)

    @njit(parallel=True, fastmath=True)
    def price(stock, strike, years, rate, volatility, call, put):
        for i in prange(stock.size):
            s, x, t = stock[i], strike[i], years[i]
            root = math.sqrt(t)
            d1 = (math.log(s / x) + (rate + HALF * volatility * volatility) * t) / (volatility * root)
            d2 = d1 - volatility * root
            n1, n2 = cnd(d1), cnd(d2)
            discounted = x * math.exp(-rate * t)
            call[i] = s * n1 - discounted * n2
            put[i] = discounted * (ONE - n2) - s * (ONE - n1)

    return lambda: price(on.stock, on.strike, on.years, problem.rate, problem.volatility, on.call, on.put)


BENCHMARK = Benchmark(
    name="black-scholes",
    description="call and put of 4M options, float32",
    peer="njit-parallel",
    scale=1e3,
    unit="ms",
    implementations=implementations("black_scholes", BlackScholes, hip=hip, njit=njit, peers=tuple(PEERS)),
    aim=0.3,
)
