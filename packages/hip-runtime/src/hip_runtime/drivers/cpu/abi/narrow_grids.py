"""Grids that have few threads along the axis of the lanes.

``i, j = hip.grid(2)`` for a matrix with three columns has three threads along y that do anything, however the blocks
are shaped. In a gang along y all other lanes would be idle, so such a launch runs code with lanes along another axis,
or with narrower gangs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hip_runtime.driver import Dim3


class Gangs(NamedTuple):
    """Gangs along *axis*, of *width* lanes; 0 if that is left to the compiler."""

    axis: int
    width: int = 0


Choose = Callable[[Dim3, bytes], Gangs | None]
"""Chooses the gangs for a grid and packed arguments; ``None`` if those of the program are good. It is asked by every
launch, so what is the same for all of them is computed before."""


def turn(block: Dim3) -> Dim3:
    """The shape of a *block* whose threads along x are counted along y, and the other way round."""
    return block[1], block[0], block[2]


class NarrowGrids(NamedTuple):
    """What tells grids that have few threads along *axis*, that of the lanes, of which a gang has *width*, but *rows*
    or more along the axis *other*. If fewer than *least* do anything, *other* is that of the lanes instead; else gangs
    have only *lanes*, unless that is 0. The bound of the threads' index is the integer at *offset* of the packed
    arguments, of *size* bytes; 0 bytes if it is not known."""

    axis: int
    other: int
    width: int
    least: int
    rows: int
    lanes: int = 0
    offset: int = 0
    size: int = 0
    is_turned: bool = False
    """Whether the axes are those of blocks whose threads along x are counted along y."""

    def for_blocks(self, block: Dim3) -> Choose:
        """What chooses gangs for grids of blocks of the shape *block*."""
        if self.is_turned:
            block = turn(block)
        axis, other, width, size = self.axis, self.other, self.width, self.size
        threads, part = block[axis], slice(self.offset, self.offset + size)
        many = max(-(-width // threads), 2)  # of several blocks, few are without any thread that does something
        few_rows = -(-self.rows // block[other])
        least, turned = self.least, Gangs(0 if self.is_turned else other)
        narrower = Gangs(axis, self.lanes) if self.lanes else None

        def choose(grid: Dim3, arguments: bytes) -> Gangs | None:
            if grid[axis] >= many or grid[other] < few_rows:
                return None
            extent = grid[axis] * threads
            if size:
                extent = min(extent, int.from_bytes(arguments[part], "little", signed=True))
            if extent >= width:
                return None
            return turned if extent < least else narrower

        return choose
