"""Launches of kernels with grid barriers, as LLVM IR: the grid is run again as long as its blocks wait for each other.

Each block has a word that says where it waits, see `abi.grid_context`. Between two runs the launching thread looks at
all of them. It goes on while those that have not finished wait at one barrier; if they wait at several, none can go on,
and `cooperative_launch` tells which.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.grid_context import ALIGNMENT, FINISHED
from hip_runtime.drivers.cpu.abi.launch_frame import FRAME
from hip_runtime.drivers.cpu.execution.block_ranges import RangesBuilder
from hip_runtime.drivers.cpu.execution.thread_slots import GOES_ON, SLOT
from hip_runtime.drivers.cpu.llvmir import I1, I32, I64, PTR, VOID, allocate

_LINE = ir.VectorType(I32, ALIGNMENT // 4)
"""Words of blocks that are looked at at once."""


def define_run_phases(module: ir.Module, now: ir.Function, run_grid: ir.Function, ranges: RangesBuilder) -> ir.Function:
    """``void run_phases(program, frame, count, slot, words)``: run a grid of *count* blocks by *run_grid* until all of
    them have finished, or wait at several barriers, or the launch is to end."""
    meet = _define_meet(module)
    function = ir.Function(module, ir.FunctionType(VOID, [PTR, PTR, I64, PTR, PTR]), "spmd.run_phases")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    program, frame, count, slot, words = function.args
    polled = allocate(builder, I64, "polled")
    builder.store(builder.call(now, []), polled)
    phase, done = builder.append_basic_block("phase"), builder.append_basic_block("done")
    builder.branch(phase)
    builder.position_at_end(phase)
    FRAME.store(builder, I64(0), frame, "next_block")
    FRAME.store(builder, count, frame, "block_count")
    builder.call(run_grid, [program, frame, count, slot])
    ranges.poll(builder, frame, slot, polled)
    for fine in (
        builder.icmp_unsigned("==", FRAME.load_atomic(builder, frame, "fault_taken"), I32(0)),
        builder.icmp_unsigned("==", SLOT.load_atomic(builder, slot, "stop"), I32(GOES_ON)),
    ):
        with builder.if_then(builder.not_(fine)):
            builder.branch(done)
    builder.cbranch(builder.call(meet, [words, count]), phase, done)
    builder.position_at_end(done)
    builder.ret_void()
    return function


def _define_meet(module: ir.Module) -> ir.Function:
    """``i1 meet(words, count)``: whether some of *count* blocks wait, and all that do at the same barrier. Words are
    compared by the line: one by one, those of a thousand small blocks took a tenth of a phase. That of finished ones is
    the largest without a sign, and the least with it."""
    function = ir.Function(module, ir.FunctionType(I1, [PTR, I64]), "spmd.meet")
    function.linkage = "internal"
    entry, each, end = (function.append_basic_block(name) for name in ("entry", "each", "end"))
    words, count = function.args
    ir.IRBuilder(entry).branch(each)
    builder = ir.IRBuilder(each)
    number, least, most = builder.phi(I64), builder.phi(_LINE), builder.phi(_LINE)
    place = builder.gep(words, [number], source_etype=I32)
    line = builder.load(place, align=ALIGNMENT, typ=_LINE)
    following = builder.add(number, I64(_LINE.count))
    lower = _call(builder, "llvm.umin", _LINE, least, line)
    higher = _call(builder, "llvm.smax", _LINE, most, line)
    finished = ir.Constant(_LINE, [I32(FINISHED)] * _LINE.count)
    for value, start, one in ((number, I64(0), following), (least, finished, lower), (most, finished, higher)):
        value.add_incoming(start, entry)
        value.add_incoming(one, each)
    builder.cbranch(builder.icmp_unsigned("<", following, count), each, end)
    builder.position_at_end(end)
    lowest = _call(builder, "llvm.vector.reduce.umin", I32, lower)
    highest = _call(builder, "llvm.vector.reduce.smax", I32, higher)
    waits = builder.icmp_signed("!=", highest, I32(FINISHED))
    builder.ret(builder.and_(waits, builder.icmp_signed("==", lowest, highest)))
    return function


def _call(builder: ir.IRBuilder, name: str, result: ir.Type, *operands: ir.Value) -> ir.Value:
    """A call of LLVM's intrinsic *name* for lines."""
    function = ir.Function(
        builder.module, ir.FunctionType(result, [_LINE] * len(operands)), f"{name}.v{_LINE.count}i32"
    )
    return builder.call(function, operands)
