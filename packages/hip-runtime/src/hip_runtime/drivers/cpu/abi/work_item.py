"""The work item: the state of one thread, and the functions of docs/design/spmd-bitcode.md that read it, as LLVM IR.

The functions are inlined and the item is promoted to registers: a thread index becomes the induction variable of the
loop over the threads, and a shared array an alloca of the worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.driver import Dim3, block_threads
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.abi.launch_frame import FRAME
from hip_runtime.drivers.cpu.abi.narrow_grids import turn
from hip_runtime.drivers.cpu.abi.observer import OBSERVER, OBSERVER_TYPE
from hip_runtime.drivers.cpu.abi.stack_guard import define_limit, is_below
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I32, I64, PTR, VOID, Struct, allocate, new_function

LINE = 64
"""Bytes of a cache line on x86-64 and most AArch64. Shared arrays start at one, as a vector access that straddles two
lines takes twice as long."""

AXES = ("x", "y", "z")
FAULT_RECORD = "spmd.fault.record"
"""``void (frame, code, block x, y, z, thread x, y, z)``: records the fault if it is the launch's first."""

MAX_GRID = 2**31 - 1

MOST_TOTALS = 4
"""The most totals of a chunk of blocks: more would not stay in registers."""

MOST_TABLES = 4
"""The most tables of a worker, see `vectorize.update_tables`."""

Axes = tuple[int, int, int]
"""Axes of a block, by number: that of the lanes first, then that of the rows."""

ALONG_X: Axes = (0, 1, 2)


@dataclass(frozen=True)
class BlockRows:
    """Rows of blocks, in code that is being written: those with the indices from *first* to below *limit*."""

    first: ir.Value
    limit: ir.Value


class CollectsTotals(Protocol):
    """What writes the totals of a chunk of blocks, see `vectorize.chunk_totals`."""

    def collect(
        self, builder: ir.IRBuilder, place: ir.Value, update: Instruction, address: ir.Value, value: ir.Value,
        active: ir.Value | None = None,
    ) -> None:  # fmt: skip
        """Combine *value* with the total of *update*."""

    def write(self, builder: ir.IRBuilder, place: ir.Value, start: ir.Block) -> None:
        """Write what is around the blocks of a chunk."""


class KeepsResults(Protocol):
    """What writes the memory of a worker for results, see `vectorize.kept_results`."""

    def compute(self, code: Any, common: Any) -> None:
        """Have *code* know the results of *common*."""

    def write(self, builder: ir.IRBuilder, place: ir.Value, start: ir.Block) -> None:
        """Write what is before the blocks of a chunk."""


class KeepsTables(Protocol):
    """What writes the tables of a worker, see `vectorize.update_tables`."""

    def write_start(
        self, builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value], notes: ir.Value
    ) -> None:  # fmt: skip
        """Write what a worker with a record *notes* does before its blocks."""

    def write_end(
        self, builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value], notes: ir.Value
    ) -> None:  # fmt: skip
        """Write what it does behind them."""

    def serves(self, code: Any, update: Instruction) -> bool:
        """Whether lanes do *update* by `update` or `update_element`."""

    def needs(self, update: Instruction) -> tuple[Value, ...]:
        """What `find_elements` takes of *update* besides its operands."""

    def find_elements(self, code: Any, update: Instruction, addresses: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The numbers of the elements at *addresses*, and whether the table has those of all active lanes."""

    def find_memory(self, code: Any, update: Instruction) -> ir.Value:
        """Where the elements of the table for *update* are."""

    def update_element(
        self, code: Any, update: Instruction, memory: ir.Value, index: ir.Value, value: ir.Value
    ) -> None:  # fmt: skip
        """Do *update* with *value* on the element with the number *index* in *memory*."""

    def update(self, code: Any, update: Instruction, operands: Sequence[ir.Value]) -> None:
        """Do *update* with the *operands* of one lane."""

    def meet(self, code: Any, access: Instruction) -> None:
        """Do what is in tables for the memory of *access*."""


class WorkItem:
    """The layout of one program's work item, and the memory that the item refers to."""

    def __init__(
        self,
        module: ir.Module,
        block: Dim3,
        wave_size: int,
        arrays: Sequence[spmd.SharedArray] = (),
        dynamic_limit: int | None = None,
        waits_for_grid: bool = False,
        stack_bytes: int | None = None,
        observed: bool = False,
        lengths: tuple[int, int] | None = None,
    ) -> None:
        self.module = module
        self.dynamic_limit = dynamic_limit
        """The most bytes of dynamic shared memory, if the kernel uses any."""
        self.waits_for_grid = waits_for_grid
        self.stack_bytes = stack_bytes
        """Bytes of stack that the kernel's functions use, if some of them check how much is left."""
        self.observed = observed
        """Whether the kernel reports to the observer what its threads do."""
        self.has_short_indices = False
        """Whether the kernel computes indices with 32 bits, which do not wrap around in the grids that it may have."""
        self.has_lines = False
        """Whether the kernel's bitcode has debug locations."""
        self.context_bytes = 0
        """Size of a block's context, for kernels that wait for the grid; known once the block function is written."""
        self.block = block
        self.lengths = lengths
        """The least and the greatest length of the blocks, rows of threads along x, if it is only known at run time."""
        self.multiple: int | None = None
        """A power of two that the length is a multiple of then, if that was decided before gangs are written; if 1,
        these are written for parts of a gang, too."""
        self.axes: Axes = ALONG_X
        """The order in which the threads of a block run, and the blocks of a grid, the fastest axis first."""
        self.tile = 1
        """The most blocks that gangs reach over, neighbours along the first of these axes. The index of a thread along
        that axis is then counted from the first one of these blocks."""
        self.is_turned = False
        """Whether the threads of a block are counted along y instead of x, see `passes.turned_blocks`."""
        self.row_lanes: ir.Value | None = None
        """The lanes of a row of the blocks that gangs reach over now, in a worker that is being written, if they are
        only counted at run time."""
        self.blocks_of_gang = 1
        """The blocks of a tile that a gang reaches over, as far as its axis goes."""
        self.joins_rows_from: int | None = None
        """Threads of a grid from which on tiles have several rows of blocks, if these are whole rows of the grid. Of
        such blocks, the first planes of threads run before the second ones; ``None`` for one row in any grid."""
        self.block_rows: BlockRows | None = None
        """The rows of the blocks that run now then, in a worker that is being written."""
        self.takes_turns = False
        """Whether gangs of different blocks take turns in a loop: then more blocks at once are better, see
        `vectorize.turns`."""
        self.totals: CollectsTotals | None = None
        """What collects atomic operations of a chunk of blocks, if the kernel has such."""
        self.kept: KeepsResults | None = None
        """What keeps results that gangs have in common, if it is worth the while."""
        self.tables: KeepsTables | None = None
        """What keeps tables of the worker for atomic operations on elements of arrays, if the kernel has such."""
        self.may_run_alone = False
        """Whether one CPU thread may run all blocks, one after another: no block waits for a later one."""
        self.limit: ir.Function | None = None
        """What computes how many blocks of a launch have to run, see `launch_frame.LIMIT_TYPE`."""
        self.wave_size = wave_size
        self.arrays = {array.symbol: array for array in arrays}
        self._shared = {symbol: f"shared {number}" for number, symbol in enumerate(self.arrays)}
        self.layout = Struct(
            thread=ir.ArrayType(I32, 3), block=ir.ArrayType(I32, 3), frame=PTR, dynamic_shared=PTR, dynamic_bytes=I64,
            block_words=PTR, contexts=PTR, block_number=I64, stack_limit=I64, memory_word=PTR, states_word=PTR,
            length=I32, totals=ir.ArrayType(PTR, MOST_TOTALS), gang_record=PTR, kept=PTR,
            tables=ir.ArrayType(PTR, MOST_TABLES), table_limits=ir.ArrayType(I64, MOST_TABLES),
            **dict.fromkeys(self._shared.values(), PTR),
        )  # fmt: skip

    @property
    def known(self) -> dict[str, int]:
        """Functions of the contract that are constants of this program, with their values."""
        extents = {spmd.block_dim(axis): extent for axis, extent in zip(AXES, self.block, strict=True)}
        if self.lengths is not None:
            del extents[spmd.block_dim("x")]
        return {**extents, spmd.WAVE_SIZE: self.wave_size}

    def turn(self) -> None:
        """Count the threads of a block, which is a row, along y instead of x."""
        self.block, self.is_turned = turn(self.block), True

    @property
    def limits(self) -> Dim3:
        """The most threads of a block along each axis."""
        return self.block if self.lengths is None else (self.lengths[1], *self.block[1:])

    @property
    def shared_memory(self) -> dict[str, tuple[int, int]]:
        """Size and alignment of each shared array, by the field of the item that points to it."""
        memory = {self._shared[symbol]: (array.nbytes, array.align) for symbol, array in self.arrays.items()}
        if self.dynamic_limit is not None:
            memory["dynamic_shared"] = self.dynamic_limit, 64
        return memory

    def measure_shared(self, function: str) -> tuple[int, int] | None:
        """Size and alignment of the shared array whose address *function* of the contract gives, if it is one."""
        field = "dynamic_shared" if function == spmd.DYNAMIC_SHARED else self._shared.get(function, "")
        return self.shared_memory.get(field)

    @property
    def extents(self) -> Dim3:
        """The extents of the block along `axes`: those of a row of lanes, of a plane of rows, and of the planes."""
        lanes, rows, planes = (self.block[axis] for axis in self.axes)
        return lanes * self.tile, rows, planes

    def store_block(self, builder: ir.IRBuilder, item: ir.Value, axis: int, index: ir.Value) -> None:
        """Make *item* one of the block with *index* along *axis*, and assume that this is in range."""
        module = self.module
        assume = module.globals.get("llvm.assume") or ir.Function(module, ir.FunctionType(VOID, [I1]), "llvm.assume")
        builder.call(assume, [builder.icmp_unsigned("<", index, I32(MAX_GRID))])
        self.layout.store(builder, index, item, "block", axis)

    def store_lane(self, builder: ir.IRBuilder, item: ir.Value, index: ir.Value) -> None:
        """Make *item* the thread with the index *index* along the axis of the lanes."""
        self.layout.store(builder, index, item, "thread", self.axes[0])

    def store_thread(self, builder: ir.IRBuilder, item: ir.Value, indices: Sequence[ir.Value]) -> None:
        """Make *item* the thread with *indices* along `axes`."""
        for axis, index in sorted(zip(self.axes, indices, strict=True), key=lambda pair: pair[0]):
            self.layout.store(builder, index, item, "thread", axis)

    def split_number(self, builder: ir.IRBuilder, number: ir.Value) -> list[ir.Value]:
        """The x, y and z index of the thread with the linear index *number*, in the order of `axes`."""
        if self.lengths is not None:
            return [number, I32(0), I32(0)]
        indices: dict[int, ir.Value] = {}
        for axis in self.axes:
            indices[axis] = builder.urem(number, I32(self.block[axis]))
            number = builder.udiv(number, I32(self.block[axis]))
        return [indices[axis] for axis in range(len(AXES))]

    def store_shared(self, builder: ir.IRBuilder, item: ir.Value) -> None:
        """Allocate a block's shared memory on the stack, and point *item* to it."""
        for field, (nbytes, align) in self.shared_memory.items():
            place = allocate(builder, ir.ArrayType(ir.IntType(8), max(nbytes, 1)), "shared")
            place.align = max(align, LINE) if nbytes >= LINE else align
            self.layout.store(builder, place, item, field)

    def store_stack_limit(self, builder: ir.IRBuilder, item: ir.Value) -> None:
        """Store the limit of this CPU thread's stack, if the kernel checks it."""
        if self.stack_bytes is not None:
            limit = builder.call(define_limit(self.module, self.stack_bytes), [])
            self.layout.store(builder, limit, item, "stack_limit")

    def define_functions(self) -> None:
        """Define everything that a kernel may call, except for synchronising operations."""
        for name, number in self.known.items():
            self._define(name, lambda b, item, n=number: I32(n))
        for number, axis in enumerate(AXES):
            self._define(spmd.grid_dim(axis), lambda b, item, n=number: self._grid_dim(b, item, n))
            for what, member, limits in (
                ("thread_idx", "thread", self.limits), ("block_idx", "block", (MAX_GRID,) * 3)
            ):  # fmt: skip
                self._define(
                    f"spmd.{what}.{axis}",
                    lambda b, item, m=member, n=number, limit=limits[number]: self._load_below(
                        b, self.layout.field(b, item, m, n), limit
                    ),
                )
        if self.lengths is not None:
            self._define(spmd.block_dim("x"), self.load_length)
        if self.tile > 1:
            along = AXES[self.axes[0]]
            self._define(intrinsics.global_idx(along), self._global_idx, I64)
        self._define(spmd.LANE, self._lane)
        self._define(intrinsics.NUMBER, self._number)
        self._define(intrinsics.LANE_PLACE, lambda b, item: self.layout.load(b, item, "thread", self.axes[0]))
        self._define(spmd.DYNAMIC_SHARED, lambda b, item: self.layout.load(b, item, "dynamic_shared"), PTR)
        self._define(spmd.DYNAMIC_SHARED_BYTES, lambda b, item: self.layout.load(b, item, "dynamic_bytes"), I64)
        if self.stack_bytes is not None:
            self._define(
                spmd.STACK_IS_LOW,
                lambda b, item: is_below(b, self.layout.load(b, item, "stack_limit")),
                I1,
            )
        for symbol, name in self._shared.items():
            self._define(symbol, lambda b, item, n=name: self.layout.load(b, item, n), PTR)
        if self.observed:
            self._define_observe()
        self._define_fault()

    def _define_observe(self) -> None:
        """``spmd.observe``: forwards its arguments to the observer, with the linear indices of block and thread."""
        kind = ir.FunctionType(VOID, [PTR, I32, I32, PTR, I64, I64])
        builder = new_function(self.module, spmd.OBSERVE, kind, "alwaysinline")
        item, event, site, address, nbytes, value = builder.function.args
        frame = self.layout.load(builder, item, "frame")
        block: ir.Value = I64(0)
        for number in (2, 1, 0):
            extent = builder.zext(FRAME.load(builder, frame, "grid", number), I64)
            index = builder.zext(self.layout.load(builder, item, "block", number), I64)
            block = builder.add(builder.mul(block, extent), index)
        thread = builder.zext(self.linear_index(builder, item), I64)
        numbers = [builder.zext(event, I64), builder.zext(site, I64), builder.ptrtoint(address, I64), nbytes, value]
        observer = ir.Function(self.module, OBSERVER_TYPE, OBSERVER)
        builder.call(observer, [*numbers, block, thread])
        builder.ret_void()

    def _define(self, name: str, value: object, result: ir.Type = I32) -> None:
        assert callable(value)
        builder = new_function(self.module, name, ir.FunctionType(result, [PTR]), "alwaysinline")
        builder.ret(value(builder, builder.function.args[0]))

    def load_length(self, builder: ir.IRBuilder, item: ir.Value) -> ir.Value:
        """The length of the blocks, which is known at run time."""
        assert self.lengths is not None
        least, most = self.lengths
        return self._load_below(builder, self.layout.field(builder, item, "length"), most + 1, first=least)

    def load_row_lanes(self, builder: ir.IRBuilder, item: ir.Value) -> ir.Value:
        """The lanes of a row of the blocks that gangs reach over now, which the worker has stored as their length."""
        field = self.layout.field(builder, item, "length")
        return self._load_below(builder, field, self.extents[0] + 1, first=self.block[self.axes[0]])

    def _grid_dim(self, builder: ir.IRBuilder, item: ir.Value, axis: int) -> ir.Value:
        frame = self.layout.load(builder, item, "frame")
        return self._load_below(builder, FRAME.field(builder, frame, "grid", axis), MAX_GRID + 1, first=1)

    def _number(self, builder: ir.IRBuilder, item: ir.Value) -> ir.Value:
        return self._load_below(builder, self.layout.field(builder, item, "thread", 0), self.threads)

    def _global_idx(self, builder: ir.IRBuilder, item: ir.Value) -> ir.Value:
        axis = self.axes[0]
        block = self._load_below(builder, self.layout.field(builder, item, "block", axis), MAX_GRID)
        thread = self._load_below(builder, self.layout.field(builder, item, "thread", axis), self.extents[0])
        first = builder.mul(builder.zext(block, I64), I64(self.block[axis]), flags=("nuw", "nsw"))
        return builder.add(first, builder.zext(thread, I64), flags=("nuw", "nsw"))

    def _lane(self, builder: ir.IRBuilder, item: ir.Value) -> ir.Value:
        return builder.urem(self.linear_index(builder, item), I32(self.wave_size))

    def linear_index(self, builder: ir.IRBuilder, item: ir.Value) -> ir.Value:
        """Linear index of the thread in its block, x fastest."""
        index = I32(0)
        for number in (2, 1, 0):
            part = self._load_below(builder, self.layout.field(builder, item, "thread", number), self.limits[number])
            index = builder.add(builder.mul(index, I32(self.block[number])), part, flags=("nuw", "nsw"))
        return index

    def _load_below(self, builder: ir.IRBuilder, place: ir.Value, limit: int, first: int = 0) -> ir.Value:
        """Load an i32, with ``!range`` metadata for *first* up to below *limit*."""
        value = builder.load(place, typ=I32)
        value.set_metadata("range", self.module.add_metadata([I32(first), ir.Constant(I32, limit & 0xFFFFFFFF)]))
        return value

    def _define_fault(self) -> None:
        """``spmd.fault``: passes values instead of the work item, whose fields can then stay in registers."""
        record = ir.Function(self.module, ir.FunctionType(VOID, [PTR] + [I32] * 7), FAULT_RECORD)
        record.linkage = "internal"
        for attribute in ("noinline", "cold", "nounwind"):
            record.attributes.add(attribute)
        _fill_record(record)
        builder = new_function(self.module, spmd.FAULT, ir.FunctionType(VOID, [PTR, I32]), "alwaysinline")
        item, code = builder.function.args
        self.record_fault(
            builder, item, code, [self.layout.load(builder, item, "thread", number) for number in range(3)]
        )
        builder.ret_void()

    def record_fault(self, builder: ir.IRBuilder, item: ir.Value, code: ir.Value, thread: Sequence[ir.Value]) -> None:
        """Record fault *code* for the thread with the indices *thread* of the block that *item* is in."""
        block, thread = [self.layout.load(builder, item, "block", number) for number in range(3)], list(thread)
        if self.tile > 1:
            axis = self.axes[0]
            extent = I32(self.block[axis])
            block[axis] = builder.add(block[axis], builder.udiv(thread[axis], extent))
            thread[axis] = builder.urem(thread[axis], extent)
        if self.is_turned:
            thread = [thread[1], thread[0], thread[2]]
        frame = self.layout.load(builder, item, "frame")
        builder.call(self.module.globals[FAULT_RECORD], [frame, code, *block, *thread])

    @property
    def threads(self) -> int:
        """The most threads of a block."""
        return block_threads(self.limits)

    def count_threads(self, builder: ir.IRBuilder) -> ir.Value:
        """The threads of a block, as ``i64``."""
        if self.lengths is None:
            return I64(self.threads)
        assert self.row_lanes is not None
        return builder.zext(self.row_lanes, I64)


class NumberedWorkItem(WorkItem):
    """*item* for gangs that are formed by linear index instead of along x. The block counts as a single row, and the
    field for the x index holds the linear index, except while a single thread runs."""

    def __init__(self, item: WorkItem) -> None:
        self.__dict__.update(item.__dict__)
        self._extents = item.block
        self.block = (item.threads, 1, 1)

    def store_lane(self, builder: ir.IRBuilder, item: ir.Value, index: ir.Value) -> None:
        """Make *item* the thread with the linear index *index*."""
        for axis, extent in enumerate(self._extents):
            self.layout.store(builder, builder.urem(index, I32(extent)), item, "thread", axis)
            index = builder.udiv(index, I32(extent))


def _fill_record(record: ir.Function) -> None:
    builder = ir.IRBuilder(record.append_basic_block("entry"))
    frame, *values = record.args
    taken = builder.atomic_rmw("xchg", FRAME.field(builder, frame, "fault_taken"), I32(1), "acq_rel")
    with builder.if_then(builder.icmp_unsigned("==", taken, I32(0))):
        for number, value in enumerate(values):
            FRAME.store(builder, value, frame, "fault", number)
    builder.ret_void()
