"""What a program says of the grids that it is launched over, beyond their shape."""

from __future__ import annotations

from dataclasses import dataclass

from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.abi.narrow_grids import Choose, Gangs, NarrowGrids
from hip_runtime.errors import LaunchError
from hip_runtime.said_names import our

MOST_OF_SHORT_INDICES = (1 << 31) - 1
"""Threads along one axis of a grid whose index is computed as a signed integer of 32 bits."""


@dataclass(frozen=True)
class ShortIndices:
    """The rule of a program of *kernel* whose indices have 32 bits (`passes.short_indices`): a grid has to have fewer
    threads along each axis than these can count. Otherwise as *narrow* says."""

    kernel: str
    narrow: NarrowGrids | None

    def for_blocks(self, block: Dim3) -> Choose:
        """What chooses gangs for grids of blocks of the shape *block*; see `NarrowGrids.for_blocks`. It raises
        `LaunchError` if a grid has too many threads."""
        most_x, most_y, most_z = (MOST_OF_SHORT_INDICES // extent for extent in block)
        choose_gangs = None if self.narrow is None else self.narrow.for_blocks(block)

        def choose(grid: Dim3, arguments: bytes) -> Gangs | None:
            if grid[0] > most_x or grid[1] > most_y or grid[2] > most_z:
                raise self._refuse(grid, block)
            return None if choose_gangs is None else choose_gangs(grid, arguments)

        return choose

    def _refuse(self, grid: Dim3, block: Dim3) -> LaunchError:
        axis, threads = next(
            (axis, blocks * extent)
            for axis, blocks, extent in zip("xyz", grid, block, strict=True)
            if blocks * extent > MOST_OF_SHORT_INDICES
        )
        return LaunchError(
            f"kernel {self.kernel!r} computes its indices with 32 bits, as int32({our('grid')}(1)) does; "
            f"the grid has {threads} threads along {axis}, and the CPU device runs such a kernel with "
            f"at most {MOST_OF_SHORT_INDICES}; leave out the conversion, or launch several smaller grids"
        )
