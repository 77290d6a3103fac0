"""Stars that attract each other: each thread sums the forces on one, of all others by way of shared memory."""

import math
from pathlib import Path

import numpy as np
from gallery import command_line, pictures
from numba import float64, hip

SMALL = 70
THREADS = 64
SOFTENING = 0.05


@hip.jit
def accelerate(positions, masses, velocities, time_step):
    """Change velocities by the gravity of all stars, with a constant of 1."""
    near = hip.shared.array((THREADS, 3), float64)
    thread, i = hip.threadIdx.x, hip.grid(1)
    count = masses.size
    x = positions[i, 0] if i < count else 0.0
    y = positions[i, 1] if i < count else 0.0
    ax = ay = 0.0
    for first in range(0, count, THREADS):
        if first + thread < count:
            near[thread, 0] = positions[first + thread, 0]
            near[thread, 1] = positions[first + thread, 1]
            near[thread, 2] = masses[first + thread]
        hip.syncthreads()
        for other in range(min(THREADS, count - first)):
            dx, dy = near[other, 0] - x, near[other, 1] - y
            square = dx * dx + dy * dy + SOFTENING * SOFTENING
            pull = near[other, 2] / (square * math.sqrt(square))
            ax += pull * dx
            ay += pull * dy
        hip.syncthreads()
    if i < count:
        velocities[i, 0] += time_step * ax
        velocities[i, 1] += time_step * ay


@hip.jit
def drift(positions, velocities, time_step):
    i = hip.grid(1)
    if i < positions.shape[0]:
        positions[i, 0] += time_step * velocities[i, 0]
        positions[i, 1] += time_step * velocities[i, 1]


def energy(positions, masses, velocities):
    """Of motion and of position, in NumPy."""
    apart = positions[:, None] - positions[None]
    distances = np.sqrt((apart**2).sum(-1) + SOFTENING**2)
    pairs = masses[:, None] * masses[None] / distances
    return 0.5 * (masses * (velocities**2).sum(1)).sum() - 0.5 * (pairs.sum() - np.trace(pairs))


def make_galaxy(size):
    """A disc of stars that turns about its heavy middle."""
    rng = np.random.default_rng(9)
    radius, angle = 0.3 + 1.2 * np.sqrt(rng.random(size)), rng.random(size) * 2 * np.pi
    positions = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    speed = 1 / np.sqrt(radius)
    velocities = np.stack([-speed * np.sin(angle), speed * np.cos(angle)], 1)
    masses = np.full(size, 0.2 / size)
    positions[0], velocities[0], masses[0] = 0, 0, 1
    return positions, masses, velocities


def main(size: int = 1000, output: Path | None = None) -> None:
    steps, time_step = 100, 0.005
    stars = make_galaxy(size)
    before = energy(*stars)
    positions, masses, velocities = (hip.to_device(array) for array in stars)
    blocks = -(-size // THREADS)
    trails = [stars[0]]
    for step in range(steps):
        accelerate[blocks, THREADS](positions, masses, velocities, time_step)
        drift[blocks, THREADS](positions, velocities, time_step)
        if output is not None and step % 5 == 4:
            trails.append(positions.copy_to_host())

    after = energy(positions.copy_to_host(), stars[1], velocities.copy_to_host())
    assert abs(after / before - 1) < 0.02, f"energy went from {before} to {after}"

    def draw(axes):
        for age, trail in enumerate(trails):
            axes.plot(*trail.T, ".", color="tab:blue", markersize=2, alpha=(age + 1) / len(trails))
        axes.set(aspect="equal", title=f"{size} stars, {steps} steps")

    pictures.save_plot(output, draw)
    print(f"n body: {size:,} stars, {steps} steps, energy by NumPy's sum kept within {abs(after / before - 1):.1e}")


if __name__ == "__main__":
    command_line.run(main)
