"""Assembly in a kernel for the CPU device, tried alone and in another process before the kernel is made."""

from __future__ import annotations

from functools import cache

from llvmlite import binding as llvm
from llvmlite import ir

from hip_devicelib.errors import UnsupportedError
from hip_devicelib.llvm_context import make_context
from numba_hip.targets.assembly_trial import build_trial, find_fault


def check(assembly: ir.InlineAsm) -> None:
    """Raise `UnsupportedError`, with LLVM's words, where *assembly* is none that the processor of this machine has."""
    refusal = _refusal(assembly.function_type, assembly.asm, assembly.constraint, assembly.side_effect)
    if refusal:
        raise UnsupportedError(refusal)


@cache
def _refusal(kind: ir.FunctionType, text: str, constraint: str, side_effect: bool) -> str:
    """Why LLVM does not take the assembly *text*; empty where it does."""
    from hip_devicelib.isolated_codegen import emit_for_host_apart

    try:
        trial = llvm.parse_assembly(str(build_trial(kind, text, constraint, side_effect)), make_context())
        trial.verify()
        return find_fault(emit_for_host_apart(trial.as_bitcode(), "object", loads=True))
    except (RuntimeError, UnsupportedError) as error:
        return str(error) or "LLVM does not say why"
