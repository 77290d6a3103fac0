"""A compiled kernel: the output of each stage of the compiler, up to the code object."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numba.core import config as numba_config
from numba.core import types, typing

from hip_devicelib.cached_property import cached_property
from hip_devicelib.codeobject import CodeObject, Kernel, Parameter, lay_out
from hip_devicelib.interrupts import interrupts_held
from hip_runtime import DeviceArray, current_device
from hip_runtime.compile_notice import announced, enter_stage
from hip_runtime.driver import Dim3
from hip_runtime.dump import Dump
from hip_runtime.launch_limits import dim3
from hip_runtime.said_names import our
from numba_hip._numba.compiler import compiling_for
from numba_hip.abi.fault import Fault
from numba_hip.compilation import bitcode_properties
from numba_hip.compilation.compiler import compile_function, explained
from numba_hip.compilation.options import CompileOptions
from numba_hip.compilation.rest_parameter import fold_rest
from numba_hip.compilation.target_choice import find_target
from numba_hip.errors import KernelSignatureError
from numba_hip.language.captured_arrays import captured_by
from numba_hip.linked_code import LinkedCode
from numba_hip.targets.code_library import symbol_of
from numba_hip.targets.compile_target import CompileTarget

OUTPUTS = ("llvm", "bitcode", "asm", "object", "codeobject")


@dataclass(frozen=True)
class KernelCode:
    """A kernel compiled for one target and one tuple of argument types.

    ``bitcode`` is one optimised LLVM module with the kernel ``name`` and everything that it needs. ``parameters`` are
    laid out in a buffer of ``argument_bytes`` bytes. ``faults`` are the exceptions that it can raise, by their codes.
    ``annotation`` shows the source with its types; ``sources`` are the files of all its functions.
    """

    name: str
    target: CompileTarget
    options: CompileOptions
    argument_types: tuple[types.Type, ...]
    parameters: tuple[Parameter, ...]
    argument_bytes: int
    bitcode: bytes
    faults: dict[int, Fault]
    annotation: Any
    sources: frozenset[str]
    captured: tuple[DeviceArray, ...] = ()
    """The device arrays whose addresses are in the code."""
    data: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Large constants that the bitcode of the CPU device refers to, by symbol."""
    granule: int = 0
    """Of code that is observed: bytes that all accesses are a multiple of."""
    linked: tuple[LinkedCode, ...] = ()
    """What is linked and wants to know when it is loaded and unloaded."""
    declared_cooperative: bool = False
    """Whether it calls linked code that is declared to wait for the whole grid."""

    def llvm(self, block: Dim3 | None = None) -> str:
        """LLVM IR, optimised; for the CPU device that of a single thread, or of what runs blocks of the shape *block*.
        Raises `hip_runtime.errors.UnsupportedError` where the CPU device cannot run such blocks."""
        return self.target.outputs.kernel_llvm(self, block)

    def asm(self, block: Dim3 | None = None) -> str:
        """Assembly of the target; for the CPU device that of a single thread, or of what runs blocks of the shape
        *block*. Raises as `llvm` does."""
        return self.target.outputs.kernel_assembly(self, block)

    def object(self) -> bytes:
        """A relocatable ELF object. Raises `OutputError` for the CPU device, whose code objects are bitcode."""
        return self.target.outputs.object_code(self.bitcode)

    @cached_property
    def code_object(self) -> CodeObject:
        """What a device of this target loads.

        For an AMD GPU it is linked, by ROCm or by ``ziglang``, with the functions of ROCm's device library that it
        calls. Raises `hip_devicelib.errors.NotFoundError` if one of them is needed and missing.
        """
        return self.target.outputs.code_object(self)

    @cached_property
    def kernel(self) -> Kernel:
        """What a launch needs to know, and which resources of the device the kernel uses."""
        return self.target.outputs.kernel(self)

    @property
    def metadata(self) -> dict[str, Any]:
        """Further metadata of Numba's compile results; here the source of a kernel that was rewritten."""
        rewrite = self.options.rewrite
        return {"transformed_source": None if rewrite is None else rewrite.sources.get(self.argument_types)}

    @property
    def _type_annotation(self) -> Any:
        """``annotation`` under its name in Numba's compile results."""
        return self.annotation

    @cached_property
    def cooperative(self) -> bool:
        """Whether threads wait for others of the whole grid, so that all blocks have to run at the same time."""
        return self.declared_cooperative or bitcode_properties.is_cooperative(self.bitcode)

    def max_cooperative_grid_blocks(self, blockdim: Any, dynsmemsize: int = 0) -> int:
        """The largest number of blocks of *blockdim* threads, with *dynsmemsize* bytes of shared memory, that run at
        the same time.

        On the current device, which has to match this code's target. Raises `LaunchError` for an impossible block.
        """
        device = current_device()
        function = device.load(self.code_object).function(self.name)
        blocks = function.max_active_blocks(dim3("blockdim", blockdim), dynsmemsize)
        return int(blocks * device.attributes.compute_units)

    @property
    def signature(self) -> Any:
        """Numba's signature: the argument types, and nothing returned."""
        return typing.signature(types.none, *self.argument_types)

    @property
    def regs_per_thread(self) -> int:
        """Registers per thread: vector registers of a lane, or on the CPU device those of the processor."""
        return self.target.outputs.registers(self)

    @property
    def shared_mem_per_block(self) -> int:
        """Bytes of statically allocated shared memory of a block."""
        return self.kernel.shared_bytes

    @cached_property
    def const_mem_size(self) -> int:
        """Bytes of constants."""
        return bitcode_properties.constant_bytes(self.bitcode) + sum(map(len, self.data.values()))

    @cached_property
    def local_mem_per_thread(self) -> int:
        """Bytes of private memory per thread."""
        return self.target.outputs.private_bytes(self)

    @cached_property
    def occupancy(self) -> int:
        """Waves of this kernel that fit on a SIMD unit of the GPU at a time, as LLVM computes it, for the largest
        blocks that it allows. Raises `OutputError` for the CPU device, which has no such units."""
        return self.target.outputs.occupancy(self)

    @property
    def max_threads_per_block(self) -> int:
        """The largest number of threads of a block."""
        return self.kernel.max_block_threads


def compile_kernel(
    py_func: Callable[..., Any], args: tuple[types.Type, ...], options: CompileOptions, target: str
) -> KernelCode:
    """Compile *py_func* as a kernel with argument types *args* for *target*.

    Raises `numba.core.errors.TypingError` and its relatives at the user's line, for waves that the target does not
    have, too; `KernelSignatureError` for a kernel that returns a value, and `hip_devicelib.errors.UnknownTargetError`.
    """
    with explained(py_func, args, target), announced(py_func.__name__, "type inference"):
        made_for = find_target(py_func, options, target)
        with compiling_for(made_for.numba_name):  # the code after Numba's passes uses its contexts, too
            code = _compile_kernel(py_func, args, options, made_for)
    _print_dumps(code)
    return code


def _print_dumps(code: KernelCode) -> None:
    """Print what Numba's settings request for each compiled function."""
    for wanted, title, show in (
        (numba_config.DUMP_OPTIMIZED, "OPTIMIZED DUMP", code.llvm),
        (numba_config.DUMP_ASSEMBLY, "ASSEMBLY", code.asm),
    ):
        if wanted:
            print(f"{title} {code.name}".center(80, "-"), show(), "=" * 80, sep="\n")
    if code.target.machine is not None:  # the CPU device shows what it makes of the others
        dump = Dump(f"{code.name}-{code.target.name}")
        dump.show("ir", "LLVM IR, optimised", code.llvm)
        dump.show("asm", "assembly", code.asm)


def a_result(kernel: str, what: Any) -> KernelSignatureError:
    """The error for a *kernel* that returns *what*."""
    return KernelSignatureError(
        f"kernel {kernel} returns {what}; a kernel returns nothing: write results into an array, or make it a device "
        f"function with @{our('jit')}(device=True)"
    )


def _compile_kernel(
    py_func: Callable[..., Any], args: tuple[types.Type, ...], options: CompileOptions, made_for: CompileTarget
) -> KernelCode:
    result = compile_function(py_func, fold_rest(py_func, args), None, options, made_for)
    if result.signature.return_type not in (types.none, types.void):
        raise a_result(py_func.__name__, result.signature.return_type)
    enter_stage("linking and optimising")
    with interrupts_held():
        return _link(py_func, args, options, made_for, result)


def _link(
    py_func: Callable[..., Any],
    args: tuple[types.Type, ...],
    options: CompileOptions,
    made_for: CompileTarget,
    result: Any,
) -> KernelCode:
    """The kernel's code, of what Numba compiled and all that this calls."""
    context = made_for.target_context
    name = symbol_of(py_func.__name__)
    library = context.codegen().create_library(f"{name}.kernel")
    library.add_linking_library(result.library)
    try:
        entry = context.build_entry(library, result, name, options)
    except KeyError as error:
        raise KernelSignatureError(
            f"kernel {py_func.__name__}: an argument has a type that kernels cannot take: {error}"
        ) from error
    library.finalize()
    parameters, size = lay_out(entry)
    bitcode = context.codegen().link_kernel(library, name, options, library.external_modules(context))
    return KernelCode(
        name,
        made_for,
        options,
        args,
        parameters,
        size,
        bitcode,
        library.all_faults(),
        result.type_annotation,
        library.all_sources(),
        captured_by(library),
        library.all_data(),
        math.gcd(8, *library.all_access_sizes()) if context.codegen().observes else 0,
        library.codes_with_callbacks(),
        library.is_cooperative(),
    )
