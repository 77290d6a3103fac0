"""Where the lanes of a gang are: in their wave, in memory, and in which row of the block."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.thread_order import ALONG_X, AXES
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.alignments import Alignments, align_gangs
from hip_runtime.drivers.cpu.llvmir import I32, allocate


def fit_waves(item: WorkItem, width: int) -> bool:
    """Whether gangs of *width* that begin at multiples of it are neighbours in one wave."""
    rows_fit = item.order.block[0] % width == 0 or item.order.block[1] * item.order.block[2] == 1
    return item.order.axes == ALONG_X and item.wave_size % width == 0 and rows_fit


def align_lanes(item: WorkItem, width: int, are_neighbours: bool) -> Alignments:
    """The alignments in gangs that begin at multiples of *width*; *are_neighbours*: their lanes are, in their wave."""
    axis = item.order.lane_axis
    return align_gangs(width, AXES[axis], item.order.block[axis], are_neighbours, item.order.multiple or 1)


def place_in_row(builder: ir.IRBuilder, entry: ir.IRBuilder, item: WorkItem, place: ir.Value, row: int) -> ir.Value:
    """A copy of the work item at *place* for the thread so many rows further; its memory is allocated in *entry*."""
    layout = item.layout
    copy = allocate(entry, layout.type, "row.item")
    builder.store(builder.load(place, typ=layout.type), copy)
    axis = item.order.axes[1]
    index = layout.load(builder, copy, "thread", axis)
    layout.store(builder, builder.add(index, I32(row), flags=("nuw", "nsw")), copy, "thread", axis)
    return copy
