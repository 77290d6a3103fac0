"""Lengths of blocks that one program runs.

The block shape is a constant of machine code, as the loops over threads, the lanes of gangs and the indices of threads
depend on it. Of blocks that are one row of threads, all of which run in gangs, only the number of gangs does: such a
program reads the length of its blocks when it runs, and serves all with as many lanes.
"""

from __future__ import annotations

from typing import NamedTuple

from hip_runtime.driver import Dim3

WIDEST = 64
"""Lanes of the widest gangs; blocks of that length and longer ones have gangs alike."""

LONGEST = 1024
"""Threads of the largest block."""


class Lengths(NamedTuple):
    """Blocks of one row with *least* to *most* threads, in a multiple of *multiple*."""

    least: int
    most: int
    multiple: int = 1

    def fit(self, block: Dim3) -> bool:
        """Whether *block* is one of these."""
        return is_row(block) and self.least <= block[0] <= self.most and block[0] % self.multiple == 0


def is_row(block: Dim3) -> bool:
    """Whether *block* is one row of several threads, along x."""
    return block[0] > 1 and block[1] == block[2] == 1


def lengths_like(length: int, fewest_lanes: int) -> tuple[int, int]:
    """The least and the greatest length of blocks that have gangs of as many lanes as those of *length* threads, where
    gangs of less than *fewest_lanes* are not formed."""
    if length < fewest_lanes:
        return 2, fewest_lanes - 1
    least = min(1 << (length.bit_length() - 1), WIDEST)
    return least, LONGEST if least == WIDEST else 2 * least - 1
