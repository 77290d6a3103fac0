"""Histograms and clusters: atomic additions at places that data tells."""

from __future__ import annotations

import numpy as np
from numba import hip

from benchmarks.user_kernels.definition import UserKernel, blocks, kernel, peer

THREADS = 256


@hip.jit
def clamped_histogram(values, low, high, counts):
    i = hip.grid(1)
    if i < values.size:
        place = int((values[i] - low) / (high - low) * counts.size)
        hip.atomic.add(counts, max(0, min(place, counts.size - 1)), 1)


@peer
def clamped_histogram_by_loop(values, low, high, counts):
    scale = counts.size / (high - low)
    for i in range(values.size):
        place = int((values[i] - low) * scale)
        counts[max(0, min(place, counts.size - 1))] += 1


@kernel("histogram-clamped")
def CLAMPED(quick: bool) -> UserKernel:
    """a histogram of float32 in 64 bins, those out of range in the first and the last one, atomics in global memory"""
    size = 2000 if quick else 500_000
    values = np.random.default_rng(21).integers(-100, 1124, size).astype(np.float32) / np.float32(1024)
    low, high = np.float32(0), np.float32(1)
    return UserKernel(
        {"values": values, "counts": np.zeros(64, np.int32)},
        ("counts",),
        lambda on: clamped_histogram[blocks(size, THREADS), THREADS](on.values, low, high, on.counts),
        lambda on: clamped_histogram_by_loop(on.values, low, high, on.counts),
        restored=("counts",),
    )


@hip.jit
def histogram_2d(xs, ys, counts):
    i = hip.grid(1)
    if i < xs.size:
        row, column = int(ys[i] * counts.shape[0]), int(xs[i] * counts.shape[1])
        if row >= 0 and row < counts.shape[0] and column >= 0 and column < counts.shape[1]:
            hip.atomic.add(counts, (row, column), 1)


@peer
def histogram_2d_by_loop(xs, ys, counts):
    for i in range(xs.size):
        row, column = int(ys[i] * counts.shape[0]), int(xs[i] * counts.shape[1])
        if row >= 0 and row < counts.shape[0] and column >= 0 and column < counts.shape[1]:
            counts[row, column] += 1


@kernel("histogram-2d", opencl=True)
def HISTOGRAM_2D(quick: bool) -> UserKernel:
    """points of float32 counted in 64 x 64 bins, those outside left out, atomics in global memory"""
    size = 2000 if quick else 300_000
    rng = np.random.default_rng(22)
    return UserKernel(
        {
            "xs": rng.random(size, np.float32) * np.float32(1.1),
            "ys": rng.random(size, np.float32) * np.float32(1.1),
            "counts": np.zeros((64, 64), np.int32),
        },
        ("counts",),
        lambda on: histogram_2d[blocks(size, THREADS), THREADS](on.xs, on.ys, on.counts),
        lambda on: histogram_2d_by_loop(on.xs, on.ys, on.counts),
        restored=("counts",),
    )


@hip.jit
def shared_histogram(values, counts):
    own = hip.shared.array(256, np.int32)
    own[hip.threadIdx.x] = 0
    hip.syncthreads()
    for i in range(hip.grid(1), values.size, hip.gridsize(1)):
        hip.atomic.add(own, values[i], 1)
    hip.syncthreads()
    hip.atomic.add(counts, hip.threadIdx.x, own[hip.threadIdx.x])


@peer
def shared_histogram_by_loop(values, counts):
    for i in range(values.size):
        counts[values[i]] += 1


@kernel("histogram-shared")
def SHARED(quick: bool) -> UserKernel:
    """a histogram of bytes: blocks of a grid-stride loop count in shared memory"""
    size = 2000 if quick else 1_000_000
    values = np.random.default_rng(23).integers(0, 256, size).astype(np.uint8)
    return UserKernel(
        {"values": values, "counts": np.zeros(256, np.int32)},
        ("counts",),
        lambda on: shared_histogram[32, 256](on.values, on.counts),
        lambda on: shared_histogram_by_loop(on.values, on.counts),
        restored=("counts",),
    )


@hip.jit
def assign_clusters(points, centres, labels):
    i = hip.grid(1)
    if i < points.shape[0]:
        best, best_distance = 0, np.float32(np.inf)
        for k in range(centres.shape[0]):
            distance = np.float32(0)
            for d in range(points.shape[1]):
                difference = points[i, d] - centres[k, d]
                distance += difference * difference
            if distance < best_distance:
                best, best_distance = k, distance
        labels[i] = best


@peer
def assign_clusters_by_loop(points, centres, labels):
    for i in range(points.shape[0]):
        best, best_distance = 0, np.float32(np.inf)
        for k in range(centres.shape[0]):
            distance = np.float32(0)
            for d in range(points.shape[1]):
                difference = points[i, d] - centres[k, d]
                distance += difference * difference
            if distance < best_distance:
                best, best_distance = k, distance
        labels[i] = best


@kernel("kmeans-assign")
def ASSIGN(quick: bool) -> UserKernel:
    """the nearest of 16 centres for points of four float32"""
    size = 2000 if quick else 40_000
    rng = np.random.default_rng(24)
    return UserKernel(
        {
            "points": rng.integers(0, 100, (size, 4)).astype(np.float32),
            "centres": rng.integers(0, 100, (16, 4)).astype(np.float32),
            "labels": np.zeros(size, np.int32) - 1,
        },
        ("labels",),
        lambda on: assign_clusters[blocks(size, THREADS), THREADS](on.points, on.centres, on.labels),
        lambda on: assign_clusters_by_loop(on.points, on.centres, on.labels),
    )


@hip.jit
def add_to_clusters(points, labels, sums, counts):
    i = hip.grid(1)
    if i < points.shape[0]:
        label = labels[i]
        for d in range(points.shape[1]):
            hip.atomic.add(sums, (label, d), points[i, d])
        hip.atomic.add(counts, label, 1)


@peer
def add_to_clusters_by_loop(points, labels, sums, counts):
    for i in range(points.shape[0]):
        label = labels[i]
        for d in range(points.shape[1]):
            sums[label, d] += points[i, d]
        counts[label] += 1


@kernel("kmeans-update")
def UPDATE(quick: bool) -> UserKernel:
    """points of four float32 added to the sums of their clusters, atomics in global memory"""
    size = 2000 if quick else 150_000
    rng = np.random.default_rng(25)
    return UserKernel(
        {
            "points": rng.integers(0, 10, (size, 4)).astype(np.float32),
            "labels": rng.integers(0, 16, size).astype(np.int32),
            "sums": np.zeros((16, 4), np.float32),
            "counts": np.zeros(16, np.int32),
        },
        ("sums", "counts"),
        lambda on: add_to_clusters[blocks(size, THREADS), THREADS](on.points, on.labels, on.sums, on.counts),
        lambda on: add_to_clusters_by_loop(on.points, on.labels, on.sums, on.counts),
        restored=("sums", "counts"),
    )


@hip.jit
def sum_moments(bins, values, counts, sums, squares, cubes, fourths):
    for i in range(hip.grid(1), bins.size, hip.gridsize(1)):
        bin, x = bins[i], values[i]
        hip.atomic.add(counts, bin, 1)
        hip.atomic.add(sums, bin, x)
        hip.atomic.add(squares, bin, x * x)
        hip.atomic.add(cubes, bin, x * x * x)
        hip.atomic.add(fourths, bin, x * x * x * x)


@peer
def sum_moments_by_loop(bins, values, counts, sums, squares, cubes, fourths):
    for i in range(bins.size):
        bin, x = bins[i], values[i]
        counts[bin] += 1
        sums[bin] += x
        squares[bin] += x * x
        cubes[bin] += x * x * x
        fourths[bin] += x * x * x * x


@kernel("moments-of-bins")
def MOMENTS(quick: bool) -> UserKernel:
    """counts and four sums of powers for each of 500 bins, in five arrays"""
    size = 2000 if quick else 200_000
    random = np.random.default_rng(744)
    names = ("counts", "sums", "squares", "cubes", "fourths")
    return UserKernel(
        {
            "bins": random.integers(0, 500, size),
            "values": random.random(size),
            "counts": np.zeros(500, np.int64),
            **{name: np.zeros(500) for name in names[1:]},
        },
        names,
        lambda on: sum_moments[64, THREADS](on.bins, on.values, on.counts, on.sums, on.squares, on.cubes, on.fourths),
        lambda on: sum_moments_by_loop(on.bins, on.values, on.counts, on.sums, on.squares, on.cubes, on.fourths),
        rtol=1e-9,
        restored=names,
    )
