"""How the elements of an algorithm are shared out: tiles, each of which one wave goes through from start to end.

A tile is a number of whole rows; a row has an element for each lane. All depends on the number of elements and the
device's wave size alone, so that results are the same, to the last bit, on devices with other numbers of processors.
"""

from __future__ import annotations

from typing import NamedTuple

from hip_runtime import Device

MOST_TILES = 4096
LEAST_ROWS = 16
"""Fewer rows than that are not worth a wave of their own."""

WAVES_IN_BLOCK = 4


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


def tiles_of(device: Device, count: int) -> Tiles:
    """The tiles of *count* elements, at least one element, on *device*."""
    lanes = int(device.WARP_SIZE)
    rows = max(-(-count // (MOST_TILES * lanes)), LEAST_ROWS)
    length = rows * lanes
    return Tiles(count, length, -(-count // length), lanes)
