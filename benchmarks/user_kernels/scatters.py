"""Results that go anywhere, by atomic additions: to neighbours, corners, cells and lines."""

from __future__ import annotations

import math

import numpy as np
from numba import hip

from benchmarks.user_kernels.definition import UserKernel, blocks, kernel, peer

THREADS = 256


@hip.jit
def push_shares(starts, columns, ranks, received):
    vertex = hip.grid(1)
    if vertex < ranks.size:
        begin, end = starts[vertex], starts[vertex + 1]
        for edge in range(begin, end):
            hip.atomic.add(received, columns[edge], ranks[vertex] / (end - begin))


@peer
def push_shares_by_loop(starts, columns, ranks, received):
    for vertex in range(ranks.size):
        begin, end = starts[vertex], starts[vertex + 1]
        for edge in range(begin, end):
            received[columns[edge]] += ranks[vertex] / (end - begin)


@kernel("neighbour-shares")
def SHARES(quick: bool) -> UserKernel:
    """each vertex adds its share to its neighbours: most have few, some have hundreds"""
    size = 1000 if quick else 40_000
    rng = np.random.default_rng(1)
    degrees = np.minimum((rng.pareto(1.2, size) + 1).astype(np.int64), size // 20)
    starts = np.concatenate(([0], np.cumsum(degrees)))
    return UserKernel(
        {
            "starts": starts,
            "columns": rng.integers(0, size, starts[-1]),
            "ranks": rng.random(size),
            "received": np.zeros(size),
        },
        ("received",),
        lambda on: push_shares[blocks(size, THREADS), THREADS](on.starts, on.columns, on.ranks, on.received),
        lambda on: push_shares_by_loop(on.starts, on.columns, on.ranks, on.received),
        rtol=1e-12,
        atol=1e-9,
        restored=("received",),
    )


@hip.jit
def deposit(xs, ys, charges, cells):
    i = hip.grid(1)
    if i < xs.size:
        x, y, charge = xs[i], ys[i], charges[i]
        column, row = int(x), int(y)
        right, below = x - column, y - row
        hip.atomic.add(cells, (row, column), charge * (1 - right) * (1 - below))
        hip.atomic.add(cells, (row, column + 1), charge * right * (1 - below))
        hip.atomic.add(cells, (row + 1, column), charge * (1 - right) * below)
        hip.atomic.add(cells, (row + 1, column + 1), charge * right * below)


@peer
def deposit_by_loop(xs, ys, charges, cells):
    for i in range(xs.size):
        x, y, charge = xs[i], ys[i], charges[i]
        column, row = int(x), int(y)
        right, below = x - column, y - row
        cells[row, column] += charge * (1 - right) * (1 - below)
        cells[row, column + 1] += charge * right * (1 - below)
        cells[row + 1, column] += charge * (1 - right) * below
        cells[row + 1, column + 1] += charge * right * below


@kernel("particles-to-cells")
def PARTICLES(quick: bool) -> UserKernel:
    """the charges of particles are divided among the corners of their cells"""
    size, side = (2000, 32) if quick else (100_000, 128)
    rng = np.random.default_rng(2)
    return UserKernel(
        {
            "xs": rng.random(size) * (side - 2),
            "ys": rng.random(size) * (side - 2),
            "charges": rng.random(size),
            "cells": np.zeros((side, side)),
        },
        ("cells",),
        lambda on: deposit[blocks(size, THREADS), THREADS](on.xs, on.ys, on.charges, on.cells),
        lambda on: deposit_by_loop(on.xs, on.ys, on.charges, on.cells),
        rtol=1e-12,
        atol=1e-9,
        restored=("cells",),
    )


@hip.jit
def add_normals(triangles, vertices, normals):
    i = hip.grid(1)
    if i < triangles.shape[0]:
        a, b, c = triangles[i, 0], triangles[i, 1], triangles[i, 2]
        ux, uy, uz = vertices[b, 0] - vertices[a, 0], vertices[b, 1] - vertices[a, 1], vertices[b, 2] - vertices[a, 2]
        vx, vy, vz = vertices[c, 0] - vertices[a, 0], vertices[c, 1] - vertices[a, 1], vertices[c, 2] - vertices[a, 2]
        for k in range(3):
            corner = triangles[i, k]
            hip.atomic.add(normals, (corner, 0), uy * vz - uz * vy)
            hip.atomic.add(normals, (corner, 1), uz * vx - ux * vz)
            hip.atomic.add(normals, (corner, 2), ux * vy - uy * vx)


@peer
def add_normals_by_loop(triangles, vertices, normals):
    for i in range(triangles.shape[0]):
        a, b, c = triangles[i, 0], triangles[i, 1], triangles[i, 2]
        ux, uy, uz = vertices[b, 0] - vertices[a, 0], vertices[b, 1] - vertices[a, 1], vertices[b, 2] - vertices[a, 2]
        vx, vy, vz = vertices[c, 0] - vertices[a, 0], vertices[c, 1] - vertices[a, 1], vertices[c, 2] - vertices[a, 2]
        for k in range(3):
            corner = triangles[i, k]
            normals[corner, 0] += uy * vz - uz * vy
            normals[corner, 1] += uz * vx - ux * vz
            normals[corner, 2] += ux * vy - uy * vx


@kernel("corner-normals")
def NORMALS(quick: bool) -> UserKernel:
    """each triangle of a mesh of float32 adds its normal to those of its corners, two triangles for each vertex"""
    side = 20 if quick else 100
    rng = np.random.default_rng(3)
    first = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).ravel()
    lower = np.stack((first, first + 1, first + side), axis=1)
    upper = np.stack((first + 1, first + side + 1, first + side), axis=1)
    triangles = np.concatenate((lower, upper))
    size = side * side
    return UserKernel(
        {
            "triangles": triangles.astype(np.int32),
            "vertices": rng.random((size, 3)).astype(np.float32),
            "normals": np.zeros((size, 3), np.float32),
        },
        ("normals",),
        lambda on: add_normals[blocks(len(triangles), THREADS), THREADS](on.triangles, on.vertices, on.normals),
        lambda on: add_normals_by_loop(on.triangles, on.vertices, on.normals),
        rtol=1e-4,
        atol=1e-5,
        restored=("normals",),
    )


@hip.jit
def add_forces(first, second, places, forces):
    pair = hip.grid(1)
    if pair < first.size:
        i, j = first[pair], second[pair]
        dx, dy, dz = places[i, 0] - places[j, 0], places[i, 1] - places[j, 1], places[i, 2] - places[j, 2]
        strength = 1 / (dx * dx + dy * dy + dz * dz + 0.01)
        hip.atomic.add(forces, (i, 0), dx * strength)
        hip.atomic.add(forces, (i, 1), dy * strength)
        hip.atomic.add(forces, (i, 2), dz * strength)
        hip.atomic.sub(forces, (j, 0), dx * strength)
        hip.atomic.sub(forces, (j, 1), dy * strength)
        hip.atomic.sub(forces, (j, 2), dz * strength)


@peer
def add_forces_by_loop(first, second, places, forces):
    for pair in range(first.size):
        i, j = first[pair], second[pair]
        dx, dy, dz = places[i, 0] - places[j, 0], places[i, 1] - places[j, 1], places[i, 2] - places[j, 2]
        strength = 1 / (dx * dx + dy * dy + dz * dz + 0.01)
        forces[i, 0] += dx * strength
        forces[i, 1] += dy * strength
        forces[i, 2] += dz * strength
        forces[j, 0] -= dx * strength
        forces[j, 1] -= dy * strength
        forces[j, 2] -= dz * strength


@kernel("forces-of-pairs")
def FORCES(quick: bool) -> UserKernel:
    """a list of pairs of particles: the force between both is added to one and subtracted from the other"""
    size, pairs = (200, 1000) if quick else (6000, 80_000)
    rng = np.random.default_rng(4)
    first = np.sort(rng.integers(0, size, pairs))
    return UserKernel(
        {
            "first": first,
            "second": (first + rng.integers(1, size // 20, pairs)) % size,
            "places": rng.random((size, 3)),
            "forces": np.zeros((size, 3)),
        },
        ("forces",),
        lambda on: add_forces[blocks(pairs, THREADS), THREADS](on.first, on.second, on.places, on.forces),
        lambda on: add_forces_by_loop(on.first, on.second, on.places, on.forces),
        rtol=1e-12,
        atol=1e-9,
        restored=("forces",),
    )


@hip.jit
def vote(xs, ys, cosines, sines, votes):
    i = hip.grid(1)
    if i < xs.size:
        for angle in range(cosines.size):
            distance = math.floor(xs[i] * cosines[angle] + ys[i] * sines[angle])
            hip.atomic.add(votes, (angle, distance + votes.shape[1] // 2), 1)


@peer
def vote_by_loop(xs, ys, cosines, sines, votes):
    for i in range(xs.size):
        for angle in range(cosines.size):
            distance = math.floor(xs[i] * cosines[angle] + ys[i] * sines[angle])
            votes[angle, distance + votes.shape[1] // 2] += 1


@kernel("votes-for-lines")
def VOTES(quick: bool) -> UserKernel:
    """the Hough transform: each point of an image votes for the lines through it"""
    size, side, angles = (200, 64, 20) if quick else (5000, 256, 180)
    rng = np.random.default_rng(5)
    turned = np.arange(angles) * (np.pi / angles)
    return UserKernel(
        {
            "xs": rng.integers(0, side, size),
            "ys": rng.integers(0, side, size),
            "cosines": np.cos(turned),
            "sines": np.sin(turned),
            "votes": np.zeros((angles, 3 * side), np.int32),
        },
        ("votes",),
        lambda on: vote[blocks(size, THREADS), THREADS](on.xs, on.ys, on.cosines, on.sines, on.votes),
        lambda on: vote_by_loop(on.xs, on.ys, on.cosines, on.sines, on.votes),
        restored=("votes",),
    )
