"""Calls of functions by their names: of LLVM's intrinsics, and of what is linked later."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils


def call_named(builder: ir.IRBuilder, name: str, result: ir.Type, *arguments: ir.Value) -> ir.CallInstr:
    """Call the function *name*, which gives a *result*. The module declares it with the first call, with pointers to
    anything, as other calls may pass pointers to others."""
    kinds = (argument.type for argument in arguments)
    taken = [ir.PointerType(addrspace=kind.addrspace) if isinstance(kind, ir.PointerType) else kind for kind in kinds]
    kind = ir.FunctionType(result, taken)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)
