"""Particles that act on those nearby, and equations that each thread integrates for a start of its own."""

from __future__ import annotations

import math

import numpy as np
from numba import hip

from benchmarks.user_kernels.definition import UserKernel, blocks, fast_peer, kernel, peer

THREADS = 128


@hip.jit(fastmath=True)
def forces_with_cutoff(positions, cutoff, forces):
    i = hip.grid(1)
    if i < positions.shape[0]:
        fx, fy, fz = np.float32(0), np.float32(0), np.float32(0)
        for j in range(positions.shape[0]):
            dx = positions[j, 0] - positions[i, 0]
            dy = positions[j, 1] - positions[i, 1]
            dz = positions[j, 2] - positions[i, 2]
            squared = dx * dx + dy * dy + dz * dz
            if j != i and squared < cutoff * cutoff:
                inverse = np.float32(1) / math.sqrt(squared + np.float32(1e-3))
                strength = inverse * inverse * inverse
                fx += dx * strength
                fy += dy * strength
                fz += dz * strength
        forces[i, 0] = fx
        forces[i, 1] = fy
        forces[i, 2] = fz


@fast_peer
def forces_with_cutoff_by_loop(positions, cutoff, forces):
    limit = cutoff * cutoff
    for i in range(positions.shape[0]):
        x, y, z = positions[i, 0], positions[i, 1], positions[i, 2]
        fx, fy, fz = np.float32(0), np.float32(0), np.float32(0)
        for j in range(positions.shape[0]):
            dx, dy, dz = positions[j, 0] - x, positions[j, 1] - y, positions[j, 2] - z
            squared = dx * dx + dy * dy + dz * dz
            if squared < limit:  # of the particle itself all differences are zero
                inverse = np.float32(1) / math.sqrt(squared + np.float32(1e-3))
                strength = inverse * inverse * inverse
                fx += dx * strength
                fy += dy * strength
                fz += dz * strength
        forces[i, 0], forces[i, 1], forces[i, 2] = fx, fy, fz


@kernel("nbody-cutoff")
def CUTOFF(quick: bool) -> UserKernel:
    """forces between particles that are near each other, all pairs tried"""
    size = 100 if quick else 1500
    positions = np.random.default_rng(41).random((size, 3), np.float32)
    cutoff = np.float32(0.3)
    return UserKernel(
        {"positions": positions, "forces": np.zeros((size, 3), np.float32)},
        ("forces",),
        lambda on: forces_with_cutoff[blocks(size, THREADS), THREADS](on.positions, cutoff, on.forces),
        lambda on: forces_with_cutoff_by_loop(on.positions, cutoff, on.forces),
        rtol=1e-3,
        atol=1.0,
    )


def cells_of(size: int, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in a cube in the order of cells, of which there are so many along each axis, and where cells start."""
    positions = np.random.default_rng(42).random((size, 3)) * cells
    numbers = positions.astype(np.int64) @ np.array([cells * cells, cells, 1])
    order = np.argsort(numbers, kind="stable")
    starts = np.searchsorted(numbers[order], np.arange(cells**3 + 1))
    return positions[order], starts.astype(np.int32)


@hip.jit
def lennard_jones(positions, starts, cells, energies):
    i = hip.grid(1)
    if i < positions.shape[0]:
        x, y, z = positions[i, 0], positions[i, 1], positions[i, 2]
        energy = 0.0
        for cx in range(max(int(x) - 1, 0), min(int(x) + 2, cells)):
            for cy in range(max(int(y) - 1, 0), min(int(y) + 2, cells)):
                for cz in range(max(int(z) - 1, 0), min(int(z) + 2, cells)):
                    cell = (cx * cells + cy) * cells + cz
                    for j in range(starts[cell], starts[cell + 1]):
                        if j != i:
                            dx, dy, dz = positions[j, 0] - x, positions[j, 1] - y, positions[j, 2] - z
                            squared = dx * dx + dy * dy + dz * dz
                            if squared < 1.0:
                                ratio = 0.01 / (squared + 0.001)
                                sixth = ratio * ratio * ratio
                                energy += 4.0 * (sixth * sixth - sixth)
        energies[i] = energy


@peer
def lennard_jones_by_loop(positions, starts, cells, energies):
    for i in range(positions.shape[0]):
        x, y, z = positions[i, 0], positions[i, 1], positions[i, 2]
        low, high = max(int(z) - 1, 0), min(int(z) + 2, cells)
        energy = 0.0
        for cx in range(max(int(x) - 1, 0), min(int(x) + 2, cells)):
            for cy in range(max(int(y) - 1, 0), min(int(y) + 2, cells)):
                row = (cx * cells + cy) * cells
                for j in range(starts[row + low], starts[row + high]):  # cells along z are neighbours
                    dx, dy, dz = positions[j, 0] - x, positions[j, 1] - y, positions[j, 2] - z
                    squared = dx * dx + dy * dy + dz * dz
                    if j != i and squared < 1.0:
                        ratio = 0.01 / (squared + 0.001)
                        sixth = ratio * ratio * ratio
                        energy += 4.0 * (sixth * sixth - sixth)
        energies[i] = energy


@kernel("lennard-jones-cells", opencl=True)
def LENNARD_JONES(quick: bool) -> UserKernel:
    """energies of particles with those in the cells around their own, float64"""
    size, cells = (100, 3) if quick else (2000, 8)
    positions, starts = cells_of(size, cells)
    return UserKernel(
        {"positions": positions, "starts": starts, "energies": np.zeros(size)},
        ("energies",),
        lambda on: lennard_jones[blocks(size, THREADS), THREADS](on.positions, on.starts, cells, on.energies),
        lambda on: lennard_jones_by_loop(on.positions, on.starts, cells, on.energies),
        rtol=1e-9,
    )


def _slope(x, y, z):
    """The Lorenz equations."""
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z


slope = hip.jit(device=True)(_slope)
slope_of_peer = peer(_slope)


@hip.jit
def lorenz(states, steps, h):
    i = hip.grid(1)
    if i < states.shape[1]:
        x, y, z = states[0, i], states[1, i], states[2, i]
        for _ in range(steps):
            ax, ay, az = slope(x, y, z)
            bx, by, bz = slope(x + h / 2 * ax, y + h / 2 * ay, z + h / 2 * az)
            cx, cy, cz = slope(x + h / 2 * bx, y + h / 2 * by, z + h / 2 * bz)
            dx, dy, dz = slope(x + h * cx, y + h * cy, z + h * cz)
            x += h / 6 * (ax + 2 * bx + 2 * cx + dx)
            y += h / 6 * (ay + 2 * by + 2 * cy + dy)
            z += h / 6 * (az + 2 * bz + 2 * cz + dz)
        states[0, i], states[1, i], states[2, i] = x, y, z


@peer
def lorenz_by_loop(states, steps, h):
    for i in range(states.shape[1]):
        x, y, z = states[0, i], states[1, i], states[2, i]
        for _ in range(steps):
            ax, ay, az = slope_of_peer(x, y, z)
            bx, by, bz = slope_of_peer(x + h / 2 * ax, y + h / 2 * ay, z + h / 2 * az)
            cx, cy, cz = slope_of_peer(x + h / 2 * bx, y + h / 2 * by, z + h / 2 * bz)
            dx, dy, dz = slope_of_peer(x + h * cx, y + h * cy, z + h * cz)
            x += h / 6 * (ax + 2 * bx + 2 * cx + dx)
            y += h / 6 * (ay + 2 * by + 2 * cy + dy)
            z += h / 6 * (az + 2 * bz + 2 * cz + dz)
        states[0, i], states[1, i], states[2, i] = x, y, z


@kernel("lorenz-rk4")
def LORENZ(quick: bool) -> UserKernel:
    """20 steps of Runge and Kutta's method for the Lorenz equations, float64"""
    size = 200 if quick else 4000
    states = np.random.default_rng(43).random((3, size)) * 10
    return UserKernel(
        {"states": states},
        ("states",),
        lambda on: lorenz[blocks(size, THREADS), THREADS](on.states, 20, 0.01),
        lambda on: lorenz_by_loop(on.states, 20, 0.01),
        rtol=1e-9,
        restored=("states",),
    )


@hip.jit
def epidemic(rates, recoveries, steps, h, peaks):
    i = hip.grid(1)
    if i < rates.size:
        s, infected, peak = np.float32(0.99), np.float32(0.01), np.float32(0)
        for _ in range(steps):
            caught = rates[i] * s * infected
            s -= h * caught
            infected += h * (caught - recoveries[i] * infected)
            peak = max(peak, infected)
        peaks[i] = peak


@peer
def epidemic_by_loop(rates, recoveries, steps, h, peaks):
    for i in range(rates.size):
        s, infected, peak = np.float32(0.99), np.float32(0.01), np.float32(0)
        rate, recovery = rates[i], recoveries[i]
        for _ in range(steps):
            caught = rate * s * infected
            s -= h * caught
            infected += h * (caught - recovery * infected)
            peak = max(peak, infected)
        peaks[i] = peak


@kernel("sir-ode")
def SIR(quick: bool) -> UserKernel:
    """the course of an epidemic, 100 steps of Euler's method for each pair of rates"""
    size = 200 if quick else 4000
    rng = np.random.default_rng(44)
    h = np.float32(0.5)
    arrays = {"rates": rng.random(size, np.float32), "recoveries": rng.random(size, np.float32) * np.float32(0.3)}
    return UserKernel(
        arrays | {"peaks": np.zeros(size, np.float32)},
        ("peaks",),
        lambda on: epidemic[blocks(size, THREADS), THREADS](on.rates, on.recoveries, 100, h, on.peaks),
        lambda on: epidemic_by_loop(on.rates, on.recoveries, 100, h, on.peaks),
        rtol=1e-4,
    )


@hip.jit
def add_bells(places, centres, width, heights):
    i = hip.grid(1)
    if i < places.size:
        total = 0.0
        for j in range(centres.size):
            total += math.exp(-(((places[i] - centres[j]) / width) ** 2))
        heights[i] = total


@peer
def add_bells_by_loop(places, centres, width, heights):
    for i in range(places.size):
        total = 0.0
        for j in range(centres.size):
            total += math.exp(-(((places[i] - centres[j]) / width) ** 2))
        heights[i] = total


@kernel("bell-curves")
def BELLS(quick: bool) -> UserKernel:
    """sums of narrow bell curves at many places, most of them far off, where ``exp`` is 0"""
    random = np.random.default_rng(745)
    places, centres = random.random(200 if quick else 20_000), random.random(10 if quick else 50)
    return UserKernel(
        {"places": places, "centres": centres, "heights": np.zeros_like(places)},
        ("heights",),
        lambda on: add_bells[blocks(places.size, THREADS), THREADS](on.places, on.centres, 0.01, on.heights),
        lambda on: add_bells_by_loop(on.places, on.centres, 0.01, on.heights),
        rtol=1e-12,
        expected=lambda on: {"heights": np.exp(-(((on.places[:, None] - on.centres) / 0.01) ** 2)).sum(axis=1)},
    )
