"""Numbers that a kernel computes of numbers, many times: the ways that lead from the last one to the first are more
than can ever be followed, and longer than Python calls functions in one another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import hip

BLOCK, BLOCKS, START = 64, 2, 3
WIDE, DEEP = 40, 350

ATOMIC = """
def kernel(x, m):
    h = m
    {steps}
    hip.atomic.add(x, h & 7, 1)
"""

LOOP = """
def kernel(x, m):
    i = hip.grid(1)
    h = m
    {steps}
    for j in range(h & 15):
        hip.atomic.add(x, (i + j) & 7, 1)
"""

LIMIT = """
def kernel(x, m):
    shared = hip.shared.array(64, np.int64)
    t = hip.threadIdx.x
    h = m
    {steps}
    h &= 31
    shared[t] = 1
    if t < h:
        shared[t] = 2
    hip.syncthreads()
    if t < h:
        hip.atomic.add(x, t & 7, shared[t])
"""

INDEX = """
def kernel(x, m):
    shared = hip.shared.array(64, np.int64)
    t = hip.threadIdx.x
    h = t
    {steps}
    shared[t] = h & 7
    hip.syncthreads()
    if h < m:
        hip.atomic.add(x, shared[t] & 7, 1)
"""

QUOTIENT = """
def kernel(x, m):
    i = hip.grid(1)
    h = m
    {steps}
    hip.atomic.add(x, int(i / ((h & 7) + 1)) & 7, 1)
"""


def last_of(first: int, steps: int) -> int:
    """The number after as many *steps*, as an integer of 64 bits."""
    for _ in range(steps):
        first = (first * first + first) & 0xFFFF_FFFF_FFFF_FFFF
    return first - (1 << 64) if first >> 63 else first


def updates(source: str, steps: int) -> list[int]:
    """The elements that all threads add to."""
    last = last_of(START, steps)
    threads = [(i, i % BLOCK) for i in range(BLOCK * BLOCKS)]
    if source is ATOMIC:
        return [last & 7 for _ in threads]
    if source is LOOP:
        return [(i + j) & 7 for i, _ in threads for j in range(last & 15)]
    if source is LIMIT:
        return [t & 7 for _, t in threads if t < last & 31 for _ in range(2)]
    if source is INDEX:
        return [h & 7 for _, t in threads if (h := last_of(t, steps)) < START]
    return [i // ((last & 7) + 1) & 7 for i, _ in threads]


def make(source: str, steps: int) -> Callable[..., Any]:
    """The kernel of *source* with so many *steps* in it."""
    names: dict[str, Any] = {"hip": hip, "np": np}
    exec(source.format(steps="\n    ".join(["h = h * h + h"] * steps)), names)
    return hip.jit(names["kernel"])


@pytest.mark.parametrize(
    "source", [ATOMIC, LOOP, LIMIT, INDEX, QUOTIENT], ids=["atomic", "loop", "limit", "index", "quotient"]
)
@pytest.mark.parametrize("steps", [WIDE, pytest.param(DEEP, marks=pytest.mark.long)])
def test_numbers_of_numbers(source: str, steps: int) -> None:
    x = hip.to_device(np.zeros(8, np.int64))
    make(source, steps)[BLOCKS, BLOCK](x, START)
    wanted = np.bincount(updates(source, steps), minlength=8)
    np.testing.assert_array_equal(x.copy_to_host(), wanted)
