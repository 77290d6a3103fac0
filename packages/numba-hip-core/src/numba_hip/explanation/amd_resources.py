"""What a kernel needs of a compute unit of an AMD GPU, from the metadata of its code and LLVM's figures."""

from __future__ import annotations

import math

from hip_devicelib import amdgpu
from hip_devicelib.errors import NotFoundError, UnsupportedError
from hip_devicelib.kernel_metadata import read_kernels, read_spills
from hip_devicelib.target import Target
from numba_hip.compilation.kernel_code import KernelCode
from numba_hip.explanation.model import Dim3, Resources
from numba_hip.targets.amd.device_library import link_device_library


def read_resources(code: KernelCode, machine: Target, block: Dim3) -> Resources:
    """The resources of *code*, launched in blocks of the shape *block*."""
    bitcode = _complete(code, machine)
    image = amdgpu.object_code(bitcode, machine)
    kernel = next(one for one in read_kernels(image) if one.name == code.name)
    spills = read_spills(image, code.name)
    registers = int(kernel.vector_registers or 0)
    # LLVM counts both kinds together where they are of one file.
    vector = registers - spills.accumulation_registers if machine.has_unified_registers else registers
    most = machine.max_waves_per_simd
    occupancy = _occupancy(bitcode, machine, code.name)
    by_lds = most
    if kernel.shared_bytes:
        by_lds = machine.waves_per_simd(max(machine.lds_bytes // kernel.shared_bytes, 1), math.prod(block))
    by_registers = most if occupancy is None else occupancy
    limited_by = ""
    if min(by_registers, by_lds) < most:
        limited_by = "LDS" if by_lds <= by_registers else "registers"
    waves = None if occupancy is None else min(occupancy, by_lds)
    return Resources(
        vector, spills.accumulation_registers, int(kernel.scalar_registers or 0), spills.vector, spills.scalar,
        kernel.shared_bytes, machine.lds_bytes, kernel.private_bytes, kernel.wave_size, waves, most, limited_by,
    )  # fmt: skip


def _occupancy(bitcode: bytes, machine: Target, name: str) -> int | None:
    """Waves on a SIMD unit; none if the kernel calls functions that are not there."""
    try:
        return amdgpu.occupancy(bitcode, machine, name)
    except UnsupportedError:
        return None


def _complete(code: KernelCode, machine: Target) -> bytes:
    """The bitcode of *code* with the functions of ROCm's device library, if that is there."""
    try:
        return link_device_library(code.bitcode, machine)
    except NotFoundError:
        return code.bitcode
