"""A kernel, compiled: what each stage of the compiler made of it, and the code object in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from llvmlite import binding as llvm
from numba.core import types

from hip_devicelib.codeobject import CPU_TARGET, CodeObject, Kernel, Parameter, lay_out
from numba_hip.codegen import symbol_of
from numba_hip.compiler import compile_function
from numba_hip.errors import KernelSignatureError, OutputError
from numba_hip.options import CompileOptions
from numba_hip.targets.callconv import Fault
from numba_hip.targets.registry import CompileTarget, compile_target

if TYPE_CHECKING:
    from numba_hip.codegen import HipCodeLibrary

OUTPUTS = ("llvm", "asm", "object")


@dataclass(frozen=True)
class KernelCode:
    """A kernel compiled for one target and one tuple of argument types.

    ``bitcode`` is one optimised LLVM module with the kernel ``name`` and all that it needs, ``lowered`` the library
    that it was linked from. ``parameters`` lie in a buffer of ``argument_bytes`` bytes. ``faults`` are the exceptions
    that it can raise, by their codes.
    """

    name: str
    target: CompileTarget
    options: CompileOptions
    argument_types: tuple[types.Type, ...]
    parameters: tuple[Parameter, ...]
    argument_bytes: int
    lowered: HipCodeLibrary
    bitcode: bytes
    faults: dict[int, Fault]
    annotation: Any

    def llvm(self) -> str:
        """LLVM IR, optimised."""
        return str(llvm.parse_bitcode(self.bitcode))

    def asm(self) -> str:
        """Assembly of the target; for the CPU device, of the kernel on its own, for one thread."""
        if self.target.name == CPU_TARGET:
            return str(self.target.target_context.codegen().assembly(self.bitcode))
        from hip_devicelib import amdgpu

        return amdgpu.assembly(self.bitcode, self.target.name)

    def object(self) -> bytes:
        """A relocatable ELF object; `OutputError` for the CPU device, whose code objects are bitcode."""
        if self.target.name == CPU_TARGET:
            raise OutputError("the CPU device has no object files: its code objects are bitcode; ask for 'llvm'")
        from hip_devicelib import amdgpu

        return amdgpu.object_code(self.bitcode, self.target.name)

    @cached_property
    def code_object(self) -> CodeObject:
        """What a device of this target loads; `OutputError` where that has to be linked first."""
        if self.target.name != CPU_TARGET:
            raise OutputError(f"code objects for {self.target.name} are not linked in this version; ask for 'object'")
        kernel = Kernel(
            self.name, self.parameters, self.argument_bytes, max_block_threads=self.options.max_block_threads
        )
        return CodeObject(CPU_TARGET, self.bitcode, (kernel,))


def compile_kernel(
    py_func: Callable[..., Any], args: tuple[types.Type, ...], options: CompileOptions, target: str
) -> KernelCode:
    """Compile *py_func* as a kernel with argument types *args* for *target*.

    Raises `numba.core.errors.TypingError` and its relatives at the user's line, `KernelSignatureError` for a kernel
    that returns a value, and `hip_devicelib.errors.UnknownTargetError`.
    """
    made_for = compile_target(target)
    result = compile_function(py_func, args, None, options, made_for)
    if result.signature.return_type not in (types.none, types.void):
        raise KernelSignatureError(
            f"kernel {py_func.__name__} returns {result.signature.return_type}; a kernel returns nothing: "
            "write results into an array, or make it a device function with @hip.jit(device=True)"
        )
    context = made_for.target_context
    name = symbol_of(py_func.__name__)
    library = context.codegen().create_library(f"{name}.kernel")
    library.add_linking_library(result.library)
    try:
        entry = context.build_entry(library, result, name, options)
    except KeyError as error:
        raise KernelSignatureError(
            f"kernel {py_func.__name__}: an argument has no place in a kernel: {error}"
        ) from error
    library.finalize()
    parameters, size = lay_out(entry)
    bitcode = context.codegen().link_kernel(library, name, options)
    return KernelCode(
        name, made_for, options, args, parameters, size, library, bitcode, library.all_faults(), result.type_annotation
    )
