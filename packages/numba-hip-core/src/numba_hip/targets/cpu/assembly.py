"""Assembly in a kernel for the CPU device, tried alone and in another process before the kernel is made."""

from __future__ import annotations

from functools import cache

from llvmlite import binding as llvm
from llvmlite import ir

from hip_devicelib.errors import UnsupportedError
from hip_devicelib.llvm_context import make_context


def check(assembly: ir.InlineAsm) -> None:
    """Raise `UnsupportedError`, with LLVM's words, where *assembly* is none that the processor of this machine has."""
    refusal = _refusal(assembly.function_type, assembly.asm, assembly.constraint, assembly.side_effect)
    if refusal:
        raise UnsupportedError(refusal)


@cache
def _refusal(kind: ir.FunctionType, text: str, constraint: str, side_effect: bool) -> str:
    """Why LLVM does not take the assembly *text*; empty where it does."""
    module = ir.Module(context=ir.Context())
    function = ir.Function(module, kind, "assembly")
    builder = ir.IRBuilder(function.append_basic_block())
    result = builder.asm(kind, text, constraint, function.args, side_effect)
    if kind.return_type == ir.VoidType():
        builder.ret_void()
    else:
        builder.ret(result)
    from hip_devicelib.isolated_codegen import emit_for_host_apart

    try:
        parsed = llvm.parse_assembly(str(module), make_context())
        parsed.verify()
        emit_for_host_apart(parsed.as_bitcode(), "object", loads=True)
    except (RuntimeError, UnsupportedError) as error:
        return str(error) or "LLVM does not say why"
    return ""
