"""The dispatcher: native code that runs the blocks of one launch, as LLVM IR.

It is built once per process, and called with Python's lock released.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from hip_runtime.drivers.cpu import finaliser
from hip_runtime.drivers.cpu.frame import FAULT_FIELDS, FRAME, I32, I64, PTR, WORKER_TYPE, Callee, allocate, field

DISPATCH = "spmd.dispatch"
_FAULT = struct.Struct(f"{len(FAULT_FIELDS)}i")


def build_dispatcher() -> ir.Module:
    """A module with ``ptr dispatch(ptr worker, ptr arguments, i32 x, i32 y, i32 z)``: null, or a fault to read and free."""
    module = ir.Module(name=DISPATCH)
    malloc = ir.Function(module, ir.FunctionType(PTR, [I64]), "malloc")
    dispatch = ir.Function(module, ir.FunctionType(PTR, [PTR, PTR, I32, I32, I32]), DISPATCH)
    builder = ir.IRBuilder(dispatch.append_basic_block("entry"))
    worker, arguments, *grid = dispatch.args
    frame = allocate(builder, FRAME, "frame")
    count = I64(1)
    for number, extent in enumerate(grid):
        builder.store(extent, field(builder, frame, "grid", number))
        count = builder.mul(count, builder.zext(extent, I64))
    builder.store(I64(0), field(builder, frame, "next_block"))
    builder.store(I32(0), field(builder, frame, "fault_taken"))
    builder.store(count, field(builder, frame, "block_count"))
    builder.store(I64(1), field(builder, frame, "chunk"))
    builder.store(arguments, field(builder, frame, "arguments"))
    builder.call(Callee(worker, WORKER_TYPE), [frame])
    taken = builder.load(field(builder, frame, "fault_taken"), typ=I32)
    with builder.if_then(builder.icmp_unsigned("!=", taken, I32(0))):
        record = builder.call(malloc, [I64(_FAULT.size)])
        for number in range(len(FAULT_FIELDS)):
            source = builder.gep(field(builder, frame, "fault_code"), [I32(number)], source_etype=I32)
            builder.store(builder.load(source, typ=I32), builder.gep(record, [I32(number)], source_etype=I32))
        builder.ret(record)
    builder.ret(PTR(None))
    return module


@cache
def dispatcher() -> Any:
    """``dispatch(worker, arguments, x, y, z)``, native; the result is 0 or the address of a fault for `take_fault`."""
    program = finaliser.compile_ir(build_dispatcher(), DISPATCH)
    call = finaliser.function_at(
        program.entry, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, *[ctypes.c_uint32] * 3
    )
    call.program = program
    return call


@cache
def _free() -> Any:
    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = [ctypes.c_void_p], None
    return free


def take_fault(address: int) -> tuple[int, ...]:
    """The seven numbers of a fault, named in `FAULT_FIELDS`; the record at *address* is freed."""
    try:
        return _FAULT.unpack(ctypes.string_at(address, _FAULT.size))
    finally:
        _free()(address)
