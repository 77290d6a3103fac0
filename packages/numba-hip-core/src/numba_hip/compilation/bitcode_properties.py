"""Properties of a kernel that can be read from its bitcode, for any target."""

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
