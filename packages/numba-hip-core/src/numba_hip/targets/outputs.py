"""What a target generates from a kernel's bitcode: listings, objects, code objects, and their resource usage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from hip_devicelib.codeobject import CodeObject, Kernel, Parameter
from hip_runtime.driver import Dim3


class KernelModule(Protocol):
    """The properties of a kernel that its target needs; see `numba_hip.compilation.kernel_code.KernelCode`."""

    @property
    def name(self) -> str:
        """The symbol of the kernel."""

    @property
    def options(self) -> Any:
        """The options of `jit`."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The offset of each argument in the packed arguments."""

    @property
    def argument_types(self) -> tuple[Any, ...]:
        """Numba's types of the arguments."""

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
    """The outputs of one target."""

    @abstractmethod
    def assembly(self, bitcode: bytes) -> str:
        """Assembly of *bitcode*, without further optimisation."""

    @abstractmethod
    def object_code(self, bitcode: bytes) -> bytes:
        """A relocatable ELF object. Raises `OutputError` if the target has none."""

    @abstractmethod
    def kernel_llvm(self, module: KernelModule, block: Dim3 | None) -> str:
        """Optimised LLVM IR of the kernel as it runs for blocks of the shape *block*; for a single thread if that is
        None."""

    @abstractmethod
    def kernel_assembly(self, module: KernelModule, block: Dim3 | None) -> str:
        """Assembly of the same."""

    @abstractmethod
    def code_object(self, module: KernelModule) -> CodeObject:
        """What a device of this target loads."""

    @abstractmethod
    def kernel(self, module: KernelModule) -> Kernel:
        """What a launch needs to know, and which resources of the device the kernel uses."""

    @abstractmethod
    def registers(self, module: KernelModule) -> int:
        """Registers per thread."""

    @abstractmethod
    def private_bytes(self, module: KernelModule) -> int:
        """Bytes of private memory per thread."""

    @abstractmethod
    def occupancy(self, module: KernelModule) -> int:
        """Waves of the kernel that fit on a SIMD unit at a time. Raises `OutputError` if the target has no such
        units."""
