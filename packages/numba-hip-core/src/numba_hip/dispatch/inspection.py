"""Inspection of the code that a dispatcher has compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from numba.core import types

from hip_runtime.driver import Dim3
from hip_runtime.launch_limits import dim3
from numba_hip import config
from numba_hip._numba.typing import normalize_signature
from numba_hip.compilation.kernel_code import KernelCode
from numba_hip.errors import DeviceFunctionError, NotCompiledError, without_own_frames

if TYPE_CHECKING:
    from numba_hip.compilation.device_function import DeviceFunction

Types = tuple[types.Type, ...]
T = TypeVar("T")


class Inspection:
    """The part of a dispatcher that shows code and what it takes of a device.

    Each method takes a signature that was compiled (a tuple of types, a string or a Numba signature), and gives a
    dictionary of all where that is left out; `NotCompiledError` for one that was not. A kernel that is specialised, or
    was given one signature by `jit`, gives what its code takes of a device for that one.
    """

    __name__: str
    is_device_function: bool
    overloads: dict[Types, KernelCode]
    specialized: bool
    _explicit: list[Types]

    def compile(self, signature: Any, target: str | None = None) -> KernelCode:
        """Compile for *signature* and *target*."""
        raise NotImplementedError

    def device_form(self, target: str | None = None) -> DeviceFunction:
        """The form that kernels for *target* call."""
        raise NotImplementedError

    @without_own_frames
    def inspect_llvm(self, signature: Any = None, target: str | None = None, block: Any = None) -> Any:
        """LLVM IR, optimised; of a device function as it was lowered. For *target* it is compiled if need be.

        What the CPU device runs depends on the shape of blocks: it is shown for *block*, by default for the shape that
        was launched last for the first time; before any launch, and without `config.inspect_launched`, the code of a
        single thread is.
        """
        if not self.is_device_function:
            return self._inspect(signature, target, lambda code: code.llvm(self._shape(code, block)))
        compiled = self.device_form(target).overloads
        if signature is None:
            return {args: result.library.get_llvm_str() for args, result in compiled.items()}
        args, _ = normalize_signature(signature)
        return self.device_form(target).compile(tuple(args)).library.get_llvm_str()

    @without_own_frames
    def inspect_asm(self, signature: Any = None, target: str | None = None, block: Any = None) -> Any:
        """Assembly. For *target*, such as ``"gfx942"``, the kernel is compiled if need be; no such GPU is needed.
        *block* is as for `inspect_llvm`."""
        self._refuse_device_function("inspect assembly")
        return self._inspect(signature, target, lambda code: code.asm(self._shape(code, block)))

    def inspect_transformed_source(self, signature: Any = None) -> Any:
        """The source of what was compiled where that is not the function itself: see the option ``rewrite``."""
        return self._inspect(signature, None, lambda code: code.metadata["transformed_source"])

    def inspect_sass(self, signature: Any = None, target: str | None = None, block: Any = None) -> Any:
        """The instructions of the device, as `inspect_asm`: AMD GPUs run what their assembly says."""
        self._refuse_device_function("inspect SASS")
        return self.inspect_asm(signature, target, block)

    def inspect_types(self, file: Any = None) -> None:
        """Print the source with the types that Numba inferred to *file*, standard output by default."""
        for args, code in self.overloads.items():
            print(self.__name__, args, file=file)
            print("-" * 80, file=file)
            print(code.annotation, file=file)
            print("=" * 80, file=file)

    def get_regs_per_thread(self, signature: Any = None) -> Any:
        """Registers of a thread: vector registers of an AMD GPU; on the CPU device those of the processor."""
        return self._measure(signature, lambda code: code.regs_per_thread)

    def get_shared_mem_per_block(self, signature: Any = None) -> Any:
        """Bytes of shared memory that each block has, without the dynamic part."""
        return self._measure(signature, lambda code: code.shared_mem_per_block)

    def get_const_mem_size(self, signature: Any = None) -> Any:
        """Bytes of constants: captured arrays, and tables of functions."""
        return self._measure(signature, lambda code: code.const_mem_size)

    def get_local_mem_per_thread(self, signature: Any = None) -> Any:
        """Bytes of memory that each thread has for itself: local arrays, and what has no place in registers."""
        return self._measure(signature, lambda code: code.local_mem_per_thread)

    def get_max_threads_per_block(self, signature: Any = None) -> Any:
        """Most threads that a block can have."""
        return self._measure(signature, lambda code: code.max_threads_per_block)

    def launched_shape(self, code: KernelCode) -> Dim3 | None:
        """The last new shape of blocks that *code* was launched with on the CPU device; ``None`` where it was not."""
        raise NotImplementedError

    def _shape(self, code: KernelCode, block: Any) -> Dim3 | None:
        if block is not None:
            return dim3("block", block)
        return self.launched_shape(code) if config.inspect_launched() else None

    def _measure(self, signature: Any, measure: Callable[[KernelCode], int]) -> Any:
        self._refuse_device_function("measure resources")
        if signature is None and (self.specialized or len(self._explicit) == 1):
            (code,) = self.overloads.values()
            return measure(code)
        return self._inspect(signature, None, measure)

    def _inspect(self, signature: Any, target: str | None, view: Callable[[KernelCode], T]) -> T | dict[Types, T]:
        if signature is None:
            return {args: view(code if target is None else self.compile(args, target)) for args, code in
                    list(self.overloads.items())}  # fmt: skip
        if target is not None:
            return view(self.compile(signature, target))
        args, _ = normalize_signature(signature)
        code = self.overloads.get(tuple(args))
        if code is None:
            known = "; ".join(", ".join(map(str, compiled)) for compiled in self.overloads) or "none yet"
            raise NotCompiledError(
                f"kernel {self.__name__} was not compiled for ({', '.join(map(str, args))}); its signatures: {known}"
            )
        return view(code)

    def _refuse_device_function(self, what: str) -> None:
        if self.is_device_function:
            raise DeviceFunctionError(
                f"Cannot {what} of a device function: {self.__name__} has no code apart from a kernel that calls it"
            )
