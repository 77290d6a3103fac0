"""The loop that runs the gangs of a whole block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import AXES, WorkItem
from hip_runtime.drivers.cpu.abi.worker import counted
from hip_runtime.drivers.cpu.llvmir import I32


@contextmanager
def each_gang(
    builder: ir.IRBuilder, item: WorkItem, place: ir.Value, width: int, rows: int = 1, active: int | None = None
) -> Iterator[ir.Value]:  # fmt: skip
    """A loop over the gangs of a block, of *rows* rows each; those of the first *active* threads of a row, if it says
    how many. Inside, the work item *place* holds the gang's first thread; yields the number of threads from there to
    the end of its row.

    LLVM may unroll the loop over rows, so that what several rows load, as in a stencil, is loaded once.
    """
    most, count, planes = item.extents
    extent = item.row_lanes or I32(most)
    gangs = _count_in_row(builder, item, width, active)
    names = [f"thread.{AXES[axis]}" for axis in item.axes]
    with (
        counted(builder, names[2], I32(0), I32(planes)) as plane,
        counted(builder, names[1], I32(0), I32(count // rows)) as row,
        counted(builder, "gang", I32(0), gangs, rolled=True) as number,
    ):
        first = builder.mul(number, I32(width), flags=("nuw", "nsw"))
        first_row = builder.mul(row, I32(rows), flags=("nuw", "nsw"))
        item.store_thread(builder, place, (first, first_row, plane))
        yield builder.sub(extent, first, flags=("nuw", "nsw"))


def count_gangs(builder: ir.IRBuilder, item: WorkItem, width: int) -> ir.Value:
    """The number of gangs of *width* lanes of a block."""
    return builder.mul(_count_in_row(builder, item, width), I32(item.extents[1] * item.extents[2]))


def most_gangs(item: WorkItem, width: int) -> int:
    """The most gangs of *width* lanes that a block has."""
    return -(-item.limits[item.axes[0]] * item.tile // width) * item.extents[1] * item.extents[2]


def _count_in_row(builder: ir.IRBuilder, item: WorkItem, width: int, active: int | None = None) -> ir.Value:
    if item.row_lanes is None:
        return I32(-(-(active or item.extents[0]) // width))
    lanes = item.row_lanes
    if item.lengths is not None and active is not None and active < item.limits[0]:
        lanes = builder.select(builder.icmp_unsigned("<", lanes, I32(active)), lanes, I32(active))
    return _divide_up(builder, lanes, width)


def _divide_up(builder: ir.IRBuilder, number: ir.Value, by: int) -> ir.Value:
    return builder.udiv(builder.add(number, I32(by - 1), flags=("nuw", "nsw")), I32(by))
