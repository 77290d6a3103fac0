"""Sessions of visitors: clicks are sorted by visitor and time, and divided where somebody paused for long."""

import numpy as np
from gallery import command_line
from numba import hip
from numba.hip import algorithms

SMALL = 3_000
PAUSE = 1800
"""Seconds without a click after which a new session begins."""


@hip.jit
def mark_starts(visitors, times, starts):
    """1 where a session begins: at a visitor's first click, and after a pause."""
    i = hip.grid(1)
    if i < starts.size:
        starts[i] = i == 0 or visitors[i] != visitors[i - 1] or times[i] - times[i - 1] > PAUSE


def divide(visitors, times):
    """The clicks in order, the session of each, and how many clicks and seconds each session has."""
    by_time = algorithms.argsort(times)
    order = algorithms.gather(by_time, algorithms.argsort(algorithms.gather(visitors, by_time)))  # stable, so both
    visitors, times = algorithms.gather(visitors, order), algorithms.gather(times, order)
    starts = hip.device_array(visitors.size, np.int64)
    mark_starts.forall(starts.size)(visitors, times, starts)
    sessions = algorithms.inclusive_scan(starts)
    _, clicks = algorithms.reduce_by_key(sessions, algorithms.ConstantIterator(np.int64(1)))
    _, first = algorithms.reduce_by_key(sessions, times, min)
    _, last = algorithms.reduce_by_key(sessions, times, max)
    return order, sessions, clicks, algorithms.transform(lambda end, begin: end - begin, last, first)


def reference(visitors, times):
    order = np.lexsort([times, visitors])
    visitors, times = visitors[order], times[order]
    starts = np.ones(visitors.size, np.int64)
    starts[1:] = (np.diff(visitors) != 0) | (np.diff(times) > PAUSE)
    places = np.flatnonzero(starts)
    ends = np.append(places[1:], visitors.size)
    return order, np.cumsum(starts), ends - places, times[ends - 1] - times[places]


def main(size: int = 200_000) -> None:
    rng = np.random.default_rng(10)
    visitors = rng.integers(0, max(size // 60, 1), size)
    times = rng.integers(0, 24 * 3600, size)
    found = divide(hip.to_device(visitors), hip.to_device(times))

    for mine, theirs in zip(found, reference(visitors, times), strict=True):
        np.testing.assert_array_equal(np.asarray(mine), theirs)
    clicks, seconds = found[2].copy_to_host(), found[3].copy_to_host()
    print(
        f"sessions: {size:,} clicks are {clicks.size:,} sessions, the longest of {seconds.max() / 60:.0f} minutes, "
        "equal to NumPy's"
    )


if __name__ == "__main__":
    command_line.run(main)
