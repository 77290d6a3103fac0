"""Prices of options, and random numbers."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, float64, hip, uint32

from benchmarks.user_kernels.definition import UserKernel, blocks, kernel, peer

THREADS = 128


def _next_random(state):
    """Marsaglia's xorshift of 32 bits."""
    state ^= uint32(state << uint32(13))
    state ^= uint32(state >> uint32(17))
    state ^= uint32(state << uint32(5))
    return uint32(state)


next_random, next_random_of_peer = hip.jit(device=True)(_next_random), peer(_next_random)


@hip.jit
def throw_darts(seeds, rounds, hits):
    i = hip.grid(1)
    if i < seeds.size:
        state, count = seeds[i], 0
        for _ in range(rounds):
            state = next_random(state)
            x = state * float32(2.0**-32)
            state = next_random(state)
            y = state * float32(2.0**-32)
            if x * x + y * y < 1:
                count += 1
        hip.atomic.add(hits, 0, count)


@peer
def throw_darts_by_loop(seeds, rounds, hits):
    total = 0
    for i in range(seeds.size):
        state = seeds[i]
        for _ in range(rounds):
            state = next_random_of_peer(state)
            x = np.float32(state) * float32(2.0**-32)
            state = next_random_of_peer(state)
            y = np.float32(state) * float32(2.0**-32)
            total += x * x + y * y < 1
    hits[0] = total


@kernel("monte-carlo-pi")
def DARTS(quick: bool) -> UserKernel:
    """darts that hit a circle, 100 for each thread, whose random numbers are xorshift's"""
    size = 100 if quick else 4000
    seeds = np.random.default_rng(131).integers(1, 2**32, size).astype(np.uint32)
    return UserKernel(
        {"seeds": seeds, "hits": np.zeros(1, np.int64)},
        ("hits",),
        lambda on: throw_darts[blocks(size, THREADS), THREADS](on.seeds, 100, on.hits),
        lambda on: throw_darts_by_loop(on.seeds, 100, on.hits),
        rtol=1e-3,
        restored=("hits",),
    )


def _distribution(x):
    """The normal distribution up to *x*."""
    return 0.5 * math.erfc(-x * math.sqrt(0.5))


distribution, distribution_of_peer = hip.jit(device=True)(_distribution), peer(_distribution)


@hip.jit
def black_scholes(spots, strikes, years, rate, volatility, calls, puts):
    i = hip.grid(1)
    if i < spots.size:
        root = volatility * math.sqrt(years[i])
        d1 = (math.log(spots[i] / strikes[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / root
        d2 = d1 - root
        discounted = strikes[i] * math.exp(-rate * years[i])
        calls[i] = spots[i] * distribution(d1) - discounted * distribution(d2)
        puts[i] = discounted * distribution(-d2) - spots[i] * distribution(-d1)


@peer
def black_scholes_by_loop(spots, strikes, years, rate, volatility, calls, puts):
    for i in range(spots.size):
        root = volatility * math.sqrt(years[i])
        d1 = (math.log(spots[i] / strikes[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / root
        discounted = strikes[i] * math.exp(-rate * years[i])
        call = spots[i] * distribution_of_peer(d1) - discounted * distribution_of_peer(d1 - root)
        calls[i] = call
        puts[i] = call - spots[i] + discounted


@kernel("black-scholes-f64", opencl=True)
def BLACK_SCHOLES(quick: bool) -> UserKernel:
    """calls and puts of float64, by the complement of the error function"""
    size = 500 if quick else 20_000
    rng = np.random.default_rng(132)
    arrays = {name: 5 + 25 * rng.random(size) for name in ("spots", "strikes")}
    arrays |= {"years": 0.25 + 5 * rng.random(size), "calls": np.zeros(size), "puts": np.zeros(size)}
    return UserKernel(
        arrays,
        ("calls", "puts"),
        lambda on: black_scholes[blocks(size, THREADS), THREADS](
            on.spots, on.strikes, on.years, 0.02, 0.3, on.calls, on.puts
        ),
        lambda on: black_scholes_by_loop(on.spots, on.strikes, on.years, 0.02, 0.3, on.calls, on.puts),
        rtol=1e-7,
        atol=1e-9,
    )


STEPS = 127
LEAVES = STEPS + 1


@hip.jit
def binomial(spots, strikes, up, probability, discount, prices):
    values = hip.shared.array(LEAVES, float64)
    option, i = hip.blockIdx.x, hip.threadIdx.x
    values[i] = max(0.0, spots[option] * up ** (2 * i - STEPS) - strikes[option])
    hip.syncthreads()
    for step in range(STEPS):
        value = 0.0
        if i < STEPS - step:
            value = discount * (probability * values[i + 1] + (1 - probability) * values[i])
        hip.syncthreads()
        if i < STEPS - step:
            values[i] = value
        hip.syncthreads()
    if i == 0:
        prices[option] = values[0]


@peer
def binomial_by_loop(spots, strikes, up, probability, discount, prices):
    values = np.empty(STEPS + 1)
    higher, lower = discount * probability, discount * (1 - probability)
    for option in range(spots.size):
        spot = spots[option] * up**-STEPS
        for i in range(STEPS + 1):
            values[i] = max(0.0, spot - strikes[option])
            spot *= up * up
        for last in range(STEPS, 0, -1):
            for i in range(last):
                values[i] = higher * values[i + 1] + lower * values[i]
        prices[option] = values[0]


@kernel("binomial-options")
def BINOMIAL(quick: bool) -> UserKernel:
    """options by a binomial tree of 127 steps in shared memory, a block for each, float64"""
    size = 4 if quick else 200
    rng = np.random.default_rng(133)
    arrays = {"spots": 5 + 25 * rng.random(size), "strikes": 5 + 25 * rng.random(size), "prices": np.zeros(size)}
    return UserKernel(
        arrays,
        ("prices",),
        lambda on: binomial[size, LEAVES](on.spots, on.strikes, 1.02, 0.51, 0.9995, on.prices),
        lambda on: binomial_by_loop(on.spots, on.strikes, 1.02, 0.51, 0.9995, on.prices),
        rtol=1e-7,
        atol=1e-9,
    )


@hip.jit
def asian(seeds, spot, strike, drift, volatility, steps, payoffs):
    i = hip.grid(1)
    if i < seeds.size:
        state, price, total = seeds[i], spot, float32(0)
        for _ in range(steps):
            state = next_random(state)
            u1 = (float32(state) + float32(1)) * float32(2.0**-32)
            state = next_random(state)
            u2 = float32(state) * float32(2.0**-32)
            normal = math.sqrt(float32(-2) * math.log(u1)) * math.cos(float32(2 * math.pi) * u2)
            price *= math.exp(drift + volatility * normal)
            total += price
        payoffs[i] = max(total / float32(steps) - strike, float32(0))


@peer
def asian_by_loop(seeds, spot, strike, drift, volatility, steps, payoffs):
    for i in range(seeds.size):
        state, price, total = seeds[i], spot, float32(0)
        for _ in range(steps):
            state = next_random_of_peer(state)
            u1 = (float32(state) + float32(1)) * float32(2.0**-32)
            state = next_random_of_peer(state)
            u2 = float32(state) * float32(2.0**-32)
            normal = math.sqrt(float32(-2) * math.log(u1)) * math.cos(float32(2 * math.pi) * u2)
            price *= math.exp(drift + volatility * normal)
            total += price
        payoffs[i] = max(total / float32(steps) - strike, float32(0))


@kernel("asian-options")
def ASIAN(quick: bool) -> UserKernel:
    """means of paths of 32 steps, with normal numbers by Box and Muller's method"""
    size = 100 if quick else 2000
    seeds = np.random.default_rng(134).integers(1, 2**32, size).astype(np.uint32)
    market = tuple(np.float32(value) for value in (100, 100, 0.0005, 0.02))
    return UserKernel(
        {"seeds": seeds, "payoffs": np.zeros(size, np.float32) - 1},
        ("payoffs",),
        lambda on: asian[blocks(size, THREADS), THREADS](on.seeds, *market, 32, on.payoffs),
        lambda on: asian_by_loop(on.seeds, *market, 32, on.payoffs),
        rtol=1e-3,
        atol=1e-2,
    )
