"""Computes how much shared memory (LDS) the variables of a module take in LLVM's layout."""

from __future__ import annotations

from llvmlite import binding as llvm

SHARED_POINTER = "ptr addrspace(3)"
"""LLVM's spelling of the type of a pointer to shared memory."""

_WIDEST_ACCESS = 16
"""The most bytes that an instruction reads at once: LLVM aligns variables accordingly (AMDGPULowerModuleLDS)."""


def shared_variables(module: llvm.ModuleRef) -> list[llvm.ValueRef]:
    """The variables of *module* in shared memory."""
    return [variable for variable in module.global_variables if str(variable.type) == SHARED_POINTER]


def lay_out_shared_memory(module: llvm.ModuleRef) -> int:
    """The bytes that the variables of *module* take together, in order of descending alignment."""
    layout = llvm.create_target_data(module.data_layout)
    places = []
    for variable in shared_variables(module):
        size = int(layout.get_abi_size(variable.global_value_type))
        if size:  # otherwise memory whose size is set at the launch, which comes last
            places.append((max(_alignment(variable, layout), _access(size)), size))
    end = 0
    for alignment, size in sorted(places, reverse=True):
        end = -(-end // alignment) * alignment + size
    return end


def _alignment(variable: llvm.ValueRef, layout: llvm.TargetData) -> int:
    # llvmlite gives the alignment of a variable only as text.
    stated = str(variable).rpartition(", align ")[2].partition(",")[0].split()
    if stated and stated[0].isdecimal():
        return int(stated[0])
    return int(layout.get_abi_alignment(variable.global_value_type))


def _access(size: int) -> int:
    """The least alignment that LLVM gives a variable of *size* bytes."""
    alignment = 1
    while alignment < min(size, _WIDEST_ACCESS):
        alignment *= 2
    return alignment
