"""Grids that have few threads along the axis of the lanes.

``i, j = hip.grid(2)`` for a matrix with three columns has three threads along y that do anything, however the blocks
are shaped. In a gang along y all other lanes would be idle, so such a launch runs code with lanes along another axis.
"""

from __future__ import annotations

from typing import NamedTuple

from hip_runtime.driver import Dim3


class NarrowGrids(NamedTuple):
    """What tells grids that have few threads along *axis*, that of the lanes, of which a gang has *width*: fewer than
    *least* do anything. The bound of their index is the integer at *offset* of the packed arguments, of *size* bytes;
    0 bytes if it is not known. They have lanes along the axis *other* instead, if they fill gangs there."""

    axis: int
    other: int
    width: int
    least: int
    offset: int = 0
    size: int = 0

    def hold(self, grid: Dim3, block: Dim3, arguments: bytes) -> bool:
        """Whether *grid*, of blocks of the shape *block*, is one of these."""
        extent = grid[self.axis] * block[self.axis]
        if extent >= self.width or grid[self.other] * block[self.other] < self.width:
            return False
        if self.size:
            bound = int.from_bytes(arguments[self.offset : self.offset + self.size], "little", signed=True)
            extent = min(extent, bound)
        return extent < self.least
