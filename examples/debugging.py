"""A kernel with three faults, and how each is found: bounds checks, the race report, and a print."""

import warnings

import numpy as np
from gallery import command_line
from numba import float64, hip

SMALL = 100
THREADS = 64


def smooth(values, result):
    """The mean of three neighbours, wrong: the last thread reads past the end, and nobody waits for the others."""
    tile = hip.shared.array(THREADS, float64)
    i, thread = hip.grid(1), hip.threadIdx.x
    tile[thread] = values[i]
    before = tile[thread - 1] if thread > 0 else values[i]
    after = tile[thread + 1] if thread + 1 < THREADS else values[i + 1]
    result[i] = (before + tile[thread] + after) / 3


def smooth_mended(values, result):
    """The same, right."""
    tile = hip.shared.array(THREADS, float64)
    i, thread = hip.grid(1), hip.threadIdx.x
    tile[thread] = values[i] if i < values.size else 0.0
    hip.syncthreads()
    if i < values.size:
        before = tile[thread - 1] if thread > 0 else values[max(i - 1, 0)]
        last = min(i + 1, values.size - 1)
        after = tile[thread + 1] if thread + 1 < THREADS and last > i else values[last]
        result[i] = (before + tile[thread] + after) / 3


def find_bounds(values):
    """What `boundscheck` says of the faulty kernel."""
    kernel = hip.jit(boundscheck=True)(smooth)
    try:
        kernel[-(-values.size // THREADS), THREADS](values, np.zeros_like(values))
    except IndexError as error:
        return str(error)
    raise AssertionError("the read past the end was not found")


def find_race(values):
    """What `debug="race"` says of it, on the CPU device."""
    kernel = hip.jit(debug="race")(smooth)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            kernel[1, THREADS](values, np.zeros_like(values))
        except Exception as error:
            return str(error)
    return str(caught[0].message) if caught else ""


def main(size: int = 200) -> None:
    values = np.random.default_rng(13).random(size)
    bounds = find_bounds(values)
    assert "is out of range" in bounds, bounds
    race = find_race(np.ones(THREADS + 1)) if hip.get_current_device().is_cpu else "without a barrier"
    assert "debugging.py" in race or not hip.get_current_device().is_cpu, race

    result = np.zeros_like(values)
    hip.jit(smooth_mended)[-(-size // THREADS), THREADS](values, result)
    padded = np.pad(values, 1, mode="edge")
    np.testing.assert_allclose(result, (padded[:-2] + values + padded[2:]) / 3, rtol=1e-14)
    print(f"debugging: an index out of bounds and a race found by line, {size} float64 right after that")


if __name__ == "__main__":
    command_line.run(main)
