"""Handlers that signals had before ours, as LLVM IR: what is not for us is passed on to them.

A handler that passes a signal back to us gets the one below it.
"""

from __future__ import annotations

import signal

from llvmlite import ir

from hip_runtime.drivers.cpu.execution.signal_frames import SIGNAL_CODE
from hip_runtime.drivers.cpu.llvmir import I8, I32, I64, PTR, VOID, Callee, Struct, allocate

POKE = int(signal.SIGURG)
"""What is sent from thread to thread. By default it does nothing, in this process and in those that it becomes or
starts, and debuggers pass it on in silence."""

SIGNALS = (*map(int, (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP)), POKE)
"""Signals that have a handler of ours, as numbers: Python 3.10 would write their names into LLVM's IR."""

HANDLERS = 4
"""How many handlers of others are remembered for each signal."""

ACTION = Struct(handler=PTR, mask=ir.ArrayType(I64, 16), flags=I32, restorer=PTR)
"""A ``struct sigaction`` of Linux' C libraries on 64-bit machines."""

WITH_INFORMATION = 4
"""SA_SIGINFO, in its flags."""

CHAIN = Struct(count=I64, actions=ir.ArrayType(ACTION.type, HANDLERS))
"""The handlers that a signal had before, oldest first."""

HANDLER = ir.FunctionType(VOID, [I32, PTR, PTR])
"""The type of a handler that is told about its signal: its number, information, and the interrupted context."""

_IGNORED = 1  # SIG_IGN; SIG_DFL is 0


class PreviousHandlers:
    """Puts the table of handlers into a module, and ``void chain(number, information, context)``, which calls them."""

    def __init__(self, module: ir.Module) -> None:
        self._module = module
        self._chains = zero_table(module, "spmd.chains", CHAIN.type, len(SIGNALS))
        self._depth = zero_table(module, "spmd.chains.depth", I32, 1)
        self._define_prepare()
        self.chain = self._define_chain()

    def _define_prepare(self) -> None:
        """``void spmd.traps.prepare()``: called once, before handlers are installed."""
        prepare = ir.Function(self._module, ir.FunctionType(VOID, []), "spmd.traps.prepare")
        builder = ir.IRBuilder(prepare.append_basic_block("entry"))
        builder.call(self._module.globals["pthread_key_create"], [self._depth, PTR(None)])
        builder.ret_void()

    def _define_chain(self) -> ir.Function:
        """``void chain(number, information, context)``: do what would have happened without us."""
        get, put = (self._module.globals[f"pthread_{name}specific"] for name in ("get", "set"))
        function = ir.Function(self._module, HANDLER, "spmd.chain")
        function.linkage = "internal"
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        number, information, context = function.args
        key = builder.load(self._depth, typ=I32)
        depth = builder.ptrtoint(builder.call(get, [key]), I64)
        chain = self._chain_of(builder, number)
        index = builder.sub(builder.sub(CHAIN.load(builder, chain, "count"), I64(1)), depth)
        with builder.if_then(builder.icmp_signed("<", index, I64(0))):
            self._default(builder, number)
            builder.ret_void()
        actions = CHAIN.field(builder, chain, "actions")
        action = builder.gep(actions, [index], source_etype=ACTION.type)
        handler = ACTION.load(builder, action, "handler")
        value = builder.ptrtoint(handler, I64)
        with builder.if_then(builder.icmp_unsigned("<=", value, I64(_IGNORED))):
            code = builder.load(builder.gep(information, [I64(SIGNAL_CODE)], source_etype=I8), typ=I32)
            ignored = builder.icmp_unsigned("==", value, I64(_IGNORED))
            with builder.if_then(builder.and_(ignored, builder.icmp_signed("<=", code, I32(0)))):
                builder.ret_void()
            self._default(builder, number)
            builder.ret_void()
        builder.call(put, [key, builder.inttoptr(builder.add(depth, I64(1)), PTR)])
        told = builder.and_(ACTION.load(builder, action, "flags"), I32(WITH_INFORMATION))
        with builder.if_else(builder.icmp_unsigned("!=", told, I32(0))) as (informed, plain):
            with informed:
                builder.call(Callee(handler, HANDLER), [number, information, context])
            with plain:
                builder.call(Callee(handler, ir.FunctionType(VOID, [I32])), [number])
        builder.call(put, [key, builder.inttoptr(depth, PTR)])
        builder.ret_void()
        return function

    def _chain_of(self, builder: ir.IRBuilder, number: ir.Value) -> ir.Value:
        index = I64(0)
        for position, known in enumerate(SIGNALS):
            index = builder.select(builder.icmp_unsigned("==", number, I32(known)), I64(position), index)
        return builder.gep(self._chains, [index], source_etype=CHAIN.type)

    def _default(self, builder: ir.IRBuilder, number: ir.Value) -> None:
        """What the system does with a signal without a handler: nothing, or it ends the process, when we return."""
        kinds = {"sigaction": [I32, PTR, PTR], "raise": [I32]}
        act, send = (
            self._module.globals.get(name) or ir.Function(self._module, ir.FunctionType(I32, types), name)
            for name, types in kinds.items()
        )
        with builder.if_then(builder.icmp_unsigned("!=", number, I32(POKE))):
            action = allocate(builder, ACTION.type, "action")
            builder.store(ir.Constant(ACTION.type, None), action)
            builder.call(act, [number, action, PTR(None)])
            builder.call(send, [number])


def zero_table(module: ir.Module, name: str, kind: ir.Type, count: int) -> ir.GlobalVariable:
    """Memory for *count* values, zero at first."""
    table = ir.GlobalVariable(module, ir.ArrayType(kind, count), name)
    table.initializer = ir.Constant(ir.ArrayType(kind, count), None)
    table.type = PTR
    table.align = 16
    return table
