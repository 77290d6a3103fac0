"""What courses on GPUs, and programs that came from processors, write: steps of a tree by powers of two, a part of an
array for each thread, the largest number of each row, few narrow blocks, and a sparse row for each neuron."""

from __future__ import annotations

import numpy as np
from numba import float32, float64, hip

from benchmarks.user_kernels.definition import UserKernel, blocks, fast_peer, kernel, peer

THREADS = 512


@hip.jit
def sum_by_powers(values, totals):
    part = hip.shared.array(THREADS, float64)
    thread = hip.threadIdx.x
    i = hip.grid(1)
    part[thread] = values[i] if i < values.size else 0.0
    hip.syncthreads()
    step = 0
    while 2**step < THREADS:
        apart = 2**step
        if thread % (2 * apart) == 0:
            part[thread] += part[thread + apart]
        hip.syncthreads()
        step += 1
    if thread == 0:
        totals[hip.blockIdx.x] = part[0]


@peer
def sum_by_loop(values, totals):
    for k in range(totals.size):
        total = 0.0
        for i in range(k * THREADS, min((k + 1) * THREADS, values.size)):
            total += values[i]
        totals[k] = total


@kernel("tree-by-powers")
def TREE(quick: bool) -> UserKernel:
    """sums of blocks of 512 float64, by a tree whose steps are ``2 ** step`` apart and found by a remainder"""
    values = np.random.default_rng(601).random(3000 if quick else 200_000)
    grid = blocks(values.size, THREADS)
    return UserKernel(
        {"values": values, "totals": np.zeros(grid)},
        ("totals",),
        lambda on: sum_by_powers[grid, THREADS](on.values, on.totals),
        lambda on: sum_by_loop(on.values, on.totals),
        rtol=1e-12,
    )


@hip.jit
def scale_parts(values, count, out):
    i = hip.grid(1)
    for k in range(i * count, min((i + 1) * count, values.size)):
        out[k] = values[k] * float32(2) + float32(1)


@peer
def scale_by_loop(values, out):
    for k in range(values.size):
        out[k] = values[k] * float32(2) + float32(1)


@kernel("part-for-each-thread")
def PARTS(quick: bool) -> UserKernel:
    """``2 * x + 1`` of float32, a part of the array for each thread, from its first element to its last"""
    values = np.random.default_rng(602).random(3001 if quick else 500_001, np.float32)
    count = blocks(values.size, 2048)
    return UserKernel(
        {"values": values, "out": np.zeros_like(values)},
        ("out",),
        lambda on: scale_parts[32, 64](on.values, count, on.out),
        lambda on: scale_by_loop(on.values, on.out),
        rtol=1e-6,
    )


@hip.jit(fastmath=True)
def find_largest(values, largest):
    i = hip.grid(1)
    if i < values.shape[0]:
        found = values[i, 0]
        for k in range(1, values.shape[1]):
            found = max(found, values[i, k])
        largest[i] = found


@fast_peer
def find_largest_by_loop(values, largest):
    for i in range(values.shape[0]):
        found = values[i, 0]
        for k in range(1, values.shape[1]):
            found = max(found, values[i, k])
        largest[i] = found


@kernel("row-maxima")
def MAXIMA(quick: bool) -> UserKernel:
    """the largest number of each row of float32, a thread for each row, with ``fastmath``"""
    values = np.random.default_rng(603).random((30, 50) if quick else (1000, 500), np.float32)
    return UserKernel(
        {"values": values, "largest": np.zeros(len(values), np.float32)},
        ("largest",),
        lambda on: find_largest[blocks(len(values), 128), 128](on.values, on.largest),
        lambda on: find_largest_by_loop(on.values, on.largest),
    )


@hip.jit
def multiply_small(left, right, out):
    i, j = hip.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        total = float32(0)
        for k in range(left.shape[1]):
            total += left[i, k] * right[k, j]
        out[i, j] = total


@peer
def multiply_small_by_loop(left, right, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0
        for k in range(left.shape[1]):
            for j in range(out.shape[1]):
                out[i, j] += left[i, k] * right[k, j]


@kernel("few-narrow-blocks")
def FEW_BLOCKS(quick: bool) -> UserKernel:
    """a product of two matrices of 64 x 64 float32, in sixteen blocks of 16 x 16"""
    size = 40 if quick else 64
    left, right = np.random.default_rng(604).random((2, size, size), np.float32)
    return UserKernel(
        {"left": left, "right": right, "out": np.zeros_like(left)},
        ("out",),
        lambda on: multiply_small[(blocks(size, 16), blocks(size, 16)), (16, 16)](on.left, on.right, on.out),
        lambda on: multiply_small_by_loop(on.left, on.right, on.out),
        rtol=1e-5,
    )


@hip.jit
def step_neurons(first, source, weight, fired, voltage, recovery):
    i = hip.grid(1)
    if i < voltage.size:
        current = float32(0)
        for k in range(first[i], first[i + 1]):
            if fired[source[k]]:
                current += weight[k]
        v, u = voltage[i], recovery[i]
        v += float32(0.5) * (float32(0.04) * v * v + float32(5) * v + float32(140) - u + current)
        u += float32(0.02) * (float32(0.2) * v - u)
        if v >= 30:
            v = float32(-65)
            u += float32(8)
        voltage[i], recovery[i] = v, u


@peer
def step_neurons_by_loop(first, source, weight, fired, voltage, recovery):
    for i in range(voltage.size):
        current = float32(0)
        for k in range(first[i], first[i + 1]):
            if fired[source[k]]:
                current += weight[k]
        v, u = voltage[i], recovery[i]
        v += float32(0.5) * (float32(0.04) * v * v + float32(5) * v + float32(140) - u + current)
        u += float32(0.02) * (float32(0.2) * v - u)
        if v >= 30:
            v = float32(-65)
            u += float32(8)
        voltage[i], recovery[i] = v, u


@kernel("sparse-neurons")
def NEURONS(quick: bool) -> UserKernel:
    """a step of Izhikevich's neurons, each of which adds the weights of those before it that fired"""
    generator = np.random.default_rng(605)
    count = 100 if quick else 4000
    first = np.concatenate([[0], np.cumsum(generator.integers(20, 60, count))]).astype(np.int32)
    return UserKernel(
        {
            "first": first,
            "source": generator.integers(0, count, first[-1]).astype(np.int32),
            "weight": generator.random(first[-1], np.float32),
            "fired": generator.random(count) < 0.1,
            "voltage": generator.uniform(-70, -60, count).astype(np.float32),
            "recovery": generator.uniform(-15, -10, count).astype(np.float32),
        },
        ("voltage", "recovery"),
        lambda on: step_neurons[blocks(count, 256), 256](
            on.first, on.source, on.weight, on.fired, on.voltage, on.recovery
        ),
        lambda on: step_neurons_by_loop(on.first, on.source, on.weight, on.fired, on.voltage, on.recovery),
        rtol=1e-3,
        atol=1e-2,
        restored=("voltage", "recovery"),
    )
