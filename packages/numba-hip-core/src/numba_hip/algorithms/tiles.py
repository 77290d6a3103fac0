"""How the elements of an algorithm are shared out: tiles, each of which one wave goes through from start to end.

A tile is a number of whole rows; a row has an element for each lane. All depends on the number of elements and the
device's wave size alone, so that results are the same, to the last bit, on devices with other numbers of processors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hip_runtime import Device
from numba_hip.decorators import jit
from numba_hip.language.untyped_names import blockIdx, same_in_wave, threadIdx

MOST_TILES = 4096
LEAST_ROWS = 16
"""Fewer rows than that are not worth a wave of their own."""

WAVES_IN_BLOCK = 4

ROWS_AHEAD = 4
"""Rows that a wave of an AMD GPU reads before it needs the first of them, as each comes after hundreds of cycles: 4096
waves of 64 lanes then wait for 4 MiB of numbers of four bytes, about what is under way in memory of 5 TB/s."""


class Tiles(NamedTuple):
    """*elements* in *tiles* tiles of *length* elements, the last of which may be shorter."""

    elements: int
    length: int
    tiles: int
    lanes: int

    @property
    def grid(self) -> int:
        """Blocks, each of `WAVES_IN_BLOCK` waves."""
        return -(-self.tiles // WAVES_IN_BLOCK)

    @property
    def block(self) -> tuple[int, int]:
        """The shape of a block: its second axis counts waves."""
        return self.lanes, WAVES_IN_BLOCK


def reads_ahead(device: Device) -> bool:
    """Whether waves of *device* read `ROWS_AHEAD` rows at once. Processors look ahead by themselves."""
    return not device.is_cpu


@jit(device=True)
def tile_of_wave() -> Any:
    """In a kernel with blocks of `Tiles.block`: the number of this wave's tile."""
    return blockIdx.x * WAVES_IN_BLOCK + same_in_wave(threadIdx.y)


def tiles_of(device: Device, count: int) -> Tiles:
    """The tiles of *count* elements, at least one element, on *device*."""
    lanes = int(device.WARP_SIZE)
    rows = max(-(-count // (MOST_TILES * lanes)), LEAST_ROWS)
    length = rows * lanes
    return Tiles(count, length, -(-count // length), lanes)
