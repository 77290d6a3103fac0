"""The loop that runs the gangs of a whole block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.thread_order import AXES
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.abi.worker import counted
from hip_runtime.drivers.cpu.ir.loop_metadata import keep_rolled, rolled
from hip_runtime.drivers.cpu.llvmir import I32


class Gangs(Protocol):
    """A function for gangs."""

    @property
    def width(self) -> int:
        """Their lanes."""

    @property
    def follows_rows(self) -> bool:
        """Whether each returns how many threads it ran, and the next one begins behind these."""


@dataclass
class RowGang:
    """A gang of a loop: *count* threads are left in its row of the block, of which it has *taken* some."""

    count: ir.Value
    taken: ir.Value | None = None


@contextmanager
def each_gang(
    builder: ir.IRBuilder, item: WorkItem, place: ir.Value, width: int, rows: int = 1, active: int | None = None,
    limit: ir.Value | None = None,
) -> Iterator[ir.Value]:  # fmt: skip
    """A loop over the gangs of a block, of *rows* rows each; those of the first *active* threads of a row, if it says
    how many. Inside, the work item *place* holds the gang's first thread; yields the number of threads from there to
    the end of its row, which is *limit* if that is given.

    LLVM may unroll the loop over rows, so that what several rows load, as in a stencil, is loaded once.
    """
    most, count, planes = item.order.extents
    extent = limit or item.order.row_lanes or I32(most)
    gangs = _count_in_row(builder, item, width, active) if limit is None else _divide_up(builder, limit, width)
    with (
        _each_row(builder, item, place, planes, count // rows) as (plane, row),
        counted(builder, "gang", I32(0), gangs, [rolled(builder.module)]) as number,
    ):
        first = builder.mul(number, I32(width), flags=("nuw", "nsw"))
        first_row = builder.mul(row, I32(rows), flags=("nuw", "nsw"))
        item.store_thread(builder, place, (first, first_row, plane))
        yield builder.sub(extent, first, flags=("nuw", "nsw"))


@contextmanager
def gangs_by_rows(
    builder: ir.IRBuilder, item: WorkItem, place: ir.Value, active: int | None = None, limit: ir.Value | None = None
) -> Iterator[RowGang]:
    """A loop as `each_gang` over gangs of which each begins with the thread behind the last one of the gang before."""
    most, count, planes = item.order.extents
    extent = limit or item.order.row_lanes or I32(most)
    end = _limit(builder, item, extent, active) if limit is None else limit
    with _each_row(builder, item, place, planes, count) as (plane, row):
        before = builder.block
        loop, after = builder.append_basic_block("gang"), builder.append_basic_block("gang.end")
        builder.branch(loop)
        builder.position_at_end(loop)
        first = builder.phi(I32, name="first")
        first.add_incoming(I32(0), before)
        item.store_thread(builder, place, (first, row, plane))
        gang = RowGang(builder.sub(extent, first, flags=("nuw", "nsw")))
        yield gang
        following = builder.add(first, gang.taken, flags=("nuw", "nsw"))
        first.add_incoming(following, builder.block)
        keep_rolled(builder.cbranch(builder.icmp_unsigned("<", following, end), loop, after), builder.module)
        builder.position_at_end(after)


@contextmanager
def _each_row(
    builder: ir.IRBuilder, item: WorkItem, place: ir.Value, planes: int, rows: int
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """A loop over *planes* and, within each, over *rows* of the threads of a block; if several rows of blocks run at
    once, over those of each of them, with its index in *place*."""
    names = [f"{what}.{AXES[item.order.axes[axis]]}" for what, axis in (("thread", 2), ("block", 1), ("thread", 1))]
    with counted(builder, names[0], I32(0), I32(planes)) as plane, ExitStack() as loops:
        if item.order.block_rows is not None:
            block = counted(builder, names[1], item.order.block_rows.first, item.order.block_rows.limit)
            item.store_block(builder, place, item.order.axes[1], loops.enter_context(block))
        yield plane, loops.enter_context(counted(builder, names[2], I32(0), I32(rows)))


def run_gangs(
    builder: ir.IRBuilder, item: WorkItem, place: ir.Value, made: Gangs, call: Callable[[ir.Value], ir.Value],
    rows: int = 1, active: int | None = None, limit: ir.Value | None = None,
) -> None:  # fmt: skip
    """Run the gangs of a block, of *rows* rows each, by *call*, which calls the function that was *made* for them with
    the number of threads to the end of the row, which is *limit* if that is given."""
    if made.follows_rows:
        with gangs_by_rows(builder, item, place, active, limit) as gang:
            gang.taken = call(gang.count)
        return
    with each_gang(builder, item, place, made.width, rows, active, limit) as count:
        call(count)


def count_gangs(builder: ir.IRBuilder, item: WorkItem, width: int) -> ir.Value:
    """The number of gangs of *width* lanes of a block."""
    return builder.mul(_count_in_row(builder, item, width), I32(item.order.extents[1] * item.order.extents[2]))


def most_gangs(item: WorkItem, width: int) -> int:
    """The most gangs of *width* lanes that a block has."""
    return (
        -(-item.order.limits[item.order.lane_axis] * item.order.tile // width)
        * item.order.extents[1]
        * item.order.extents[2]
    )


def _count_in_row(builder: ir.IRBuilder, item: WorkItem, width: int, active: int | None = None) -> ir.Value:
    if item.order.row_lanes is None:
        return I32(-(-(active or item.order.extents[0]) // width))
    return _divide_up(builder, _limit(builder, item, item.order.row_lanes, active), width)


def _limit(builder: ir.IRBuilder, item: WorkItem, lanes: ir.Value, active: int | None) -> ir.Value:
    """The first *active* of a row's *lanes*, if it says how many."""
    if item.order.row_lanes is None:
        return lanes if active is None else I32(active)
    if item.order.lengths is None or active is None or active >= item.order.limits[0]:
        return lanes
    return builder.select(builder.icmp_unsigned("<", lanes, I32(active)), lanes, I32(active))


def _divide_up(builder: ir.IRBuilder, number: ir.Value, by: int) -> ir.Value:
    return builder.udiv(builder.add(number, I32(by - 1), flags=("nuw", "nsw")), I32(by))
