"""What is in an object file: the symbols that it needs from elsewhere, where functions lie, sections by name.

Layouts of the ELF header, section header, symbol and relocation are those of the System V ABI, "Object Files" (64-bit,
little-endian).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from hip_runtime.errors import ModuleLoadError, SymbolError

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_SHT_SYMTAB = 2
_SHT_RELA = 4
_SHN_UNDEF = 0


def undefined_symbols(image: bytes) -> list[str]:
    """Names that the relocatable 64-bit ELF object *image* refers to and does not define, in the order of its table."""
    return [name for name, section, _ in _symbols(image) if name and section == _SHN_UNDEF]


def find_in_section(image: bytes, symbol: str) -> tuple[int, int]:
    """Where *symbol*, which *image* defines, begins in its section, and how many bytes that section has."""
    section, offset = find_symbol(image, symbol)
    return offset, _sections(image)[section][5]


def find_symbol(image: bytes, symbol: str) -> tuple[int, int]:
    """The number of the section that *symbol*, which *image* defines, is in, and where it begins there."""
    for name, section, offset in _symbols(image):
        if name == symbol and section != _SHN_UNDEF:
            return section, offset
    raise SymbolError(f"the object file does not define {symbol!r}")


def section_data(image: bytes, number: int) -> bytes:
    """What is in section *number* of *image*."""
    _, _, _, _, offset, size, *_ = _sections(image)[number]
    return image[offset : offset + size]


def find_section(image: bytes, name: str) -> int | None:
    """The number of the section *name* of *image*."""
    sections = _sections(image)
    (names,) = struct.unpack_from("<H", image, 62)
    strings = sections[names][4]
    wanted = name.encode() + b"\0"
    for number, section in enumerate(sections):
        if image.startswith(wanted, strings + section[0]):
            return number
    return None


def relocations(image: bytes, number: int) -> dict[int, tuple[int, int]]:
    """What the places in section *number* that are to be relocated refer to: section, and offset in it."""
    symbols = [(section, value) for _, section, value in _symbols(image)]
    found = {}
    for _, kind, _, _, offset, size, _, target, _, _ in _sections(image):
        if kind == _SHT_RELA and target == number:
            for place, information, addend in _RELOCATION.iter_unpack(image[offset : offset + size]):
                section, value = symbols[information >> 32]
                found[place] = section, value + addend
    return found


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
