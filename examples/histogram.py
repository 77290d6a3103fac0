"""A histogram: each block counts in shared memory, by atomics, and adds its counts to those of all."""

from pathlib import Path

import numpy as np
from gallery import command_line, pictures
from numba import hip, int32
from numba.hip import algorithms

SMALL = 5_000
BINS = 64


@hip.jit
def count(values, low, high, counts):
    mine = hip.shared.array(BINS, int32)
    for bin in range(hip.threadIdx.x, BINS, hip.blockDim.x):
        mine[bin] = 0
    hip.syncthreads()
    for i in range(hip.grid(1), values.size, hip.gridsize(1)):
        bin = int((values[i] - low) / (high - low) * BINS)
        if 0 <= bin < BINS:
            hip.atomic.add(mine, bin, 1)
    hip.syncthreads()
    for bin in range(hip.threadIdx.x, BINS, hip.blockDim.x):
        hip.atomic.add(counts, bin, mine[bin])


def main(size: int = 1_000_000, output: Path | None = None) -> None:
    rng = np.random.default_rng(6)
    values = np.concatenate([rng.normal(-1, 0.5, size // 2), rng.normal(1.5, 1.0, size - size // 2)])
    values = values[(values >= -4) & (values < 4)]
    on_device, counts = hip.to_device(values), hip.zeros(BINS, np.int32)
    count[64, 256](on_device, -4.0, 4.0, counts)
    by_call = algorithms.histogram_even(on_device, BINS, -4.0, 4.0)

    expected = np.histogram(values, BINS, (-4, 4))[0]
    np.testing.assert_array_equal(counts.copy_to_host(), expected)
    np.testing.assert_array_equal(np.asarray(by_call), expected)
    pictures.save_plot(output, lambda axes: axes.stairs(expected, np.linspace(-4, 4, BINS + 1), fill=True))
    print(f"histogram: {values.size:,} float64 in {BINS} bins, equal to NumPy's")


if __name__ == "__main__":
    command_line.run(main)
