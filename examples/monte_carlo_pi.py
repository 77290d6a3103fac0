"""Pi by chance: each thread draws points with a generator of its own and counts those inside a circle."""

import numpy as np
from gallery import command_line
from numba import hip
from numba.hip.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float64

SMALL = 20
THREADS = 64


@hip.jit
def count_inside(states, draws, inside):
    thread = hip.grid(1)
    count = 0
    for _ in range(draws):
        x = xoroshiro128p_uniform_float64(states, thread)
        y = xoroshiro128p_uniform_float64(states, thread)
        if x * x + y * y <= 1.0:
            count += 1
    hip.atomic.add(inside, 0, count)


def main(size: int = 1000) -> None:
    blocks = 64
    draws = size
    states = create_xoroshiro128p_states(blocks * THREADS, seed=7)
    inside = hip.zeros(1, np.int64)
    count_inside[blocks, THREADS](states, draws, inside)
    points = blocks * THREADS * draws
    estimate = 4 * int(inside.copy_to_host()[0]) / points

    deviation = 4 * np.sqrt(np.pi / 4 * (1 - np.pi / 4) / points)  # of a binomial distribution
    assert abs(estimate - np.pi) < 5 * deviation, f"{estimate} is more than five deviations from pi"
    off = abs(estimate - np.pi) / deviation
    print(f"monte carlo pi: {points:,} points of float64, {estimate:.5f}, {off:.1f} standard deviations from pi")


if __name__ == "__main__":
    command_line.run(main)
