"""Code objects loaded into memory: their relocated segments, and the requirements of their kernels."""

from __future__ import annotations

import ctypes
import mmap
import struct
from dataclasses import dataclass, field
from typing import Any

from hip_devicelib.elf import Relocation, read_elf
from hip_devicelib.kernel_metadata import read_metadata

_MACHINES = {0x4C: "gfx942", 0x41: "gfx1100", 0x4E: "gfx1201"}
_SHARED_OBJECT, _FUNCTION, _RELATIVE = 3, 2, 13


class ImageError(Exception):
    """A code object that cannot be executed here."""


@dataclass(frozen=True)
class KernelImage:
    """A kernel: the fields of its descriptor, and its part of the metadata."""

    name: str
    descriptor: int
    entry: int
    shared_bytes: int
    private_bytes: int
    argument_bytes: int
    resources: tuple[int, int, int]
    properties: int
    preloaded: int
    metadata: dict[str, Any]

    @property
    def user_registers(self) -> int:
        return self.resources[1] >> 1 & 31

    @property
    def is_wave32(self) -> bool:
        return bool(self.properties >> 10 & 1)

    @property
    def has_dynamic_stack(self) -> bool:
        return bool(self.properties >> 11 & 1)

    def arguments(self) -> list[dict[str, Any]]:
        """The arguments that a launch passes."""
        return [part for part in self.metadata.get(".args", []) if not part[".value_kind"].startswith("hidden_")]


@dataclass
class Image:
    """A code object whose segments lie at ``base``."""

    target: str
    base: int
    size: int
    kernels: dict[str, KernelImage]
    functions: list[tuple[int, int, str]]
    memory: mmap.mmap = field(repr=False)

    def where(self, address: int) -> str:
        """The name of the function that contains *address*, and the offset in it."""
        offset = address - self.base
        for start, size, name in self.functions:
            if start <= offset < start + max(size, 4):
                return f"{name}+{offset - start:#x}"
        return f"{offset:#x}"


def load_image(data: bytes) -> Image:
    """The code object in *data*, ready to run."""
    elf = read_elf(data)
    target = _MACHINES.get(elf.flags & 0xFF)
    if target is None or elf.kind != _SHARED_OBJECT:
        known = ", ".join(_MACHINES.values())
        raise ImageError(
            f"machine {elf.flags & 0xFF:#x}, ELF type {elf.kind}: linked code objects for {known} are executed"
        )
    segments = elf.segments()
    size = max(segment.address + segment.size for segment in segments)
    memory = mmap.mmap(-1, (size + 4095) // 4096 * 4096)
    for segment in segments:
        memory[segment.address : segment.address + len(segment.content)] = segment.content
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for relocation in elf.load_relocations():
        value, width = _relocated(base, relocation)
        place = relocation.place
        memory[place : place + width] = (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    symbols = elf.defined_symbols()
    functions = {(symbol.value, symbol.size, symbol.name) for symbol in symbols if symbol.kind == _FUNCTION}
    image = Image(target, base, size, {}, sorted(functions), memory)
    image.kernels.update(_kernels(image, {symbol.name: symbol.value for symbol in symbols}, read_metadata(elf)))
    return image


def _relocated(base: int, relocation: Relocation) -> tuple[int, int]:
    """The value that a relocation stores, and its size in bytes. LLVM's guide to AMDGPU numbers the kinds."""
    if relocation.kind == _RELATIVE:
        return base + relocation.addend, 8
    symbol = relocation.symbol
    if symbol is None or not symbol.section:
        raise ImageError(f"the symbol {'' if symbol is None else symbol.name!r} is not defined")
    value = base + symbol.value + relocation.addend
    relative = value - (base + relocation.place)
    forms = {
        1: (value, 4),
        2: (value >> 32, 4),
        3: (value, 8),
        4: (relative, 4),
        5: (relative, 8),
        6: (value, 4),
        10: (relative, 4),
        11: (relative >> 32, 4),
    }
    if relocation.kind not in forms:
        raise ImageError(f"a relocation of type {relocation.kind}")
    return forms[relocation.kind]


def _kernels(image: Image, names: dict[str, int], metadata: dict[str, Any]) -> dict[str, KernelImage]:
    found = {}
    for part in metadata.get("amdhsa.kernels", []):
        place = names[part[".symbol"]]
        shared, private, arguments, _, entry = struct.unpack_from("<IIIIq", image.memory, place)
        third, first, second, properties, preload = struct.unpack_from("<IIIHH", image.memory, place + 44)
        name = part[".name"]
        found[name] = KernelImage(
            name,
            place,
            place + entry,
            shared,
            private,
            arguments,
            (first, second, third),
            properties,
            preload & 0x7F,
            part,
        )
    return found
