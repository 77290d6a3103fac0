"""Calls of functions by their names: of LLVM's intrinsics, and of what is linked later."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils


def call_named(builder: ir.IRBuilder, name: str, result: ir.Type, *arguments: ir.Value) -> ir.CallInstr:
    """Call the function *name*, which gives a *result*. The module declares it with the first call."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)
