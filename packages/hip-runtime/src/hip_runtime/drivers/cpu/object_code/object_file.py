"""The object files that LLVM makes for the processor of this machine."""

from __future__ import annotations

from hip_devicelib.elf import ElfFile, read_elf
from hip_devicelib.errors import CodeObjectError
from hip_runtime.errors import ModuleLoadError


def read_object(image: bytes) -> ElfFile:
    """The object file in *image*; raises `ModuleLoadError` where the system has object files of another kind."""
    try:
        return read_elf(image, machine=None)
    except CodeObjectError as error:
        raise ModuleLoadError(
            f"the CPU device needs a system with 64-bit little-endian ELF objects, such as Linux: {error}"
        ) from None
