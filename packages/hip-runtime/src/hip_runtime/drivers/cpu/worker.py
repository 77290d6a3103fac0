"""The loop over blocks and threads that a kernel is inlined into, as LLVM IR.

`build_worker` makes a module with the definitions of the ``spmd.*`` functions of docs/design/spmd-bitcode.md, a
function ``i64 worker(ptr frame)`` and the global variable `PROGRAM_SYMBOL` that a launch is given. The block shape is
a constant in all of it, so the loops over the threads have constant trip counts and no remainder that the shape does
not ask for, and the index of a thread is a loop variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llvmlite import ir

from hip_devicelib.codeobject import Kernel, Parameter
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.frame import (
    FRAME,
    I1,
    I8,
    I32,
    I64,
    PROGRAM,
    PTR,
    UNKNOWN_COST,
    VOID,
    WORKER_TYPE,
    allocate,
    function_address,
)

AXES = ("x", "y", "z")
PROGRAM_SYMBOL = "spmd.program"
_WORKER = "spmd.worker"

_ITEM = ir.LiteralStructType([ir.ArrayType(I32, 3), ir.ArrayType(I32, 3), PTR])
_THREAD, _BLOCK, _FRAME = range(3)
_MAX_GRID = 2**31 - 1


class _BFloat(ir.Type):
    """The type ``bfloat``, which llvmlite does not spell."""

    def _to_string(self) -> str:
        return "bfloat"


PARAMETER_TYPES: dict[str, ir.Type] = {
    "i1": I1, "i8": I8, "i16": ir.IntType(16), "i32": I32, "i64": I64,
    "half": ir.HalfType(), "bfloat": _BFloat(), "float": ir.FloatType(), "double": ir.DoubleType(), "ptr": PTR,
}  # fmt: skip


def build_worker(kernel: Kernel, block: Dim3) -> ir.Module:
    """A module that defines the worker of *kernel* for one block shape, and what the kernel calls."""
    module = ir.Module(name=_WORKER)
    _define_shape(module, "spmd.block_dim", block)
    _define_indices(module, "spmd.thread_idx", _THREAD, block)
    _define_indices(module, "spmd.block_idx", _BLOCK, (_MAX_GRID,) * 3)
    _define_grid_dim(module)
    _define_fault(module)
    _define_worker(module, kernel, block)
    return module


def _function(module: ir.Module, name: str, kind: ir.FunctionType, *attributes: str) -> ir.IRBuilder:
    function = ir.Function(module, kind, name)
    for attribute in ("nounwind", *attributes):
        function.attributes.add(attribute)
    return ir.IRBuilder(function.append_basic_block("entry"))


def _define_shape(module: ir.Module, name: str, block: Dim3) -> None:
    for axis, extent in zip(AXES, block, strict=True):
        builder = _function(module, f"{name}.{axis}", ir.FunctionType(I32, [PTR]), "alwaysinline")
        builder.ret(I32(extent))


def _define_indices(module: ir.Module, name: str, member: int, limits: Dim3) -> None:
    for number, (axis, limit) in enumerate(zip(AXES, limits, strict=True)):
        builder = _function(module, f"{name}.{axis}", ir.FunctionType(I32, [PTR]), "alwaysinline")
        place = _item_field(builder, builder.function.args[0], member, number)
        builder.ret(_load_below(module, builder, place, limit))


def _define_grid_dim(module: ir.Module) -> None:
    for number, axis in enumerate(AXES):
        builder = _function(module, f"spmd.grid_dim.{axis}", ir.FunctionType(I32, [PTR]), "alwaysinline")
        frame = builder.load(_item_field(builder, builder.function.args[0], _FRAME), typ=PTR)
        builder.ret(_load_below(module, builder, FRAME.field(builder, frame, "grid", number), _MAX_GRID + 1, first=1))


def _item_field(builder: ir.IRBuilder, item: ir.Value, member: int, number: int | None = None) -> ir.Value:
    indices = [I32(0), I32(member)] + ([] if number is None else [I32(number)])
    return builder.gep(item, indices, inbounds=True, source_etype=_ITEM)


def _load_below(module: ir.Module, builder: ir.IRBuilder, place: ir.Value, limit: int, first: int = 0) -> ir.Value:
    """Load an i32 that is at least *first* and below *limit*, and let LLVM know it."""
    value = builder.load(place, typ=I32)
    value.set_metadata("range", module.add_metadata([I32(first), ir.Constant(I32, limit & 0xFFFFFFFF)]))
    return value


def _define_fault(module: ir.Module) -> None:
    """``spmd.fault``: hands over values, not the work item, whose fields can then stay registers."""
    record = ir.Function(module, ir.FunctionType(VOID, [PTR] + [I32] * 7), "spmd.fault.record")
    record.linkage = "internal"
    for attribute in ("noinline", "cold", "nounwind"):
        record.attributes.add(attribute)
    _fill_record(record)
    builder = _function(module, "spmd.fault", ir.FunctionType(VOID, [PTR, I32]), "alwaysinline")
    item, code = builder.function.args
    indices = [
        builder.load(_item_field(builder, item, member, number), typ=I32)
        for member in (_BLOCK, _THREAD)
        for number in range(3)
    ]
    frame = builder.load(_item_field(builder, item, _FRAME), typ=PTR)
    builder.call(record, [frame, code, *indices])
    builder.ret_void()


def _fill_record(record: ir.Function) -> None:
    builder = ir.IRBuilder(record.append_basic_block("entry"))
    frame, *values = record.args
    taken = builder.atomic_rmw("xchg", FRAME.field(builder, frame, "fault_taken"), I32(1), "acq_rel")
    with builder.if_then(builder.icmp_unsigned("==", taken, I32(0))):
        for number, value in enumerate(values):
            FRAME.store(builder, value, frame, "fault", number)
    builder.ret_void()


def _define_worker(module: ir.Module, kernel: Kernel, block: Dim3) -> None:
    types = [PARAMETER_TYPES[parameter.type] for parameter in kernel.parameters]
    target = ir.Function(module, ir.FunctionType(VOID, [PTR, *types]), kernel.name)
    worker = ir.Function(module, WORKER_TYPE, _WORKER)
    worker.attributes.add("nounwind")
    worker.args[0].add_attribute("noalias")
    builder = ir.IRBuilder(worker.append_basic_block("entry"))
    frame = worker.args[0]
    item = allocate(builder, _ITEM, "item")
    builder.store(frame, _item_field(builder, item, _FRAME))
    buffer = FRAME.load(builder, frame, "arguments")
    arguments = [_load_parameter(builder, buffer, parameter) for parameter in kernel.parameters]
    grid = [FRAME.load(builder, frame, "grid", number) for number in range(3)]

    def run_block(index: ir.Value) -> None:
        _store_block_index(module, builder, item, index, grid)
        with _threads(builder, item, block):
            builder.call(target, [item, *arguments], attrs=("alwaysinline",))

    builder.ret(_loop_over_chunks(builder, frame, run_block))
    _define_program(module, worker)


def _define_program(module: ir.Module, worker: ir.Function) -> None:
    program = ir.GlobalVariable(module, PROGRAM.type, PROGRAM_SYMBOL)
    program.initializer = ir.Constant(PROGRAM.type, [function_address(worker), ir.DoubleType()(UNKNOWN_COST)])


def _load_parameter(builder: ir.IRBuilder, buffer: ir.Value, parameter: Parameter) -> ir.Value:
    """Load one kernel parameter. The buffer has no particular alignment: it is the inside of a Python bytes object."""
    place = builder.gep(buffer, [I64(parameter.offset)], inbounds=True, source_etype=I8)
    if parameter.type == "i1":
        return builder.trunc(builder.load(place, align=1, typ=I8), I1)
    return builder.load(place, name=parameter.name, align=1, typ=PARAMETER_TYPES[parameter.type])


def _store_block_index(
    module: ir.Module, builder: ir.IRBuilder, item: ir.Value, linear: ir.Value, grid: list[ir.Value]
) -> None:
    """Split the number of a block, counted along x first, into its three indices; say that each is in range."""
    assume = module.globals.get("llvm.assume") or ir.Function(module, ir.FunctionType(VOID, [I1]), "llvm.assume")
    rest = linear
    for number in range(3):
        extent = builder.zext(grid[number], I64)
        index = rest if number == 2 else builder.urem(rest, extent)
        if number < 2:
            rest = builder.udiv(rest, extent)
        index = builder.trunc(index, I32, name=f"block.{AXES[number]}")
        builder.call(assume, [builder.icmp_unsigned("<", index, I32(_MAX_GRID))])
        builder.store(index, _item_field(builder, item, _BLOCK, number))


def _loop_over_chunks(builder: ir.IRBuilder, frame: ir.Value, run_block: Callable[[ir.Value], None]) -> ir.Value:
    """Take chunks of blocks until there are none left or a thread has faulted. Gives the number of blocks that were
    run."""
    count = FRAME.load(builder, frame, "block_count")
    chunk = FRAME.load(builder, frame, "chunk")
    entry = builder.block
    head, take, body, done = (builder.append_basic_block(f"chunk.{name}") for name in ("head", "take", "body", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    ran = builder.phi(I64, name="ran")
    ran.add_incoming(I64(0), entry)
    first = builder.atomic_rmw("add", FRAME.field(builder, frame, "next_block"), chunk, "monotonic")
    builder.cbranch(builder.icmp_unsigned("<", first, count), take, done)
    builder.position_at_end(take)
    fault = builder.load_atomic(FRAME.field(builder, frame, "fault_taken"), "monotonic", align=4, typ=I32)
    builder.cbranch(builder.icmp_unsigned("==", fault, I32(0)), body, done)
    builder.position_at_end(body)
    limit = builder.add(first, chunk)
    limit = builder.select(builder.icmp_unsigned("<", limit, count), limit, count)
    with _counted(builder, "block", first, limit) as index:
        run_block(index)
    ran.add_incoming(builder.add(ran, builder.sub(limit, first)), builder.block)
    builder.branch(head)
    builder.position_at_end(done)
    return ran


@contextmanager
def _threads(builder: ir.IRBuilder, item: ir.Value, block: Dim3) -> Iterator[None]:
    """Loop over the threads of a block, x innermost, with the indices stored in *item*."""
    with (
        _counted(builder, "thread.z", I32(0), I32(block[2])) as z,
        _counted(builder, "thread.y", I32(0), I32(block[1])) as y,
        _counted(builder, "thread.x", I32(0), I32(block[0])) as x,
    ):
        for number, index in enumerate((x, y, z)):
            builder.store(index, _item_field(builder, item, _THREAD, number))
        yield


@contextmanager
def _counted(builder: ir.IRBuilder, name: str, first: ir.Value, limit: ir.Value) -> Iterator[ir.Value]:
    """A loop from *first* to below *limit*, tested at its end: it runs at least once."""
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
    builder.cbranch(builder.icmp_unsigned("<", following, limit), loop, after)
    builder.position_at_end(after)
