"""The worker: the loop over the blocks of a launch, as LLVM IR.

`build_worker` writes a module with the ``spmd.*`` functions of docs/design/spmd-bitcode.md, a function ``i64 worker(ptr
frame, ptr record)`` and the global variable `PROGRAM_SYMBOL`, which launches take. The block shape is a constant
throughout, so the loops over the threads have constant trip counts, no remainders beyond those that the shape causes,
and induction variables that are the thread indices.

A *body* runs the threads of some blocks. `run_threads` calls the kernel for one thread after the other, which suffices
for kernels whose threads do not synchronise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from llvmlite import ir

from hip_devicelib.codeobject import Kernel, Parameter
from hip_runtime.drivers.cpu.abi.grid_context import ALIGNMENT
from hip_runtime.drivers.cpu.abi.launch_frame import (
    CHUNKS_PER_THREAD,
    FIRST_PAUSE,
    FRAME,
    NEVER_ALONE,
    NO_WORDS,
    PROGRAM,
    TIMED_ALONE,
    UNKNOWN_COST,
    WORKER_RECORD,
    WORKER_TYPE,
)
from hip_runtime.drivers.cpu.abi.thread_order import ALONG_X, AXES, BlockRows
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.ir.debug_locations import keep_lines
from hip_runtime.drivers.cpu.ir.loop_metadata import mark_loop, rolled, unvectorized
from hip_runtime.drivers.cpu.ir.types import NamedType
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, I64, PTR, VOID, allocate, function_address, store_atomic

PROGRAM_SYMBOL = "spmd.program"
WORKER_SYMBOL = "spmd.worker"

PARAMETER_TYPES: dict[str, ir.Type] = {
    "i1": I1, "i8": I8, "i16": ir.IntType(16), "i32": I32, "i64": I64,
    "half": ir.HalfType(), "bfloat": NamedType("bfloat"), "float": ir.FloatType(), "double": ir.DoubleType(),
    "ptr": PTR,
}  # fmt: skip


@dataclass(frozen=True)
class Blocks:
    """The blocks of a chunk, in code that is being written: those with the numbers from *first* to below *limit*."""

    first: ir.Value
    limit: ir.Value
    between: Callable[[ir.Value, ir.Value], AbstractContextManager[None]]
    """Loops over blocks from a first one to below a limit; the index of each is in the work item meanwhile."""

    def each(self) -> AbstractContextManager[None]:
        """A loop over all of them."""
        return self.between(self.first, self.limit)


Body = Callable[[ir.IRBuilder, ir.Value, Sequence[ir.Value], Blocks], None]
"""Writes code that runs the threads of blocks. It takes a builder, the work item, the kernel's arguments, and the
blocks."""


def build_worker(kernel: Kernel, item: WorkItem, body: Body) -> None:
    """Define *kernel*'s worker, and the functions that the kernel calls, in the module of *item*.

    The length of blocks that is known at run time is read from the program that the frame names.

    The packed arguments are followed by 64-bit words: the bytes of dynamic shared memory, if the kernel uses any, and
    the address of the blocks' words and contexts, if it waits for the grid.
    """
    module = item.module
    item.define_functions()
    worker = ir.Function(module, WORKER_TYPE, WORKER_SYMBOL)
    worker.attributes.add("nounwind")
    frame, notes = worker.args
    frame.add_attribute("noalias")
    notes.add_attribute("noalias")
    builder = ir.IRBuilder(worker.append_basic_block("entry"))
    if item.has_lines:
        keep_lines(builder)
    place = _allocate_item(item, builder, frame, notes)
    buffer = FRAME.load(builder, frame, "arguments")
    arguments = [load_parameter(builder, buffer, parameter) for parameter in kernel.parameters]
    _store_hidden(builder, buffer, kernel.argument_bytes, item, place)
    if not item.waits_for_grid:
        item.store_shared(builder, place)
    grid = [FRAME.load(builder, frame, "grid", number) for number in range(3)]
    if item.waits_for_grid:
        _store_contexts(item, builder, place, grid)

    @contextmanager
    def each_block(first: ir.Value, limit: ir.Value) -> Iterator[None]:
        with _blocks(item, builder, first, limit, grid) as (number, indices):
            for axis, index in indices:
                item.store_block(builder, place, axis, index)
            if item.waits_for_grid:
                counted_along_x = number if item.order.axes == ALONG_X else _count_along_x(builder, indices, grid)
                item.layout.store(builder, counted_along_x, place, "block_number")
            yield

    first, limit = (FRAME.load(builder, frame, name) for name in ("next_block", "block_count"))
    number = (
        first
        if item.order.axes == ALONG_X
        else _count_along_x(builder, _split_number(item, builder, first, grid), grid)
    )
    store_atomic(builder, number, WORKER_RECORD.field(builder, notes, "chunk"))
    if item.memory.tables is not None:
        item.memory.tables.write_start(builder, place, arguments, notes)
    start = builder.block
    body(builder, place, arguments, Blocks(first, limit, each_block))
    if item.memory.totals is not None:
        item.memory.totals.write(builder, place, start)
    if item.memory.results is not None:
        item.memory.results.write(builder, place, start)
    if item.memory.tables is not None:
        item.memory.tables.write_end(builder, place, arguments, notes)
    builder.ret(builder.sub(limit, first))
    _define_program(module, worker, kernel, item)


def _allocate_item(item: WorkItem, builder: ir.IRBuilder, frame: ir.Value, notes: ir.Value) -> ir.Value:
    """The work item of the worker's threads, with what is the same for all blocks."""
    place = allocate(builder, item.layout.type, "item")
    item.layout.store(builder, frame, place, "frame")
    for name in ("memory", "states"):
        item.layout.store(builder, WORKER_RECORD.field(builder, notes, name), place, f"{name}_word")
    if item.order.lengths is not None:
        length = PROGRAM.load(builder, FRAME.load(builder, frame, "program"), "length")
        item.layout.store(builder, length, place, "length")
        item.order.row_lanes = item.load_length(builder, place)
    item.store_stack_limit(builder, place)
    return place


def kernel_type(kernel: Kernel) -> ir.FunctionType:
    """The kernel's LLVM type."""
    return ir.FunctionType(VOID, [PTR, *(PARAMETER_TYPES[parameter.type] for parameter in kernel.parameters)])


def run_threads(kernel: Kernel, item: WorkItem, as_scalars: bool = False, has_loop: bool = False) -> Body:
    """A body that runs one thread after another, which LLVM may make vectors of unless they run *as scalars*, and write
    out unless each *has a loop* of its own as well: it would write out that of a row of 16, with 16 such loops."""
    target = ir.Function(item.module, kernel_type(kernel), kernel.name)

    def body(builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value], blocks: Blocks) -> None:
        properties = [unvectorized(builder.module)] if as_scalars else []
        properties += [rolled(builder.module)] if as_scalars and has_loop else []
        with blocks.each(), _blocks_of_tile(builder, item, place), _threads(builder, item, place, properties):
            passed = arguments[: len(kernel.parameters)]  # a prologue's numbers follow
            builder.call(target, [place, *passed], attrs=("alwaysinline",))

    return body


def _define_program(module: ir.Module, worker: ir.Function, kernel: Kernel, item: WorkItem) -> None:
    program = ir.GlobalVariable(module, PROGRAM.type, PROGRAM_SYMBOL)
    unknown = I64(0)
    cost = ir.DoubleType()(UNKNOWN_COST)
    words = _hidden(item, kernel.argument_bytes).get("block_words", NO_WORDS)
    parts = 1 if item.order.takes_turns else CHUNKS_PER_THREAD
    numbers = int(item.observed), item.order.block[0], parts, words, item.order.blocks_of_gang, item.order.lane_axis
    last = map(I32, numbers)
    limit = PTR(None) if item.limit is None else function_address(item.limit)
    gain = [cost, cost, unknown, *map(I32, (0, TIMED_ALONE, 0, FIRST_PAUSE if item.may_run_alone else NEVER_ALONE))]
    fields = [function_address(worker), cost, unknown, unknown, PTR(None), limit, *last, *gain]
    program.initializer = ir.Constant(PROGRAM.type, fields)


def load_parameter(builder: ir.IRBuilder, buffer: ir.Value, parameter: Parameter) -> ir.Value:
    """Load one kernel parameter. The buffer has no particular alignment, as it is the payload of a `bytes` object."""
    place = builder.gep(buffer, [I64(parameter.offset)], inbounds=True, source_etype=I8)
    if parameter.type == "i1":
        return builder.trunc(builder.load(place, align=1, typ=I8), I1)
    return builder.load(place, name=parameter.name, align=1, typ=PARAMETER_TYPES[parameter.type])


def _store_hidden(builder: ir.IRBuilder, buffer: ir.Value, offset: int, item: WorkItem, place: ir.Value) -> None:
    """Copy the words that follow the arguments into the work item."""
    for field, at in _hidden(item, offset).items():
        word = builder.gep(buffer, [I64(at)], inbounds=True, source_etype=I8)
        item.layout.store(builder, builder.load(word, align=1, typ=item.layout.fields[field]), place, field)


def _hidden(item: WorkItem, offset: int) -> dict[str, int]:
    """The fields of the work item that follow *offset* bytes of arguments, and where."""
    fields = (("dynamic_bytes", item.dynamic_limit is not None), ("block_words", item.waits_for_grid))
    return {name: offset + 8 * number for number, name in enumerate(name for name, used in fields if used)}


BlockIndices = list[tuple[int, ir.Value]]
"""Each axis with a block's index along it, in the order of the item's axes."""


def _store_contexts(item: WorkItem, builder: ir.IRBuilder, place: ir.Value, grid: list[ir.Value]) -> None:
    """Store the address of the blocks' contexts, behind a word for each block."""
    nbytes = I64(4)
    for extent in grid:
        nbytes = builder.mul(nbytes, builder.zext(extent, I64))
    nbytes = builder.and_(builder.add(nbytes, I64(ALIGNMENT - 1)), I64(-ALIGNMENT))
    words = item.layout.load(builder, place, "block_words")
    item.layout.store(builder, builder.gep(words, [nbytes], inbounds=True, source_etype=I8), place, "contexts")


@contextmanager
def _blocks(
    item: WorkItem, builder: ir.IRBuilder, first: ir.Value, limit: ir.Value, grid: list[ir.Value]
) -> Iterator[tuple[ir.Value, BlockIndices]]:
    """Loop over the numbers of blocks from *first* to below *limit*: over each or, in tiles, over the first one of each
    tile, with the lanes of its row in *item*. A tile ends where the grid does, at the latest.

    Indices are counted, as the two divisions that split a number take as long as a small block of threads."""
    starts = [
        (axis, builder.trunc(wide, I32, name=f"first.{AXES[axis]}"))
        for axis, wide in _split_number(item, builder, first, grid)
    ]
    before = builder.block
    loop, after = builder.append_basic_block("block"), builder.append_basic_block("block.end")
    builder.branch(loop)
    builder.position_at_end(loop)
    number = builder.phi(I64, name="block")
    number.add_incoming(first, before)
    indices: BlockIndices = []
    for axis, start in starts:
        indices.append((axis, builder.phi(I32, name=f"block.{AXES[axis]}")))
        indices[-1][1].add_incoming(start, before)
    count: ir.Value = I64(1)
    step: ir.Value = I32(1)
    rows: ir.Value = I32(1)
    if item.order.tile > 1:
        left = builder.sub(limit, number)
        count = _count_in_row(item, builder, indices[0][1], left, grid)
        step = builder.trunc(count, I32)
        if item.order.joins_rows_from is not None:
            rows = _count_rows(item, builder, indices[1][1], step, left, grid)
            count = builder.mul(count, builder.zext(rows, I64), flags=("nuw", "nsw"))
    yield number, indices
    following = builder.add(number, count, flags=("nuw", "nsw"))
    steps = []
    for (axis, index), following_step in zip(indices[:2], (rows, I32(1)), strict=True):
        moved = builder.add(index, step, flags=("nuw",))
        wraps = builder.icmp_unsigned(">=", moved, grid[axis])
        steps.append(builder.select(wraps, I32(0), moved))
        step = builder.select(wraps, following_step, I32(0))
    steps.append(builder.add(indices[2][1], step, flags=("nuw",)))
    for (_, index), moved in zip(indices, steps, strict=True):
        index.add_incoming(moved, builder.block)
    number.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_unsigned("<", following, limit), loop, after)
    builder.position_at_end(after)


def _count_in_row(
    item: WorkItem, builder: ir.IRBuilder, index: ir.Value, left: ir.Value, grid: list[ir.Value]
) -> ir.Value:
    """The blocks in a row of the tile that begins at *index* along it, where *left* blocks are left to run; *item* has
    their lanes then."""
    count: ir.Value = I64(item.order.tile)
    for rest in (builder.zext(builder.sub(grid[item.order.lane_axis], index), I64), left):
        count = builder.select(builder.icmp_unsigned("<", rest, count), rest, count)
    item.order.row_lanes = builder.mul(
        builder.trunc(count, I32), I32(item.order.block[item.order.lane_axis]), flags=("nuw", "nsw")
    )
    return count


def _count_rows(
    item: WorkItem, builder: ir.IRBuilder, index: ir.Value, count: ir.Value, left: ir.Value, grid: list[ir.Value]
) -> ir.Value:
    """The rows of a tile that has *count* blocks in a row, the first of them at *index*, where *left* blocks are left
    to run: several if they are whole rows of the grid. *item* has them then."""
    assert item.order.joins_rows_from is not None
    row, column = (grid[axis] for axis in item.order.axes[:2])
    rest = builder.zext(builder.sub(column, index), I64)
    rows = builder.udiv(left, builder.zext(row, I64))
    rows = builder.trunc(builder.select(builder.icmp_unsigned("<", rest, rows), rest, rows), I32)
    rows = builder.select(builder.icmp_unsigned("==", count, row), rows, I32(1))
    if item.order.joins_rows_from > 0:
        blocks: ir.Value = I64(1)
        for extent in grid:
            blocks = builder.mul(blocks, builder.zext(extent, I64))
        enough = builder.icmp_unsigned(">=", blocks, I64(-(-item.order.joins_rows_from // item.order.threads)))
        rows = builder.select(enough, rows, I32(1))
    item.order.block_rows = BlockRows(index, builder.add(index, rows, flags=("nuw", "nsw")))
    return rows


def _split_number(
    item: WorkItem, builder: ir.IRBuilder, rest: ir.Value, grid: list[ir.Value]
) -> Iterator[tuple[int, ir.Value]]:
    """Each axis with the index along it of the block that *rest* is the number of, in the order of the item's axes."""
    for axis in item.order.axes[:2]:
        extent = builder.zext(grid[axis], I64)
        index = builder.urem(rest, extent)
        rest = builder.udiv(rest, extent)
        yield axis, index
    yield item.order.axes[2], rest


def _count_along_x(builder: ir.IRBuilder, indices: Iterable[tuple[int, ir.Value]], grid: list[ir.Value]) -> ir.Value:
    """The number, counted along x first, of the block with *indices*."""
    x, y, z = (_widen(builder, index) for _, index in sorted(indices, key=lambda pair: pair[0]))
    rows = builder.add(builder.mul(z, builder.zext(grid[1], I64)), y)
    return builder.add(builder.mul(rows, builder.zext(grid[0], I64)), x)


def _widen(builder: ir.IRBuilder, index: ir.Value) -> ir.Value:
    return index if index.type == I64 else builder.zext(index, I64)


@contextmanager
def _blocks_of_tile(builder: ir.IRBuilder, item: WorkItem, place: ir.Value) -> Iterator[None]:
    """Loop over the blocks of a tile, which has one row of them, with the index of each in the work item *place*."""
    if item.order.tile == 1:
        yield
        return
    axis = item.order.lane_axis
    first = item.layout.load(builder, place, "block", axis)
    count = builder.udiv(item.order.row_lanes, I32(item.order.block[axis]))
    with counted(builder, "tile.block", I32(0), count) as number:
        item.store_block(builder, place, axis, builder.add(first, number, flags=("nuw", "nsw")))
        yield


@contextmanager
def _threads(
    builder: ir.IRBuilder, item: WorkItem, place: ir.Value, properties: Sequence[ir.values.MDValue]
) -> Iterator[None]:
    """Loop over the threads of a block, in the order of the item's axes, with the indices stored in the work item; with
    *properties* for LLVM."""
    names = [f"thread.{AXES[axis]}" for axis in item.order.axes]
    is_joined = item.order.tile > 1
    lanes = (
        I32(item.order.block[item.order.lane_axis]) if is_joined else item.order.row_lanes or I32(item.order.extents[0])
    )
    with (
        counted(builder, names[2], I32(0), I32(item.order.extents[2]), properties) as plane,
        counted(builder, names[1], I32(0), I32(item.order.extents[1]), properties) as row,
        counted(builder, names[0], I32(0), lanes, properties) as lane,
    ):
        item.store_thread(builder, place, (lane, row, plane))
        yield


@contextmanager
def counted(
    builder: ir.IRBuilder, name: str, first: ir.Value, limit: ir.Value,
    properties: Sequence[ir.values.MDValue] = (),
) -> Iterator[ir.Value]:  # fmt: skip
    """A loop from *first* to below *limit* that is tested at its end, so it runs at least once. *properties* are what
    `ir.loop_metadata` has for LLVM."""
    before = builder.block
    loop = builder.append_basic_block(name)
    after = builder.append_basic_block(f"{name}.end")
    builder.branch(loop)
    builder.position_at_end(loop)
    index = builder.phi(first.type, name=name)
    index.add_incoming(first, before)
    yield index
    following = builder.add(index, first.type(1), flags=("nuw", "nsw"))
    index.add_incoming(following, builder.block)
    branch = builder.cbranch(builder.icmp_unsigned("<", following, limit), loop, after)
    if properties:
        mark_loop(branch, builder.module, *properties)
    builder.position_at_end(after)
