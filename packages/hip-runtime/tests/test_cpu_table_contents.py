"""What a worker does at its end with the elements of its table, while others do something to their neighbours."""

from __future__ import annotations

import ctypes
import threading

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir

from hip_devicelib.isolated_codegen import make_host_machine
from hip_runtime.drivers.cpu.abi.worker import counted
from hip_runtime.drivers.cpu.ir.model import Atomic, Instruction
from hip_runtime.drivers.cpu.llvmir import I64, PTR, VOID
from hip_runtime.drivers.cpu.vectorize.table_contents import WHOLE, TableContents

TIMES = 3_000_000
KINDS = {"i8": (ir.IntType(8), np.int8), "i32": (ir.IntType(32), np.int32), "i64": (ir.IntType(64), np.int64)}


def write_repeating(contents: TableContents, kind: ir.Type) -> ir.Module:
    """A function ``do`` that does the table's contents, and one ``add`` that adds one to an element, many times."""
    module = ir.Module()
    done = contents.define(module)
    for name in ("do", "add"):
        function = ir.Function(module, ir.FunctionType(VOID, [PTR, I64, PTR]), name)
        builder = ir.IRBuilder(function.append_basic_block())
        with counted(builder, "again", I64(0), I64(TIMES)):
            if name == "do":
                builder.call(done, [*function.args, I64(0)])
            else:
                place = builder.gep(function.args[2], [function.args[1]], source_etype=kind)
                builder.atomic_rmw("add", place, kind(1), "monotonic")
        builder.ret_void()
    return module


@pytest.mark.parametrize("kind", list(KINDS))
def test_neighbours_are_updated_meanwhile(kind: str) -> None:
    element, dtype = KINDS[kind]
    update = Instruction(element, "atomicrmw", [], operation="add", atomic=Atomic(("monotonic",)), align=1)
    contents = TableContents(update, element(0), "contents")
    lanes = 64 // np.dtype(dtype).itemsize
    memory = np.zeros(64 * 3, np.uint8)
    start = -memory.ctypes.data % 64
    table, array = (memory[start + begin : start + begin + 64].view(dtype) for begin in (0, 64))
    table[0], table[lanes - 1] = 1, 3
    module = llvm.parse_assembly(str(write_repeating(contents, element)))
    with llvm.create_mcjit_compiler(module, make_host_machine()) as engine:
        engine.finalize_object()
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
        do, add = (call(engine.get_function_address(name)) for name in ("do", "add"))
        jobs = [(do, lanes), (do, lanes), (add, 1), (add, 0)]
        threads = [threading.Thread(target=job, args=(table.ctypes.data, number, array.ctypes.data))
                   for job, number in jobs]  # fmt: skip
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        engine.remove_module(module)
    expected = np.zeros(lanes, np.int64)
    expected[[0, 1, lanes - 1]] += np.array([3, 1, 6]) * TIMES
    np.testing.assert_array_equal(array, expected.astype(dtype))


@pytest.mark.parametrize("start", [0, 1, WHOLE // 3, WHOLE - 1])
@pytest.mark.parametrize("elements", [1, 8, 9, 100])
@pytest.mark.parametrize("shift", [0, 8])
@pytest.mark.sample(4)
def test_workers_begin_in_different_parts(start: int, elements: int, shift: int) -> None:
    kind = ir.IntType(64)
    update = Instruction(kind, "atomicrmw", [], operation="add", atomic=Atomic(("monotonic",)), align=8)
    module = ir.Module()
    TableContents(update, kind(0), "contents").define(module).linkage = ""
    memory = np.zeros(64 * 40, np.uint8)
    begin = -memory.ctypes.data % 64
    table, array = (memory[place : place + 64 * 16].view(np.int64) for place in (begin, begin + 64 * 16 + shift))
    table[:elements] = np.arange(elements) % 5
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    with llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), make_host_machine()) as engine:
        engine.finalize_object()
        call(engine.get_function_address("contents"))(table.ctypes.data, elements, array.ctypes.data, start)
    np.testing.assert_array_equal(array, table)
