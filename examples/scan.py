"""Running totals: a scan of each block in shared memory, of the blocks' totals, and the same by one call."""

import numpy as np
from gallery import command_line
from numba import hip, int64
from numba.hip import algorithms

SMALL = 3_000
THREADS = 256


@hip.jit
def scan_blocks(values, running, totals):
    """Running totals within each block (Hillis and Steele: each step adds the value twice as far back)."""
    sums = hip.shared.array(THREADS, int64)
    thread, i = hip.threadIdx.x, hip.grid(1)
    sums[thread] = values[i] if i < values.size else 0
    distance = 1
    while distance < THREADS:
        hip.syncthreads()
        before = sums[thread - distance] if thread >= distance else 0
        hip.syncthreads()
        sums[thread] += before
        distance *= 2
    if i < values.size:
        running[i] = sums[thread]
    if thread == THREADS - 1:
        totals[hip.blockIdx.x] = sums[thread]


@hip.jit
def add_totals(running, totals):
    """Add to each block what all blocks before it have."""
    i = hip.grid(1)
    if i < running.size and hip.blockIdx.x > 0:
        running[i] += totals[hip.blockIdx.x - 1]


def running_totals(values):
    """The scan of an array of the device."""
    blocks = -(-values.size // THREADS)
    running, totals = hip.device_array(values.size, np.int64), hip.device_array(blocks, np.int64)
    scan_blocks[blocks, THREADS](values, running, totals)
    if blocks > 1:
        add_totals[blocks, THREADS](running, running_totals(totals))
    return running


def main(size: int = 1_000_000) -> None:
    values = np.random.default_rng(3).integers(-100, 100, size)
    on_device = hip.to_device(values)
    by_hand = running_totals(on_device)
    by_call = algorithms.inclusive_scan(on_device)

    np.testing.assert_array_equal(by_hand.copy_to_host(), np.cumsum(values))
    np.testing.assert_array_equal(by_call.copy_to_host(), np.cumsum(values))
    print(f"scan: running totals of {size:,} int64, by hand and by algorithms, equal to NumPy's")


if __name__ == "__main__":
    command_line.run(main)
