"""Gangs that end where a row does, see `row_split`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.grid_stride_loops import MAX_LANES
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.llvmir import I32, allocate
from hip_runtime.drivers.cpu.vectorize.predicated_function import PredicatedFunction
from hip_runtime.drivers.cpu.vectorize.row_split import RowSplit
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder
from hip_runtime.drivers.cpu.vectorize.widen import Widener

_WIDEST = 4
"""Bytes of the largest elements whose values still fit into registers twice as wide."""

_MOST_INSTRUCTIONS = 100
"""Of longer kernels, what is computed once for a gang is a small part."""

MakeWidener = Callable[[Function, list[ir.Value]], Widener]
"""Makes what writes the instructions of a function with arguments."""


def gains_by_width(shapes: VectorShapes, item: WorkItem, size_of: SizeOf, width: int) -> bool:
    """Whether gangs of twice the *width* are better where gangs end with rows: what is computed once for a gang, above
    all the division that tells its row and the checks that its lanes are in it, is most of a short kernel."""
    if 2 * width > min(MAX_LANES, item.order.extents[0]) or item.order.extents[1] * item.order.extents[2] > 1:
        return False
    if item.memory.totals is not None or item.memory.tables is not None or any(shapes.order.loops.values()):
        return False
    accessed = [
        value.accessed
        for value, block in shapes.homes.items()
        if value.opcode in ("load", "store") and shapes.of(value.address, block) != 0
    ]
    return len(shapes.homes) <= _MOST_INSTRUCTIONS and all(size_of(kind) <= _WIDEST for kind in accessed)


def write_parts(
    split: RowSplit, lanes: VectorBuilder, item: WorkItem, entry: ir.IRBuilder, arguments: Sequence[ir.Value],
    make_widener: MakeWidener, mask_place: ir.Value, taken: ir.Value, done: ir.Block, otherwise: ir.Block,
) -> None:  # fmt: skip
    """Run the first lanes of a gang, those in one row, and where rows are short those in the next ones, too; store to
    *taken* how many they are. The gang's *arguments* end with the number of threads to the end of the row of the
    block. Goes to *done*, or to *otherwise* if the rest of the gang is to run in another way; its first thread is in
    the work item then, and the mask of its lanes in *mask_place*."""
    builder = lanes.builder
    *passed, count = arguments
    left_place, room_place, row_place = (allocate(entry, I32, name) for name in ("left", "room", "row"))
    names = ("parts", "measured", "part", "part.done", "next.row")
    head, measured, part, behind, next_row = (builder.append_basic_block(name) for name in names)
    all_lanes = lanes.at_most(count)
    builder.store(all_lanes, left_place)
    builder.branch(head)
    builder.position_at_end(head)
    builder.store(I32(0), room_place)
    left = builder.load(left_place, typ=I32)
    mask = lanes.first_lanes(left)
    builder.store(mask, mask_place)
    measure = make_widener(split.measure, [*passed, room_place, row_place])
    PredicatedFunction(measure, mask, measured, {}, None).write()
    builder.position_at_end(measured)
    room = builder.load(room_place, typ=I32)
    builder.cbranch(builder.icmp_unsigned("==", room, I32(0)), otherwise, part)
    builder.position_at_end(part)
    some = builder.select(builder.icmp_unsigned("<", room, left), room, left)
    PredicatedFunction(make_widener(split.part, passed), lanes.first_lanes(some), behind, {}, None).write()
    builder.position_at_end(behind)
    rest = builder.sub(left, some, flags=("nuw", "nsw"))
    builder.store(rest, left_place)
    builder.store(builder.sub(all_lanes, rest, flags=("nuw", "nsw")), taken)
    fills_gang = builder.icmp_unsigned(">=", builder.load(row_place, typ=I32), I32(lanes.width))
    fills_half = builder.icmp_unsigned(">", some, I32(lanes.width // 2))
    is_done = builder.or_(builder.icmp_unsigned("==", rest, I32(0)), builder.or_(fills_gang, fills_half))
    builder.cbranch(is_done, done, next_row)
    builder.position_at_end(next_row)
    first = item.layout.load(builder, passed[0], "thread", item.order.lane_axis)
    item.store_lane(builder, passed[0], builder.add(first, some, flags=("nuw", "nsw")))
    builder.branch(head)
