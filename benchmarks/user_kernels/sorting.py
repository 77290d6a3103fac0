"""Networks: sorts by exchanges, and Fourier transforms by butterflies."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, hip

from benchmarks.user_kernels.definition import Arrays, UserKernel, blocks, kernel, peer

THREADS = 256


@hip.jit
def bitonic(values):
    own = hip.shared.array(THREADS, float32)
    thread, i = hip.threadIdx.x, hip.grid(1)
    own[thread] = values[i]
    hip.syncthreads()
    size = 2
    while size <= THREADS:
        step = size // 2
        while step > 0:
            other = thread ^ step
            if other > thread:
                ascending = (thread & size) == 0
                if (own[thread] > own[other]) == ascending:
                    own[thread], own[other] = own[other], own[thread]
            hip.syncthreads()
            step //= 2
        size *= 2
    values[i] = own[thread]


@peer
def sort_by_blocks(values):
    for start in range(0, values.size, THREADS):
        values[start : start + THREADS].sort()


@kernel("bitonic-sort")
def BITONIC(quick: bool) -> UserKernel:
    """blocks of 256 float32 sorted in shared memory; the peer sorts by quicksort"""
    values = np.random.default_rng(151).random(THREADS * (4 if quick else 200), np.float32)
    return UserKernel(
        {"values": values},
        ("values",),
        lambda on: bitonic[values.size // THREADS, THREADS](on.values),
        lambda on: sort_by_blocks(on.values),
        restored=("values",),
        expected=lambda on: {"values": np.sort(on.values.reshape(-1, THREADS), axis=1).ravel()},
    )


@hip.jit
def exchange(values, parity):
    i = 2 * hip.grid(1) + parity
    if i + 1 < values.size and values[i] > values[i + 1]:
        values[i], values[i + 1] = values[i + 1], values[i]


@peer
def exchange_by_loop(values, parity):
    for i in range(parity, values.size - 1, 2):
        left, right = values[i], values[i + 1]
        values[i], values[i + 1] = min(left, right), max(left, right)


@kernel("odd-even-sort")
def ODD_EVEN(quick: bool) -> UserKernel:
    """two steps of a sort by exchanges of neighbours, int32"""
    values = np.random.default_rng(152).integers(0, 10**6, 2000 if quick else 400_000).astype(np.int32)
    pairs = values.size // 2

    def launch(on: Arrays) -> None:
        for parity in range(2):
            exchange[blocks(pairs, THREADS), THREADS](on.values, parity)

    def loops(on: Arrays) -> None:
        for parity in range(2):
            exchange_by_loop(on.values, parity)

    return UserKernel({"values": values}, ("values",), launch, loops, restored=("values",))


@hip.jit
def butterflies(values, factors, half):
    i = hip.grid(1)
    if i < values.size // 2:
        within = i % half
        first = (i // half) * 2 * half + within
        turned = values[first + half] * factors[within * (factors.size // half)]
        kept = values[first]
        values[first] = kept + turned
        values[first + half] = kept - turned


@peer
def butterflies_by_loop(values, factors, half):
    step = factors.size // half
    for start in range(0, values.size, 2 * half):
        for within in range(half):
            turned = values[start + half + within] * factors[within * step]
            kept = values[start + within]
            values[start + within] = kept + turned
            values[start + half + within] = kept - turned


@kernel("fft-stages", opencl=True)
def FFT(quick: bool) -> UserKernel:
    """all stages of a transform of complex64 in bit-reversed order, each a launch"""
    bits = 8 if quick else 14
    size = 1 << bits
    rng = np.random.default_rng(153)
    values = (rng.random(size) + 1j * rng.random(size)).astype(np.complex64)
    factors = np.exp(-2j * math.pi * np.arange(size // 2) / size).astype(np.complex64)

    def launch(on: Arrays) -> None:
        for bit in range(bits):
            butterflies[blocks(size // 2, THREADS), THREADS](on.values, on.factors, 1 << bit)

    def loops(on: Arrays) -> None:
        for bit in range(bits):
            butterflies_by_loop(on.values, on.factors, 1 << bit)

    order = np.array([int(f"{i:0{bits}b}"[::-1], 2) for i in range(size)])
    return UserKernel(
        {"values": values, "factors": factors},
        ("values",),
        launch,
        loops,
        rtol=1e-2,
        atol=1e-1,
        restored=("values",),
        expected=lambda on: {"values": np.fft.fft(on.values[order])},
    )
