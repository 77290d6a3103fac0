"""Declarations of the SPMD contract's functions, with the attributes that tell LLVM what it may assume."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.llvmir import I1, I32, I64, PTR, VOID, new_function

_TYPES: dict[str, ir.Type] = {
    "void": VOID, "i1": I1, "i32": I32, "i64": I64, "ptr": PTR, "float": ir.FloatType(), "double": ir.DoubleType(),
}  # fmt: skip


def build_declarations(names: list[str], known: Mapping[str, int], idle: Collection[str] = ()) -> ir.Module:
    """A module that declares the functions *names* with their attributes, and defines those whose result is a *known*
    constant, and those that are *idle*, which do nothing."""
    module = ir.Module(name="spmd.declarations")
    for name in idle:
        new_function(module, name, ir.FunctionType(VOID, [PTR]), "alwaysinline").ret_void()
    for name in names:
        if name in known:
            builder = new_function(module, name, ir.FunctionType(I32, [PTR]), "alwaysinline")
            builder.ret(I32(known[name]))
            continue
        result, parameters = spmd.signature(name)
        kind = ir.FunctionType(_TYPES[result], [PTR, *(_TYPES[parameter] for parameter in parameters)])
        function = ir.Function(module, kind, name)
        function.attributes.add("nounwind")
        if name != spmd.STACK_IS_LOW:  # its result depends on the caller's frame, so calls must not be merged
            function.attributes.add("convergent" if name in spmd.SYNCHRONISING else "readnone")
    return module
