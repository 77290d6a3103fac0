"""Runs the lanes of a gang row by row, those of one row at a time, see `row_split`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.llvmir import I32, allocate
from hip_runtime.drivers.cpu.vectorize.predicated_function import PredicatedFunction
from hip_runtime.drivers.cpu.vectorize.row_split import RowSplit
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder
from hip_runtime.drivers.cpu.vectorize.widen import Widener

MakeWidener = Callable[[Function, list[ir.Value]], Widener]
"""Makes what writes the instructions of a function with arguments."""


def write_parts(
    split: RowSplit, lanes: VectorBuilder, item: WorkItem, entry: ir.IRBuilder, arguments: Sequence[ir.Value],
    make_widener: MakeWidener, mask_place: ir.Value, done: ir.Block, otherwise: ir.Block,
) -> None:  # fmt: skip
    """Write a loop over the parts of the gang whose *arguments* end with the number of threads to the end of the row of
    the block. It goes to *done*, or to *otherwise* if a part is to run in another way; the first thread of that part is
    in the work item then, and the mask of its lanes and those behind it in *mask_place*."""
    builder = lanes.builder
    *passed, count = arguments
    left, taken = (allocate(entry, I32, name) for name in ("left", "taken"))
    names = ("parts", "measured", "part", "part.done")
    head, measured, part, behind = (builder.append_basic_block(name) for name in names)
    partial = builder.icmp_unsigned("<", count, I32(lanes.width))
    builder.store(builder.select(partial, count, I32(lanes.width)), left)
    builder.branch(head)
    builder.position_at_end(head)
    builder.store(I32(0), taken)
    now = builder.load(left, typ=I32)
    mask = lanes.first_lanes(now)
    builder.store(mask, mask_place)
    PredicatedFunction(make_widener(split.measure, [*passed, taken]), mask, measured, {}, None).write()
    builder.position_at_end(measured)
    room = builder.load(taken, typ=I32)
    builder.cbranch(builder.icmp_unsigned("==", room, I32(0)), otherwise, part)
    builder.position_at_end(part)
    some = builder.select(builder.icmp_unsigned("<", room, now), room, now)
    PredicatedFunction(make_widener(split.part, passed), lanes.first_lanes(some), behind, {}, None).write()
    builder.position_at_end(behind)
    rest = builder.sub(now, some, flags=("nuw", "nsw"))
    builder.store(rest, left)
    first = item.layout.load(builder, passed[0], "thread", item.axes[0])
    item.store_lane(builder, passed[0], builder.add(first, some, flags=("nuw", "nsw")))
    builder.cbranch(builder.icmp_unsigned("==", rest, I32(0)), done, head)
