"""The work item: the state of one thread, and the functions of docs/design/spmd-bitcode.md that read it, as LLVM IR.

The functions are inlined and the item is promoted to registers: a thread index becomes the induction variable of the
loop over the threads, and a shared array an alloca of the worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.abi.launch_frame import FRAME
from hip_runtime.drivers.cpu.abi.observer import OBSERVER, OBSERVER_TYPE
from hip_runtime.drivers.cpu.abi.stack_guard import define_limit, is_below
from hip_runtime.drivers.cpu.abi.thread_order import AXES, ThreadOrder
from hip_runtime.drivers.cpu.abi.worker_memory import MOST_TABLES, MOST_TOTALS, WorkerMemory
from hip_runtime.drivers.cpu.llvmir import I1, I32, I64, PTR, VOID, Struct, allocate, new_function

LINE = 64
"""Bytes of a cache line on x86-64 and most AArch64. Shared arrays start at one, as a vector access that straddles two
lines takes twice as long."""

FAULT_RECORD = "spmd.fault.record"
"""``void (frame, code, block x, y, z, thread x, y, z)``: records the fault if it is the launch's first."""

MAX_GRID = 2**31 - 1


class WorkItem:
    """The layout of one program's work item, and the memory that the item refers to."""

    def __init__(
        self,
        module: ir.Module,
        block: Dim3,
        wave_size: int,
        arrays: Sequence[spmd.SharedArray],
        dynamic_limit: int | None,
        waits_for_grid: bool,
        stack_bytes: int | None,
        observed: bool,
        lengths: tuple[int, int] | None,
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
        self.order = ThreadOrder(block, lengths)
        self.memory = WorkerMemory()
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
        extents = {spmd.block_dim(axis): extent for axis, extent in zip(AXES, self.order.block, strict=True)}
        if self.order.lengths is not None:
            del extents[spmd.block_dim("x")]
        return {**extents, spmd.WAVE_SIZE: self.wave_size}

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

    def store_block(self, builder: ir.IRBuilder, item: ir.Value, axis: int, index: ir.Value) -> None:
        """Make *item* one of the block with *index* along *axis*, and assume that this is in range."""
        module = self.module
        assume = module.globals.get("llvm.assume") or ir.Function(module, ir.FunctionType(VOID, [I1]), "llvm.assume")
        builder.call(assume, [builder.icmp_unsigned("<", index, I32(MAX_GRID))])
        self.layout.store(builder, index, item, "block", axis)

    def store_lane(self, builder: ir.IRBuilder, item: ir.Value, index: ir.Value) -> None:
        """Make *item* the thread with the index *index* along the axis of the lanes."""
        self.layout.store(builder, index, item, "thread", self.order.lane_axis)

    def store_thread(self, builder: ir.IRBuilder, item: ir.Value, indices: Sequence[ir.Value]) -> None:
        """Make *item* the thread with *indices* along `axes`."""
        for axis, index in sorted(zip(self.order.axes, indices, strict=True), key=lambda pair: pair[0]):
            self.layout.store(builder, index, item, "thread", axis)

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
                ("thread_idx", "thread", self.order.limits), ("block_idx", "block", (MAX_GRID,) * 3)
            ):  # fmt: skip
                self._define(
                    f"spmd.{what}.{axis}",
                    lambda b, item, m=member, n=number, limit=limits[number]: self._load_below(
                        b, self.layout.field(b, item, m, n), limit
                    ),
                )
        if self.order.lengths is not None:
            self._define(spmd.block_dim("x"), self.load_length)
        if self.order.tile > 1:
            along = self.order.along
            self._define(intrinsics.global_idx(along), self._global_idx, I64)
        self._define(spmd.LANE, self._lane)
        self._define(intrinsics.NUMBER, self._number)
        self._define(intrinsics.LANE_PLACE, lambda b, item: self.layout.load(b, item, "thread", self.order.lane_axis))
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
        assert self.order.lengths is not None
        least, most = self.order.lengths
        return self._load_below(builder, self.layout.field(builder, item, "length"), most + 1, first=least)

    def load_row_lanes(self, builder: ir.IRBuilder, item: ir.Value) -> ir.Value:
        """The lanes of a row of the blocks that gangs reach over now, which the worker has stored as their length."""
        field = self.layout.field(builder, item, "length")
        return self._load_below(builder, field, self.order.extents[0] + 1, first=self.order.block[self.order.lane_axis])

    def _grid_dim(self, builder: ir.IRBuilder, item: ir.Value, axis: int) -> ir.Value:
        frame = self.layout.load(builder, item, "frame")
        return self._load_below(builder, FRAME.field(builder, frame, "grid", axis), MAX_GRID + 1, first=1)

    def _number(self, builder: ir.IRBuilder, item: ir.Value) -> ir.Value:
        return self._load_below(builder, self.layout.field(builder, item, "thread", 0), self.order.threads)

    def _global_idx(self, builder: ir.IRBuilder, item: ir.Value) -> ir.Value:
        axis = self.order.lane_axis
        block = self._load_below(builder, self.layout.field(builder, item, "block", axis), MAX_GRID)
        thread = self._load_below(builder, self.layout.field(builder, item, "thread", axis), self.order.extents[0])
        first = builder.mul(builder.zext(block, I64), I64(self.order.block[axis]), flags=("nuw", "nsw"))
        return builder.add(first, builder.zext(thread, I64), flags=("nuw", "nsw"))

    def _lane(self, builder: ir.IRBuilder, item: ir.Value) -> ir.Value:
        return builder.urem(self.linear_index(builder, item), I32(self.wave_size))

    def linear_index(self, builder: ir.IRBuilder, item: ir.Value) -> ir.Value:
        """Linear index of the thread in its block, x fastest."""
        index = I32(0)
        for number in (2, 1, 0):
            part = self._load_below(
                builder, self.layout.field(builder, item, "thread", number), self.order.limits[number]
            )
            index = builder.add(builder.mul(index, I32(self.order.block[number])), part, flags=("nuw", "nsw"))
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
        if self.order.tile > 1:
            axis = self.order.lane_axis
            extent = I32(self.order.block[axis])
            block[axis] = builder.add(block[axis], builder.udiv(thread[axis], extent))
            thread[axis] = builder.urem(thread[axis], extent)
        if self.order.is_turned:
            thread = [thread[1], thread[0], thread[2]]
        frame = self.layout.load(builder, item, "frame")
        builder.call(self.module.globals[FAULT_RECORD], [frame, code, *block, *thread])


class NumberedWorkItem(WorkItem):
    """*item* for gangs that are formed by linear index instead of along x. The block counts as a single row, and the
    field for the x index holds the linear index, except while a single thread runs."""

    def __init__(self, item: WorkItem) -> None:
        self.__dict__.update(item.__dict__)
        self._extents = item.order.block
        self.order = replace(item.order, block=(item.order.threads, 1, 1))
        self.memory = replace(item.memory)

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
