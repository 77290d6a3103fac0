"""Linked code objects in memory: their segments, relocated, and what their kernels need."""

from __future__ import annotations

import ctypes
import mmap
import struct
from dataclasses import dataclass, field
from typing import Any

from hip_devicelib.elf import read_elf

_LOAD, _RELA = 1, 4
_PROGRAM = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_MACHINES = {0x4C: "gfx942", 0x41: "gfx1100", 0x4E: "gfx1201"}
_NOTE_TYPE, _SYMBOL_TABLE = 32, 2


class ImageError(Exception):
    """A code object that cannot be executed here."""


@dataclass(frozen=True)
class KernelImage:
    """One kernel: its descriptor, field by field, and the part of the metadata that is its own."""

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
        """The arguments that a launch gives."""
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
        """The name of the function that *address* is in, and how far."""
        offset = address - self.base
        for start, size, name in self.functions:
            if start <= offset < start + max(size, 4):
                return f"{name}+{offset - start:#x}"
        return f"{offset:#x}"


def load_image(data: bytes) -> Image:
    """The code object in *data*, ready to run."""
    header = struct.unpack_from("<HHIQQQIHHHHHH", data, 16)
    kind, _, _, _, program_place, section_place, flags, _, _, programs, _, sections, _ = header
    target = _MACHINES.get(flags & 0xFF)
    if target is None or kind != 3:
        known = ", ".join(_MACHINES.values())
        raise ImageError(f"machine {flags & 0xFF:#x}, ELF type {kind}: linked code objects for {known} are executed")
    segments = [_PROGRAM.unpack_from(data, program_place + i * _PROGRAM.size) for i in range(programs)]
    loads = [(part[3], part[2], part[5], part[6]) for part in segments if part[0] == _LOAD]
    size = max(address + room for address, _, _, room in loads)
    memory = mmap.mmap(-1, (size + 4095) // 4096 * 4096)
    for address, place, held, _ in loads:
        memory[address : address + held] = data[place : place + held]
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    tables = [_SECTION.unpack_from(data, section_place + i * _SECTION.size) for i in range(sections)]
    symbols = {i: _symbols(data, tables, part) for i, part in enumerate(tables) if part[1] in (2, 11)}
    for part in tables:
        if part[1] == _RELA and part[2] & 2:
            _relocate(memory, base, data, part, symbols.get(part[6], []))
    names = {name: value for table in symbols.values() for name, value, _, _, section in table if section}
    functions = sorted(
        {(value, room, name) for table in symbols.values() for name, value, room, kind, _ in table if kind == 2}
    )
    image = Image(target, base, size, {}, functions, memory)
    image.kernels.update(_kernels(image, names, _metadata(data)))
    return image


def _symbols(data: bytes, tables: list[Any], part: Any) -> list[tuple[str, int, int, int, int]]:
    names = tables[part[6]][4]
    found = []
    for place in range(part[4], part[4] + part[5], _SYMBOL.size):
        name, info, _, section, value, size = _SYMBOL.unpack_from(data, place)
        start = names + name
        found.append((data[start : data.index(b"\0", start)].decode(), value, size, info & 15, section))
    return found


def undefined_symbols(data: bytes) -> list[str]:
    """What an object file for the host needs from elsewhere, by name."""
    place, count = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    tables = [_SECTION.unpack_from(data, place + i * _SECTION.size) for i in range(count)]
    found = [_symbols(data, tables, part) for part in tables if part[1] == _SYMBOL_TABLE]
    return [name for table in found for name, _, _, _, section in table if name and not section]


def _relocate(memory: mmap.mmap, base: int, data: bytes, part: Any, symbols: list[Any]) -> None:
    """Dynamic relocations, as LLVM's guide to the AMDGPU backend numbers them."""
    for place in range(part[4], part[4] + part[5], _RELOCATION.size):
        offset, info, addend = _RELOCATION.unpack_from(data, place)
        kind = info & 0xFFFFFFFF
        if kind == 13:
            value, size = base + addend, 8
        else:
            name, symbol, _, _, section = symbols[info >> 32]
            if not section:
                raise ImageError(f"the symbol {name!r} is not defined")
            value, here = base + symbol + addend, base + offset
            relative = value - here
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
            if kind not in forms:
                raise ImageError(f"a relocation of type {kind}")
            value, size = forms[kind]
        memory[offset : offset + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def _metadata(data: bytes) -> dict[str, Any]:
    import msgpack

    for owner, kind, content in read_elf(data).notes():
        if owner.rstrip(b"\0") == b"AMDGPU" and kind == _NOTE_TYPE:
            found: dict[str, Any] = msgpack.unpackb(content)
            return found
    raise ImageError("a code object without metadata")


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
