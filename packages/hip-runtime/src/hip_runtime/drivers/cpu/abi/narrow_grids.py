"""Grids that have few threads along the axis of the lanes.

``i, j = hip.grid(2)`` for a matrix with three columns has three threads along y that do anything, however the blocks
are shaped. In a gang along y all other lanes would be idle, so such a launch runs code with lanes along another axis,
or with narrower gangs.
"""

from __future__ import annotations

from typing import NamedTuple

from hip_runtime.driver import Dim3


class Gangs(NamedTuple):
    """Gangs along *axis*, of *width* lanes; 0 if that is left to the compiler."""

    axis: int
    width: int = 0


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

    def choose(self, grid: Dim3, block: Dim3, arguments: bytes) -> Gangs | None:
        """The gangs for *grid*, of blocks of the shape *block*; ``None`` if it is not narrow."""
        if self.is_turned:
            block = turn(block)
        blocks, extent = grid[self.axis], grid[self.axis] * block[self.axis]
        if (extent >= self.width and blocks > 1) or grid[self.other] * block[self.other] < self.rows:
            return None  # of several blocks, few are without any thread that does something
        if self.size:
            bound = int.from_bytes(arguments[self.offset : self.offset + self.size], "little", signed=True)
            extent = min(extent, bound)
        if extent >= self.width:
            return None
        if extent < self.least:
            return Gangs(0 if self.is_turned else self.other)
        return Gangs(self.axis, self.lanes) if self.lanes else None
