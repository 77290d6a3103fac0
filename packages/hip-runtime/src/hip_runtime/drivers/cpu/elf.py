"""The symbols that an object file needs from elsewhere, and where a function lies in its section.

Layouts of the ELF header, section header and symbol are those of the System V ABI, "Object Files" (64-bit, little-
endian).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from hip_runtime.errors import ModuleLoadError, SymbolError

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SHT_SYMTAB = 2
_SHN_UNDEF = 0


def undefined_symbols(image: bytes) -> list[str]:
    """Names that the relocatable 64-bit ELF object *image* refers to and does not define, in the order of its table."""
    return [name for name, section, _ in _symbols(image) if name and section == _SHN_UNDEF]


def find_in_section(image: bytes, symbol: str) -> tuple[int, int]:
    """Where *symbol*, which *image* defines, begins in its section, and how many bytes that section has."""
    for name, section, offset in _symbols(image):
        if name == symbol and section != _SHN_UNDEF:
            return offset, _sections(image)[section][5]
    raise SymbolError(f"the object file does not define {symbol!r}")


def _sections(image: bytes) -> list[tuple[int, ...]]:
    if image[:6] != b"\x7fELF\x02\x01":
        raise ModuleLoadError("the CPU device needs a system with 64-bit little-endian ELF objects, such as Linux")
    (section_table,) = struct.unpack_from("<Q", image, 40)
    entry_size, count = struct.unpack_from("<HH", image, 58)
    return [_SECTION.unpack_from(image, section_table + number * entry_size) for number in range(count)]


def _symbols(image: bytes) -> Iterator[tuple[str, int, int]]:
    """Name, number of the section and offset in it of each symbol."""
    sections = _sections(image)
    for _, kind, _, _, offset, size, link, _, _, _ in sections:
        if kind != _SHT_SYMTAB:
            continue
        strings = sections[link][4]
        for name, _, _, section, value, _ in _SYMBOL.iter_unpack(image[offset : offset + size]):
            yield image[strings + name : image.index(b"\0", strings + name)].decode(), section, value
