"""Outputs for the CPU device: the bitcode itself, which the device loads and finalises for each block shape."""

from __future__ import annotations

from llvmlite import binding as llvm

from hip_devicelib import spmd
from hip_devicelib.codeobject import CPU_TARGET, CodeObject, Kernel
from hip_runtime import config
from hip_runtime.driver import Dim3
from numba_hip.abi.array_parameters import contiguous_strides
from numba_hip.errors import OutputError
from numba_hip.targets.cpu.codegen import CpuCodegen
from numba_hip.targets.outputs import KernelModule, Outputs


class CpuOutputs(Outputs):
    """What the CPU device makes of bitcode."""

    def __init__(self, codegen: CpuCodegen) -> None:
        self._codegen = codegen

    def assembly(self, bitcode: bytes) -> str:
        """Assembly of this processor."""
        return self._codegen.assembly(bitcode)

    def object_code(self, bitcode: bytes) -> bytes:
        """Refuse with `OutputError`."""
        del bitcode
        raise OutputError("the CPU device has no object files: it loads and links bitcode; ask for 'bitcode' or 'llvm'")

    def kernel_llvm(self, module: KernelModule, block: Dim3 | None) -> str:
        """Raises `hip_runtime.errors.UnsupportedError` where the CPU device cannot run such blocks."""
        return str(llvm.parse_bitcode(module.bitcode)) if block is None else _list(module, block)[0]

    def kernel_assembly(self, module: KernelModule, block: Dim3 | None) -> str:
        """Raises as `kernel_llvm` does."""
        return self.assembly(module.bitcode) if block is None else _list(module, block)[1]

    def code_object(self, module: KernelModule) -> CodeObject:
        """The bitcode, with the large constants that it refers to."""
        return CodeObject(CPU_TARGET, module.bitcode, (module.kernel,), module.data)

    def kernel(self, module: KernelModule) -> Kernel:
        """What a launch has to know."""
        return Kernel(
            module.name, module.parameters, module.argument_bytes, shared_bytes=_shared_bytes(module.bitcode),
            wave_size=module.options.wave_size or config.cpu_wave_size(),
            max_block_threads=module.options.max_block_threads,
            likely_arguments=contiguous_strides(module.argument_types, module.parameters),
        )  # fmt: skip

    def registers(self, module: KernelModule) -> int:
        """Registers of the processor for numbers and vectors: a thread that runs has them all."""
        del module
        if llvm.get_process_triple().startswith("x86_64"):
            wide = llvm.get_host_cpu_features().get("avx512f", False)
            return 16 + (32 if wide else 16)
        return 31 + 32  # of AArch64

    def private_bytes(self, module: KernelModule) -> int:
        """Bytes of the stack slots that the kernel has for each thread."""
        parsed = llvm.parse_bitcode(module.bitcode)
        function = parsed.get_function(module.name)
        slots = [slot for block in function.blocks for slot in block.instructions if slot.opcode == "alloca"]
        # LLVM tells the type of a slot only where it prints the instruction; a variable of that type tells its size.
        types = [str(slot).partition(" alloca ")[2].rpartition(", align ")[0] for slot in slots]
        layout = llvm.create_target_data(parsed.data_layout)
        named = "\n".join(str(kind) for kind in parsed.struct_types if kind.name)
        total = 0
        for slot, shown in zip(slots, types, strict=True):
            (count,) = slot.operands
            element = shown.removesuffix(f", {count}")
            sample = llvm.parse_assembly(f"{named}\n@sample = external global {element}").get_global_variable("sample")
            value = count.get_constant_value(signed_int=True) if count.is_constant else 1
            total += int(layout.get_abi_size(sample.global_value_type)) * int(value)
        return total

    def occupancy(self, module: KernelModule) -> int:
        """Refuse with `OutputError`."""
        del module
        raise OutputError("the CPU device has no occupancy: a thread of the processor runs one block at a time")


def _list(module: KernelModule, block: Dim3) -> tuple[str, str]:
    """LLVM IR and assembly of what runs blocks of the shape *block*."""
    from hip_runtime.drivers.cpu.finalise import list_kernel

    return list_kernel(module.code_object, module.kernel, block)


def _shared_bytes(bitcode: bytes) -> int:
    """Bytes of the shared arrays together."""
    return spmd.lay_out_shared(function.name for function in llvm.parse_bitcode(bitcode).functions)
