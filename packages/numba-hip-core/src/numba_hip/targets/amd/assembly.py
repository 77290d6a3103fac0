"""Assembly in a kernel for an AMD GPU, tried alone before the kernel is made."""

from __future__ import annotations

from functools import cache

from llvmlite import ir

from hip_devicelib.errors import CompileError, InvalidIRError, NotFoundError, UnsupportedError
from hip_devicelib.target import Target
from numba_hip.targets.assembly_trial import FUNCTION, build_trial, find_fault


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

    trial = str(build_trial(kind, text, constraint, side_effect))
    try:
        bitcode = amdgpu.optimise(trial, target, keep=[FUNCTION], level=0)
        try:
            return find_fault(amdgpu.object_code(bitcode, target))
        except NotFoundError:
            amdgpu.assembly(bitcode, target)
    except (CompileError, InvalidIRError, UnsupportedError) as error:
        return str(error)
    return ""
