"""The check by which a recursive function learns that little is left of the stack."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.llvmir import I8, I32, I64, PTR, allocate

_SPARE = 128 << 10
"""Bytes of the stack that are reserved for code that does not check: the C library, spilled registers, leaf
functions."""

_ATTRIBUTES = ir.ArrayType(I8, 128)
"""Room for a ``pthread_attr_t``: 56 bytes with glibc on x86-64, 64 on AArch64, from ``bits/pthreadtypes-arch.h``."""


def define_limit(module: ir.Module, nbytes: int) -> ir.Function:
    """``i64 stack_limit()``: the lowest address to which this thread's stack may grow, for functions with frames of
    *nbytes* in all; 0 if the system does not say."""
    system = {
        name: ir.Function(module, ir.FunctionType(result, arguments), name)
        for name, result, arguments in (
            ("pthread_self", I64, []),
            ("pthread_getattr_np", I32, [I64, PTR]),
            ("pthread_attr_getstack", I32, [PTR, PTR, PTR]),
            ("pthread_attr_destroy", I32, [PTR]),
        )
    }
    function = ir.Function(module, ir.FunctionType(I64, []), "spmd.stack_limit")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    attributes, lowest, size = allocate(builder, _ATTRIBUTES), allocate(builder, I64), allocate(builder, I64)
    attributes.align = 16
    status = builder.call(system["pthread_getattr_np"], [builder.call(system["pthread_self"], []), attributes])
    with builder.if_then(builder.icmp_signed("!=", status, I32(0))):
        builder.ret(I64(0))
    builder.call(system["pthread_attr_getstack"], [attributes, lowest, size])
    builder.call(system["pthread_attr_destroy"], [attributes])
    builder.ret(builder.add(builder.load(lowest, typ=I64), I64(_SPARE + 2 * nbytes)))
    return function


def is_below(builder: ir.IRBuilder, limit: ir.Value) -> ir.Value:
    """Whether the frame of the function being built (of its caller, once inlined) lies below *limit*."""
    module = builder.module
    kind = ir.FunctionType(PTR, [I32])
    name = "llvm.frameaddress.p0"
    address = module.globals.get(name) or ir.Function(module, kind, name)
    here = builder.ptrtoint(builder.call(address, [I32(0)]), I64)
    return builder.icmp_unsigned("<", here, limit)
