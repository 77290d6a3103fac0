"""Python's signal handlers, run from native code on a thread that launches, as LLVM IR."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.launch_frame import FRAME
from hip_runtime.drivers.cpu.execution.thread_slots import INTERRUPTED, SLOT
from hip_runtime.drivers.cpu.llvmir import I32, PTR, VOID, allocate

REPORT_SYMBOL = "spmd.report"
"""Where the address of a Python object is that is called, without arguments, on a thread whose launch may not go on."""


def define_poll(module: ir.Module, python: dict[str, ir.Function]) -> ir.Function:
    """``void spmd.poll(slot)``: on the thread of *slot*, which launches, run pending Python signal handlers; if one
    raises, as that of Ctrl-C does, the launch is to end."""
    report = ir.GlobalVariable(module, PTR, REPORT_SYMBOL)
    report.type = PTR
    report.initializer = PTR(None)
    function = ir.Function(module, ir.FunctionType(VOID, [PTR]), "spmd.poll")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    (slot,) = function.args
    record = SLOT.load_atomic(builder, slot, "record")
    SLOT.store_atomic(builder, record, slot, "polled")
    SLOT.store_atomic(builder, PTR(None), slot, "record")  # errors of Python's handlers are not the kernel's fault
    builder.call(python["PyEval_RestoreThread"], [SLOT.load(builder, slot, "thread_state")])
    place = allocate(builder, I32, "raised")
    builder.store(builder.call(python["PyErr_CheckSignals"], []), place)
    due = builder.and_(
        builder.icmp_unsigned("!=", SLOT.load_atomic(builder, slot, "due"), I32(0)),
        builder.icmp_unsigned("==", builder.load(place, typ=I32), I32(0)),
    )
    with builder.if_then(due):
        SLOT.store_atomic(builder, I32(0), slot, "due")
        SLOT.store_atomic(builder, record, slot, "polled")  # a Python handler may itself have launched a kernel
        reporter = builder.load(report, typ=PTR)
        SLOT.store(builder, FRAME.load(builder, SLOT.load(builder, slot, "launch"), "program"), slot, "program")
        with builder.if_then(builder.icmp_unsigned("!=", reporter, PTR(None))):
            result = builder.call(python["PyObject_CallNoArgs"], [reporter])
            with builder.if_else(builder.icmp_unsigned("!=", result, PTR(None))) as (returned, failed):
                with returned:
                    builder.call(python["Py_DecRef"], [result])
                with failed:
                    builder.store(I32(1), place)
    raised = builder.load(place, typ=I32)
    SLOT.store(builder, builder.call(python["PyEval_SaveThread"], []), slot, "thread_state")
    SLOT.store_atomic(builder, record, slot, "record")
    SLOT.store_atomic(builder, PTR(None), slot, "polled")
    with builder.if_then(builder.icmp_unsigned("!=", raised, I32(0))):
        SLOT.store(builder, I32(0), slot, "late")
        SLOT.store_atomic(builder, I32(INTERRUPTED), slot, "stop")
        launch = SLOT.load(builder, slot, "launch")
        builder.atomic_rmw("xchg", FRAME.field(builder, launch, "fault_taken"), I32(1), "monotonic")
    builder.ret_void()
    return function
