"""What a program says of the grids that it is launched over, beyond their shape."""

from __future__ import annotations

from dataclasses import dataclass

from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.abi.narrow_grids import Gangs, NarrowGrids
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

    def choose(self, grid: Dim3, block: Dim3, arguments: bytes) -> Gangs | None:
        """The gangs for *grid*; see `NarrowGrids.choose`.

        Raises `LaunchError` if the grid has too many threads.
        """
        for axis, blocks, extent in zip("xyz", grid, block, strict=True):
            if blocks * extent > MOST_OF_SHORT_INDICES:
                raise LaunchError(
                    f"kernel {self.kernel!r} computes its indices with 32 bits, as int32({our('grid')}(1)) does; "
                    f"the grid has {blocks * extent} threads along {axis}, and the CPU device runs such a kernel with "
                    f"at most {MOST_OF_SHORT_INDICES}; leave out the conversion, or launch several smaller grids"
                )
        return None if self.narrow is None else self.narrow.choose(grid, block, arguments)
