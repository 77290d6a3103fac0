"""Assembly in a kernel for an AMD GPU, tried alone before the kernel is made."""

from __future__ import annotations

from functools import cache

from llvmlite import ir

from hip_devicelib.errors import CompileError, InvalidIRError, NotFoundError, UnsupportedError
from hip_devicelib.target import Target


def check(assembly: ir.InlineAsm, target: Target) -> None:
    """Raise `UnsupportedError`, with the words of LLVM or the assembler, where *assembly* is none that *target* has.

    Without an assembler only the constraints are checked.
    """
    refusal = _refusal(assembly.function_type, assembly.asm, assembly.constraint, assembly.side_effect, target)
    if refusal:
        raise UnsupportedError(refusal)


@cache
def _refusal(kind: ir.FunctionType, text: str, constraint: str, side_effect: bool, target: Target) -> str:
    """Why LLVM or the assembler does not take the assembly *text*; empty where they do."""
    from hip_devicelib import amdgpu

    module = ir.Module(context=ir.Context())
    function = ir.Function(module, kind, "assembly")
    builder = ir.IRBuilder(function.append_basic_block())
    result = builder.asm(kind, text, constraint, function.args, side_effect)
    if kind.return_type == ir.VoidType():
        builder.ret_void()
    else:
        builder.ret(result)
    try:
        bitcode = amdgpu.optimise(str(module), target, keep=["assembly"], level=0)
        try:
            amdgpu.object_code(bitcode, target)
        except NotFoundError:
            amdgpu.assembly(bitcode, target)
    except (CompileError, InvalidIRError, UnsupportedError) as error:
        return str(error)
    return ""
