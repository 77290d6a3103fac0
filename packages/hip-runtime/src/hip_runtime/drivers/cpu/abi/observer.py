"""What machine code calls where a kernel calls ``spmd.observe``: a function that hands on to whoever observes at the
moment, if anybody does. The blocks of such a kernel run one after another, on the launching thread."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.llvmir import I64, PTR, VOID, Callee

OBSERVER = "spmd.observer"
OBSERVER_TYPE = ir.FunctionType(VOID, [I64] * 7)
"""Event, site, address, bytes, value, number of the block in the grid and of the thread in the block, x first."""

OBSERVER_STATE = "spmd.observer.state"


def build_observer() -> ir.Module:
    """A module with `OBSERVER` and with ``i64 state()``: the address of two words, the function that is told, or 0, and
    what it is given first."""
    module = ir.Module(name=OBSERVER)
    words = ir.ArrayType(I64, 2)
    state = ir.GlobalVariable(module, words, f"{OBSERVER_STATE}.words")
    state.initializer = ir.Constant(words, [0, 0])
    state.type = PTR
    where = ir.Function(module, ir.FunctionType(I64, []), OBSERVER_STATE)
    builder = ir.IRBuilder(where.append_basic_block("entry"))
    builder.ret(builder.ptrtoint(state, I64))
    observer = ir.Function(module, OBSERVER_TYPE, OBSERVER)
    builder = ir.IRBuilder(observer.append_basic_block("entry"))
    told = builder.load(state, typ=I64)
    with builder.if_then(builder.icmp_unsigned("!=", told, I64(0))):
        given = builder.load(builder.gep(state, [I64(1)], source_etype=I64), typ=I64)
        function = Callee(builder.inttoptr(told, PTR), ir.FunctionType(VOID, [I64] * 8))
        builder.call(function, [given, *observer.args])
    builder.ret_void()
    return module
