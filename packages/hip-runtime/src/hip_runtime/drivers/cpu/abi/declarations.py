"""The intrinsics of the SPMD contract as declarations, with what LLVM may and may not assume of them."""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.llvmir import I1, I32, I64, PTR, VOID, new_function

_SHUFFLED: dict[str, ir.Type] = {"i32": I32, "i64": I64, "float": ir.FloatType(), "double": ir.DoubleType()}

_SIGNATURES: dict[str, ir.FunctionType] = {
    intrinsics.BARRIER: ir.FunctionType(VOID, [PTR]),
    intrinsics.BARRIER_COUNT: ir.FunctionType(I32, [PTR, I1]),
    intrinsics.GRID_BARRIER: ir.FunctionType(VOID, [PTR]),
    intrinsics.WAVE_BARRIER: ir.FunctionType(VOID, [PTR]),
    intrinsics.ACTIVE_LANES: ir.FunctionType(I64, [PTR]),
    intrinsics.STACK_IS_LOW: ir.FunctionType(I1, [PTR]),
    intrinsics.BALLOT: ir.FunctionType(I64, [PTR, I1]),
    **{intrinsics.SHUFFLE + name: ir.FunctionType(kind, [PTR, kind, I32]) for name, kind in _SHUFFLED.items()},
}


def build_declarations(names: list[str], known: Mapping[str, int]) -> ir.Module:
    """A module that declares the functions *names* with what LLVM may and may not assume of them, and defines those
    of which it is *known* what they give."""
    module = ir.Module(name="spmd.declarations")
    for name in names:
        if name in known:
            builder = new_function(module, name, ir.FunctionType(I32, [PTR]), "alwaysinline")
            builder.ret(I32(known[name]))
            continue
        signature = _SIGNATURES.get(name)
        if signature is None:
            result = I32
            if name.startswith(intrinsics.SHARED) or name == intrinsics.DYNAMIC_SHARED:
                result = PTR
            elif name == intrinsics.DYNAMIC_SHARED_BYTES:
                result = I64
            signature = ir.FunctionType(result, [PTR])
        function = ir.Function(module, signature, name)
        function.attributes.add("nounwind")
        if name != intrinsics.STACK_IS_LOW:  # which each function has to ask for itself
            function.attributes.add("convergent" if name in intrinsics.SYNCHRONISING else "readnone")
    return module
