"""What a target makes of a kernel's bitcode: listings, objects, code objects, and what these take of a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from hip_devicelib.codeobject import CodeObject, Kernel, Parameter
from hip_runtime.driver import Dim3


class KernelModule(Protocol):
    """A kernel as far as its target has to know it; see `numba_hip.compilation.kernel_code.KernelCode`."""

    @property
    def name(self) -> str:
        """The symbol of the kernel."""

    @property
    def options(self) -> Any:
        """The options of `jit`."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Where each argument lies in the packed ones."""

    @property
    def argument_bytes(self) -> int:
        """Bytes of the packed arguments."""

    @property
    def bitcode(self) -> bytes:
        """One optimised LLVM module."""

    @property
    def data(self) -> Mapping[str, bytes]:
        """Large constants that the bitcode refers to, by symbol."""

    @property
    def code_object(self) -> CodeObject:
        """What a device loads."""

    @property
    def kernel(self) -> Kernel:
        """What a launch has to know."""


class Outputs(ABC):
    """What one target makes of bitcode."""

    @abstractmethod
    def assembly(self, bitcode: bytes) -> str:
        """Assembly of *bitcode* as it is."""

    @abstractmethod
    def object_code(self, bitcode: bytes) -> bytes:
        """A relocatable ELF object; `OutputError` where the target has none."""

    @abstractmethod
    def kernel_llvm(self, module: KernelModule, block: Dim3 | None) -> str:
        """LLVM IR of the kernel, optimised, as blocks of the shape *block* run it; of one thread where that is None."""

    @abstractmethod
    def kernel_assembly(self, module: KernelModule, block: Dim3 | None) -> str:
        """Assembly of the same."""

    @abstractmethod
    def code_object(self, module: KernelModule) -> CodeObject:
        """What a device of this target loads."""

    @abstractmethod
    def kernel(self, module: KernelModule) -> Kernel:
        """What a launch has to know, and what the kernel takes of a device."""

    @abstractmethod
    def registers(self, module: KernelModule) -> int:
        """Registers that a thread has."""

    @abstractmethod
    def private_bytes(self, module: KernelModule) -> int:
        """Bytes of memory that a thread has for itself."""

    @abstractmethod
    def occupancy(self, module: KernelModule) -> int:
        """Waves of the kernel that a SIMD unit holds at a time; `OutputError` where the target has no such units."""
