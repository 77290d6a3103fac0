"""What a kernel takes of a device: registers and memory, read from its code."""

from __future__ import annotations

from llvmlite import binding as llvm

from hip_devicelib import spmd
from hip_devicelib.shared_memory import SHARED_POINTER


def constant_bytes(bitcode: bytes) -> int:
    """Bytes of the global variables that the module defines outside of shared memory: captured arrays and tables."""
    module = llvm.parse_bitcode(bitcode)
    layout = llvm.create_target_data(module.data_layout)
    return sum(
        int(layout.get_abi_size(variable.global_value_type))
        for variable in module.global_variables
        if not variable.is_declaration and str(variable.type) != SHARED_POINTER
    )


GRID_BARRIERS = frozenset({spmd.GRID_BARRIER, "__ockl_grid_sync"})
"""Barriers among all threads of a launch, on the CPU device and on AMD GPUs."""


def is_cooperative(bitcode: bytes) -> bool:
    """Whether threads wait for others of the whole grid, so that all blocks have to run at the same time."""
    return any(function.name in GRID_BARRIERS for function in llvm.parse_bitcode(bitcode).functions)


def shared_bytes(bitcode: bytes) -> int:
    """Bytes of the shared arrays of code of the CPU device together."""
    return spmd.lay_out_shared(function.name for function in llvm.parse_bitcode(bitcode).functions)


def private_bytes(bitcode: bytes, kernel: str) -> int:
    """Bytes of the stack slots that *kernel*, in code of the CPU device, has for each thread."""
    module = llvm.parse_bitcode(bitcode)
    function = module.get_function(kernel)
    slots = [slot for block in function.blocks for slot in block.instructions if slot.opcode == "alloca"]
    # LLVM tells the type of a slot only where it prints the instruction; a variable of that type tells its size.
    types = [str(slot).partition(" alloca ")[2].rpartition(", align ")[0] for slot in slots]
    layout = llvm.create_target_data(module.data_layout)
    total = 0
    for slot, shown in zip(slots, types, strict=True):
        (count,) = slot.operands
        element = shown.removesuffix(f", {count}")
        named = "\n".join(map(str, module.struct_types))
        sample = llvm.parse_assembly(f"{named}\n@sample = external global {element}").get_global_variable("sample")
        value = count.get_constant_value(signed_int=True) if count.is_constant else 1
        total += int(layout.get_abi_size(sample.global_value_type)) * int(value)
    return total


def processor_registers() -> int:
    """Registers of the processor for numbers and vectors; on the CPU device a thread that runs has them all."""
    if llvm.get_process_triple().startswith("x86_64"):
        wide = llvm.get_host_cpu_features().get("avx512f", False)
        return 16 + (32 if wide else 16)
    return 31 + 32  # of AArch64
