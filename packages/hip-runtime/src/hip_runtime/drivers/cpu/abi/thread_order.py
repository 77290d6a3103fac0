"""The order in which a program runs the threads and the blocks of a launch.

The axis that runs fastest is that of the lanes. Along it, gangs may reach over several blocks, neighbours that are
joined to a *tile*.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.driver import Dim3, block_threads
from hip_runtime.drivers.cpu.abi.narrow_grids import turn
from hip_runtime.drivers.cpu.llvmir import I32, I64

AXES = ("x", "y", "z")

Axes = tuple[int, int, int]
"""Axes of a block, by number: that of the lanes first, then that of the rows."""

ALONG_X: Axes = (0, 1, 2)


@dataclass(frozen=True)
class BlockRows:
    """Rows of blocks, in code that is being written: those with the indices from *first* to below *limit*."""

    first: ir.Value
    limit: ir.Value


@dataclass
class ThreadOrder:
    """The shape of a program's blocks, and the order that was chosen for their threads."""

    block: Dim3
    lengths: tuple[int, int] | None = None
    """The least and the greatest length of the blocks, rows of threads along x, if it is only known at run time."""
    multiple: int | None = None
    """A power of two that the length is a multiple of then, if that was decided before gangs are written; if 1, these
    are written for parts of a gang, too."""
    axes: Axes = ALONG_X
    """The order in which the threads of a block run, and the blocks of a grid, the fastest axis first."""
    tile: int = 1
    """The most blocks that gangs reach over, neighbours along the first of these axes. The index of a thread along that
    axis is then counted from the first one of these blocks."""
    is_turned: bool = False
    """Whether the threads of a block are counted along y instead of x, see `passes.turned_blocks`."""
    row_lanes: ir.Value | None = None
    """The lanes of a row of the blocks that gangs reach over now, in a worker that is being written, if they are only
    counted at run time."""
    blocks_of_gang: int = 1
    """The blocks of a tile that a gang reaches over, as far as its axis goes."""
    joins_rows_from: int | None = None
    """Threads of a grid from which on tiles have several rows of blocks, if these are whole rows of the grid. Of such
    blocks, the first planes of threads run before the second ones; ``None`` for one row in any grid."""
    block_rows: BlockRows | None = None
    """The rows of the blocks that run now then, in a worker that is being written."""
    takes_turns: bool = False
    """Whether gangs of different blocks take turns in a loop: then more blocks at once are better, see
    `vectorize.turns`."""

    @property
    def lane_axis(self) -> int:
        """The axis of the lanes, by number."""
        return self.axes[0]

    @property
    def along(self) -> str:
        """The name of that axis."""
        return AXES[self.axes[0]]

    @property
    def limits(self) -> Dim3:
        """The most threads of a block along each axis."""
        return self.block if self.lengths is None else (self.lengths[1], *self.block[1:])

    @property
    def threads(self) -> int:
        """The most threads of a block."""
        return block_threads(self.limits)

    @property
    def extents(self) -> Dim3:
        """The extents of the block along `axes`: those of a row of lanes, of a plane of rows, and of the planes."""
        lanes, rows, planes = (self.block[axis] for axis in self.axes)
        return lanes * self.tile, rows, planes

    def turn(self) -> None:
        """Count the threads of a block, which is a row, along y instead of x."""
        self.block, self.is_turned = turn(self.block), True

    def split_number(self, builder: ir.IRBuilder, number: ir.Value) -> list[ir.Value]:
        """The x, y and z index of the thread with the linear index *number*, in the order of `axes`."""
        if self.lengths is not None:
            return [number, I32(0), I32(0)]
        indices: dict[int, ir.Value] = {}
        for axis in self.axes:
            indices[axis] = builder.urem(number, I32(self.block[axis]))
            number = builder.udiv(number, I32(self.block[axis]))
        return [indices[axis] for axis in range(len(AXES))]

    def count_threads(self, builder: ir.IRBuilder) -> ir.Value:
        """The threads of a block, as ``i64``."""
        if self.lengths is None:
            return I64(self.threads)
        assert self.row_lanes is not None
        return builder.zext(self.row_lanes, I64)
