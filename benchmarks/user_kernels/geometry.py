"""Points, rays and polygons: loops over shapes, with comparisons that differ from thread to thread."""

from __future__ import annotations

import math

import numpy as np
from numba import hip, int32

from benchmarks.user_kernels.definition import UserKernel, blocks, kernel, peer

THREADS = 128


@hip.jit
def nearest(points, queries, found):
    i = hip.grid(1)
    if i < queries.shape[0]:
        best, best_distance = -1, np.float32(np.inf)
        for j in range(points.shape[0]):
            dx = queries[i, 0] - points[j, 0]
            dy = queries[i, 1] - points[j, 1]
            dz = queries[i, 2] - points[j, 2]
            distance = dx * dx + dy * dy + dz * dz
            if distance < best_distance:
                best, best_distance = j, distance
        found[i] = best


@peer
def nearest_by_loop(points, queries, found):
    for i in range(queries.shape[0]):
        best, best_distance = -1, np.float32(np.inf)
        x, y, z = queries[i, 0], queries[i, 1], queries[i, 2]
        for j in range(points.shape[0]):
            dx, dy, dz = x - points[j, 0], y - points[j, 1], z - points[j, 2]
            distance = dx * dx + dy * dy + dz * dz
            if distance < best_distance:
                best, best_distance = j, distance
        found[i] = best


@kernel("nearest-neighbour")
def NEAREST(quick: bool) -> UserKernel:
    """the nearest of 1000 points in space for each query, all of them tried"""
    size = 200 if quick else 2000
    rng = np.random.default_rng(31)
    return UserKernel(
        {
            "points": rng.integers(0, 1000, (1000, 3)).astype(np.float32),
            "queries": rng.integers(0, 1000, (size, 3)).astype(np.float32),
            "found": np.zeros(size, np.int32) - 2,
        },
        ("found",),
        lambda on: nearest[blocks(size, THREADS), THREADS](on.points, on.queries, on.found),
        lambda on: nearest_by_loop(on.points, on.queries, on.found),
    )


def boxes(leaves: int) -> np.ndarray:
    """A complete binary tree over a row of unit intervals, as a heap; leaves are a bit smaller than a unit."""
    tree = np.zeros((2 * leaves, 2), np.float32)
    tree[leaves:, 0] = np.arange(leaves)
    tree[leaves:, 1] = np.arange(leaves) + 0.75
    for node in range(leaves - 1, 0, -1):
        tree[node] = tree[2 * node, 0], tree[2 * node + 1, 1]
    return tree


@hip.jit
def count_hits(tree, lows, highs, hits):
    i = hip.grid(1)
    if i >= lows.size:
        return
    stack = hip.local.array(32, int32)
    stack[0] = 1
    top, count, leaves = 1, 0, tree.shape[0] // 2
    while top > 0:
        top -= 1
        node = stack[top]
        if tree[node, 0] <= highs[i] and tree[node, 1] >= lows[i]:
            if node >= leaves:
                count += 1
            else:
                stack[top] = 2 * node
                stack[top + 1] = 2 * node + 1
                top += 2
    hits[i] = count


@peer
def count_hits_by_loop(tree, lows, highs, hits):
    stack = np.empty(32, np.int32)
    leaves = tree.shape[0] // 2
    for i in range(lows.size):
        stack[0] = 1
        top, count = 1, 0
        low, high = lows[i], highs[i]
        while top > 0:
            top -= 1
            node = stack[top]
            if tree[node, 0] <= high and tree[node, 1] >= low:
                if node >= leaves:
                    count += 1
                else:
                    stack[top] = 2 * node
                    stack[top + 1] = 2 * node + 1
                    top += 2
        hits[i] = count


@kernel("bvh-traversal")
def BVH(quick: bool) -> UserKernel:
    """boxes of a tree that intervals meet, with a stack for each thread in a private array"""
    size = 200 if quick else 8000
    rng = np.random.default_rng(32)
    lows = (rng.random(size) * 1000).astype(np.float32)
    return UserKernel(
        {
            "tree": boxes(1024),
            "lows": lows,
            "highs": lows + rng.random(size).astype(np.float32) * np.float32(8),
            "hits": np.zeros(size, np.int32) - 1,
        },
        ("hits",),
        lambda on: count_hits[blocks(size, THREADS), THREADS](on.tree, on.lows, on.highs, on.hits),
        lambda on: count_hits_by_loop(on.tree, on.lows, on.highs, on.hits),
    )


def _first_hit(spheres, x, y):
    """How far a ray along z goes through (x, y) until it meets one of the spheres, or infinity."""
    nearest_hit = np.float32(np.inf)
    for k in range(spheres.shape[0]):
        dx, dy = x - spheres[k, 0], y - spheres[k, 1]
        inside = spheres[k, 3] * spheres[k, 3] - dx * dx - dy * dy
        if inside > 0:
            depth = spheres[k, 2] - math.sqrt(inside)
            if depth < nearest_hit:
                nearest_hit = depth
    return nearest_hit


first_hit = hip.jit(device=True)(_first_hit)
first_hit_of_peer = peer(_first_hit)


@hip.jit
def cast_rays(spheres, image):
    x, y = hip.grid(2)
    if y < image.shape[0] and x < image.shape[1]:
        image[y, x] = first_hit(spheres, np.float32(x), np.float32(y))


@peer
def cast_rays_by_loop(spheres, image):
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            image[y, x] = first_hit_of_peer(spheres, np.float32(x), np.float32(y))


@kernel("ray-spheres")
def RAYS(quick: bool) -> UserKernel:
    """a ray for each pixel, the first of 40 spheres that it meets"""
    size = 32 if quick else 200
    rng = np.random.default_rng(33)
    spheres = (rng.random((40, 4)) * (size, size, 50, size / 10) + (0, 0, 100, 1)).astype(np.float32)
    return UserKernel(
        {"spheres": spheres, "image": np.zeros((size, size), np.float32)},
        ("image",),
        lambda on: cast_rays[(blocks(size, 16), blocks(size, 16)), (16, 16)](on.spheres, on.image),
        lambda on: cast_rays_by_loop(on.spheres, on.image),
        rtol=1e-5,
    )


@hip.jit
def polyline_distance(corners, points, distances):
    i = hip.grid(1)
    if i < points.shape[0]:
        best = np.inf
        for k in range(corners.shape[0] - 1):
            ax, ay = corners[k, 0], corners[k, 1]
            bx, by = corners[k + 1, 0] - ax, corners[k + 1, 1] - ay
            px, py = points[i, 0] - ax, points[i, 1] - ay
            t = max(0.0, min(1.0, (px * bx + py * by) / (bx * bx + by * by)))
            best = min(best, math.hypot(px - t * bx, py - t * by))
        distances[i] = best


@peer
def polyline_distance_by_loop(corners, points, distances):
    for i in range(points.shape[0]):
        best = np.inf
        x, y = points[i, 0], points[i, 1]
        for k in range(corners.shape[0] - 1):
            ax, ay = corners[k, 0], corners[k, 1]
            bx, by = corners[k + 1, 0] - ax, corners[k + 1, 1] - ay
            px, py = x - ax, y - ay
            t = max(0.0, min(1.0, (px * bx + py * by) / (bx * bx + by * by)))
            dx, dy = px - t * bx, py - t * by
            best = min(best, dx * dx + dy * dy)
        distances[i] = math.sqrt(best)


@kernel("polyline-distance")
def POLYLINE(quick: bool) -> UserKernel:
    """distances of points from a line of 64 corners, float64"""
    size = 200 if quick else 8000
    rng = np.random.default_rng(34)
    return UserKernel(
        {"corners": rng.random((64, 2)), "points": rng.random((size, 2)), "distances": np.zeros(size)},
        ("distances",),
        lambda on: polyline_distance[blocks(size, THREADS), THREADS](on.corners, on.points, on.distances),
        lambda on: polyline_distance_by_loop(on.corners, on.points, on.distances),
        rtol=1e-10,
    )


@hip.jit
def inside_polygon(corners, xs, ys, inside):
    i = hip.grid(1)
    if i < xs.size:
        within = False
        j = corners.shape[0] - 1
        for k in range(corners.shape[0]):
            if (corners[k, 1] > ys[i]) != (corners[j, 1] > ys[i]):
                slope = (corners[j, 0] - corners[k, 0]) / (corners[j, 1] - corners[k, 1])
                if xs[i] < slope * (ys[i] - corners[k, 1]) + corners[k, 0]:
                    within = not within
            j = k
        inside[i] = within


@peer
def inside_polygon_by_loop(corners, xs, ys, inside):
    for i in range(xs.size):
        within = False
        x, y = xs[i], ys[i]
        j = corners.shape[0] - 1
        for k in range(corners.shape[0]):
            if (corners[k, 1] > y) != (corners[j, 1] > y):
                slope = (corners[j, 0] - corners[k, 0]) / (corners[j, 1] - corners[k, 1])
                if x < slope * (y - corners[k, 1]) + corners[k, 0]:
                    within = not within
            j = k
        inside[i] = within


@kernel("point-in-polygon")
def POLYGON(quick: bool) -> UserKernel:
    """whether points are inside of a polygon of 50 corners, by counting the sides that a ray crosses"""
    size = 200 if quick else 20_000
    rng = np.random.default_rng(35)
    angles = np.linspace(0, 2 * np.pi, 50, endpoint=False)
    radii = 0.3 + 0.7 * rng.random(50)
    corners = np.stack((radii * np.cos(angles), radii * np.sin(angles)), axis=1)
    xs, ys = 2 * rng.random((2, size)) - 1
    return UserKernel(
        {"corners": corners, "xs": xs, "ys": ys, "inside": np.zeros(size, np.int8) - 1},
        ("inside",),
        lambda on: inside_polygon[blocks(size, THREADS), THREADS](on.corners, on.xs, on.ys, on.inside),
        lambda on: inside_polygon_by_loop(on.corners, on.xs, on.ys, on.inside),
    )


@hip.jit
def turn_points(x, y, angle, turned_x, turned_y):
    i = hip.grid(1)
    if i < x.size:
        c, s = math.cos(angle), math.sin(angle)
        turned_x[i] = c * x[i] - s * y[i]
        turned_y[i] = s * x[i] + c * y[i]


@peer
def turn_points_by_loop(x, y, angle, turned_x, turned_y):
    c, s = math.cos(angle), math.sin(angle)
    for i in range(x.size):
        turned_x[i] = c * x[i] - s * y[i]
        turned_y[i] = s * x[i] + c * y[i]


@kernel("turn-by-angle")
def TURN(quick: bool) -> UserKernel:
    """points in the plane that are turned by an angle, whose sine and cosine each thread computes; float64"""
    x, y = np.random.default_rng(171).random((2, 1000 if quick else 100_000))
    angle = 0.7
    c, s = np.cos(angle), np.sin(angle)
    return UserKernel(
        {"x": x, "y": y, "turned_x": np.zeros_like(x), "turned_y": np.zeros_like(y)},
        ("turned_x", "turned_y"),
        lambda on: turn_points[blocks(x.size, 256), 256](on.x, on.y, angle, on.turned_x, on.turned_y),
        lambda on: turn_points_by_loop(on.x, on.y, angle, on.turned_x, on.turned_y),
        rtol=1e-12,
        atol=1e-14,
        expected=lambda on: {"turned_x": c * on.x - s * on.y, "turned_y": s * on.x + c * on.y},
    )
