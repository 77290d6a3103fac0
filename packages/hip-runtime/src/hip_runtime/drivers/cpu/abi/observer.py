"""The function behind ``spmd.observe``: it forwards each event to the current observer's callback, if there is one.

The blocks of an observed kernel run one after another, on the launching thread.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.llvmir import I64, PTR, VOID, Callee

OBSERVER = "spmd.observer"
OBSERVER_TYPE = ir.FunctionType(VOID, [I64] * 7)
"""Event, site, address, bytes, value, number of the block in the grid and of the thread in the block, x first."""

OBSERVER_STATE = "spmd.observer.state"


def build_observer() -> ir.Module:
    """A module with `OBSERVER` and with ``i64 state()``, which returns the address of two words: the callback, or 0,
    and the callback's first argument."""
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
    callback = builder.load(state, typ=I64)
    with builder.if_then(builder.icmp_unsigned("!=", callback, I64(0))):
        context = builder.load(builder.gep(state, [I64(1)], source_etype=I64), typ=I64)
        function = Callee(builder.inttoptr(callback, PTR), ir.FunctionType(VOID, [I64] * 8))
        builder.call(function, [context, *observer.args])
    builder.ret_void()
    return module
