"""Outputs for AMD GPUs: assembly, objects and linked code objects."""

from __future__ import annotations

from llvmlite import binding as llvm

from hip_devicelib import amdgpu, link, object_code
from hip_devicelib.codeobject import CodeObject, Kernel
from hip_devicelib.kernel_metadata import read_kernels
from hip_devicelib.target import STACK_BYTES, Target
from hip_runtime.driver import Dim3
from hip_runtime.errors import UnsupportedError
from numba_hip.targets.outputs import KernelModule, Outputs


class AmdOutputs(Outputs):
    """What is made of bitcode for one AMD GPU. Its code is the same whatever the shape of blocks."""

    def __init__(self, machine: Target) -> None:
        self._machine = machine

    def assembly(self, bitcode: bytes) -> str:
        """Assembly of this GPU."""
        return amdgpu.assembly(bitcode, self._machine)

    def object_code(self, bitcode: bytes) -> bytes:
        """A relocatable ELF object."""
        return amdgpu.object_code(bitcode, self._machine)

    def kernel_llvm(self, module: KernelModule, block: Dim3 | None) -> str:
        """LLVM IR of the kernel, optimised."""
        del block
        return str(llvm.parse_bitcode(module.bitcode))

    def kernel_assembly(self, module: KernelModule, block: Dim3 | None) -> str:
        """Assembly of the kernel."""
        del block
        return self.assembly(module.bitcode)

    def code_object(self, module: KernelModule) -> CodeObject:
        """Linked, by ROCm or by ``ziglang``, with what the kernel needs of ROCm's device library.

        Raises `hip_devicelib.errors.NotFoundError` where one of them is needed and not there, and
        `hip_runtime.errors.UnsupportedError` for recursion with larger private arrays than a stack has room for.
        """
        from numba_hip.targets.amd.device_library import link_device_library

        complete = link_device_library(module.bitcode, self._machine)
        signature = [(parameter.name, parameter.type) for parameter in module.parameters]
        linked = link(object_code(complete, self._machine), signatures={module.name: signature})
        _check_stack(linked.kernel(module.name))
        return linked

    def kernel(self, module: KernelModule) -> Kernel:
        """What the metadata of the object says."""
        (kernel,) = read_kernels(self.object_code(module.bitcode))
        return kernel

    def registers(self, module: KernelModule) -> int:
        """Vector registers of a lane."""
        return int(module.kernel.vector_registers or 0)

    def private_bytes(self, module: KernelModule) -> int:
        """Bytes of private memory."""
        return module.kernel.private_bytes

    def occupancy(self, module: KernelModule) -> int:
        """Waves that each SIMD unit holds at a time, as LLVM reckons: in blocks of as many threads as it may have."""
        return amdgpu.occupancy(module.bitcode, self._machine, module.name)


def _check_stack(kernel: Kernel) -> None:
    """Refuse functions that call one another in circles and need more of the stack than their checks leave."""
    if kernel.has_dynamic_stack and kernel.private_bytes > STACK_BYTES // 2:
        raise UnsupportedError(
            f"kernel {kernel.name}: a thread needs {kernel.private_bytes} bytes for its private arrays and one call "
            f"of each function; with recursion it has {STACK_BYTES // 2} on AMD GPUs: use smaller arrays, or a loop"
        )
