"""Checks code that is loaded onto the CPU device: whether it is what it says it is, and whether LLVM will survive
it."""

from __future__ import annotations

from typing import Any

from hip_devicelib.backend_limits import find_oversized
from hip_devicelib.codeobject import CPU_TARGET, SCALAR_SIZES, CodeObject, Kernel
from hip_devicelib.forking import compiling
from hip_devicelib.isolated_codegen import BITCODE_MAGICS
from hip_runtime.drivers.cpu.backend_limits import MACHINES, doubts
from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.object_code.host_machine import target_machine
from hip_runtime.drivers.cpu.object_code.jit import locked
from hip_runtime.errors import ModuleLoadError, SymbolError

_INTRINSIC_PREFIXES = {"x86_64": "x86", "aarch64": "aarch64"}


def validate(code: CodeObject) -> list[str]:
    """Raise `ModuleLoadError` where *code* is not code of the CPU device, is not what its kernels say, or would take
    LLVM minutes; gives what LLVM may not survive of it."""
    if code.target != CPU_TARGET:
        raise ModuleLoadError(
            f"a code object for target {code.target!r} cannot be loaded on the CPU device; compile for target "
            f"{CPU_TARGET!r}"
        )
    if not code.image.startswith(BITCODE_MAGICS):
        raise ModuleLoadError(
            f"the image of a code object for target {CPU_TARGET!r} must be LLVM bitcode; this one, of "
            f"{len(code.image)} bytes, starts with {code.image[:4]!r}"
        )
    with compiling, locked(), LlvmContext() as context:
        module = read_bitcode(code, context)
        _check_machine(module)
        for kernel in code.kernels:
            _check_kernel(module, kernel)
        text = str(module)
    oversized = find_oversized(text)
    if oversized:
        raise ModuleLoadError(f"code with kernels {', '.join(kernel.name for kernel in code.kernels)} has {oversized}")
    return doubts(text)


def read_bitcode(code: CodeObject, context: LlvmContext) -> Any:
    """The module in *code*; `ModuleLoadError` where it is damaged."""
    try:
        module = context.read_bitcode(code.image)
        module.verify()
    except RuntimeError as error:
        raise ModuleLoadError(f"the bitcode of this code object is damaged: {error}") from None
    return module


def _check_machine(module: Any) -> None:
    """LLVM ends the process on an intrinsic of another machine, so there must be none."""
    arch = target_machine().triple.partition("-")[0]
    if module.triple and module.triple.partition("-")[0] != arch:
        raise ModuleLoadError(
            f"the bitcode is for {module.triple!r}; this machine is {arch!r}, or leave the triple empty"
        )
    native = _INTRINSIC_PREFIXES.get(arch, "")
    for function in module.functions:
        name = function.name
        prefix = name.split(".")[1] if name.startswith("llvm.") else ""
        if prefix in MACHINES and prefix != native:
            raise ModuleLoadError(f"the bitcode calls {name!r}, which only {prefix} has, not the CPU device")


def _check_kernel(module: Any, kernel: Kernel) -> None:
    try:
        function = module.get_function(kernel.name)
    except NameError:
        raise SymbolError(f"the code object lists kernel {kernel.name!r}, but its bitcode does not define it") from None
    if function.is_declaration:
        raise SymbolError(f"the code object lists kernel {kernel.name!r}, but its bitcode only declares it")
    found = [str(argument.type) for argument in function.arguments]
    expected = ["ptr", *(parameter.type for parameter in kernel.parameters)]
    if found != expected:
        raise ModuleLoadError(
            f"kernel {kernel.name!r} has parameters ({', '.join(found)}) in its bitcode; the code object says "
            f"({', '.join(expected)}), the first being the work item"
        )
    for parameter in kernel.parameters:
        end = parameter.offset + SCALAR_SIZES[parameter.type]
        if parameter.offset < 0 or end > kernel.argument_bytes:
            raise ModuleLoadError(
                f"parameter {parameter.name!r} of kernel {kernel.name!r} lies at bytes {parameter.offset} to {end} of "
                f"an argument buffer of {kernel.argument_bytes} bytes"
            )
