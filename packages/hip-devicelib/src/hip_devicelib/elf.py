"""A reader for the little of ELF that code objects need: notes, symbols, and the bytes that symbols stand for.

64-bit, little-endian files only (System V ABI, chapters 4 and 5). Nothing in the file is believed: every offset and
size is checked against the bytes that there are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from hip_devicelib.errors import CodeObjectError

EM_AMDGPU = 224
_ET_REL = 1
_SHT_SYMTAB, _SHT_NOTE, _SHT_NOBITS, _SHT_DYNSYM = 2, 7, 8, 11
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NOTE = struct.Struct("<III")
_IDENT = b"\x7fELF\x02\x01"


@dataclass(frozen=True, slots=True)
class _Section:
    kind: int
    address: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True)
class ElfFile:
    """An ELF file whose header and section table have been checked. ``kind`` is the header's ``e_type``."""

    data: bytes
    kind: int
    sections: tuple[_Section, ...]

    @property
    def is_linked(self) -> bool:
        """Whether a runtime can load the file; else it is a relocatable object."""
        return self.kind != _ET_REL

    def notes(self) -> Iterator[tuple[bytes, int, bytes]]:
        """Owner, type and description of every note. Raises `CodeObjectError` where one does not fit."""
        for section in self.sections:
            if section.kind == _SHT_NOTE:
                yield from _split_notes(self._content(section))

    def symbol_bytes(self, name: str, size: int, *, sized: bool = True) -> bytes:
        """The *size* bytes that the symbol called *name* stands for. Raises `CodeObjectError` if it has fewer.

        The symbols of an assembler often have no size: with *sized* false, only the end of the section is a limit.
        """
        for section in self.sections:
            if section.kind in (_SHT_SYMTAB, _SHT_DYNSYM):
                found = self._find_symbol(section, name.encode())
                if found is not None:
                    return self._symbol_content(name, *found, size, sized)
        raise CodeObjectError(f"this ELF file has no symbol {name!r}")

    def _find_symbol(self, table: _Section, name: bytes) -> tuple[int, int, int] | None:
        names = self._content(self._section(table.link))
        content = self._content(table)
        if len(content) % _SYMBOL.size:
            raise CodeObjectError(f"damaged ELF file: a symbol table of {len(content)} bytes")
        for start, _, _, section, value, size in _SYMBOL.iter_unpack(content):
            if names[start : start + len(name) + 1] == name + b"\0":
                return section, value, size
        return None

    def _symbol_content(self, name: str, index: int, value: int, size: int, wanted: int, sized: bool) -> bytes:
        section = self._section(index)
        # In a relocatable file a symbol's value counts from its section, in a linked one it is an address.
        start = value if self.kind == _ET_REL else value - section.address
        content = self._content(section)
        if (sized and size < wanted) or not 0 <= start <= len(content) - wanted:
            raise CodeObjectError(f"damaged ELF file: symbol {name!r} lies outside of its section, or is too short")
        return content[start : start + wanted]

    def _section(self, index: int) -> _Section:
        if not 0 < index < len(self.sections):
            raise CodeObjectError(f"damaged ELF file: there is no section {index}")
        return self.sections[index]

    def _content(self, section: _Section) -> bytes:
        if section.kind == _SHT_NOBITS or section.offset + section.size > len(self.data):
            raise CodeObjectError("damaged ELF file: a section lies outside of the file")
        return self.data[section.offset : section.offset + section.size]


def read_elf(data: bytes, *, machine: int | None = EM_AMDGPU) -> ElfFile:
    """Read the header and the section table of *data*, a file for *machine* (None: for any).

    Raises `CodeObjectError` if it is something else.
    """
    if not isinstance(data, bytes):
        raise CodeObjectError(f"an ELF file is bytes, not {type(data).__name__}")
    if len(data) < _HEADER.size or not data.startswith(_IDENT):
        raise CodeObjectError(f"not a 64-bit little-endian ELF file ({len(data)} bytes, starting {data[:6]!r})")
    _, kind, found, _, _, _, start, _, _, _, _, entry_size, count, _ = _HEADER.unpack_from(data)
    if machine not in (None, found):
        raise CodeObjectError(f"this ELF file is for machine {found}, not for {machine} (AMD GPUs are {EM_AMDGPU})")
    if entry_size != _SECTION.size or start + count * entry_size > len(data):
        raise CodeObjectError("damaged ELF file: the section table lies outside of the file")
    sections = []
    for number in range(count):
        _, section_kind, _, address, offset, size, link, _, _, _ = _SECTION.unpack_from(
            data, start + number * entry_size
        )
        sections.append(_Section(section_kind, address, offset, size, link))
    return ElfFile(data, kind, tuple(sections))


def _split_notes(content: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    position = 0
    while position < len(content):
        if position + _NOTE.size > len(content):
            raise CodeObjectError("damaged ELF file: half a note")
        owner_size, size, kind = _NOTE.unpack_from(content, position)
        start = position + _NOTE.size
        description = start + _padded(owner_size)
        position = description + _padded(size)
        if description + size > len(content):
            raise CodeObjectError("damaged ELF file: a note is longer than its section")
        yield content[start : start + owner_size].rstrip(b"\0"), kind, content[description : description + size]


def _padded(size: int) -> int:
    return -(-size // 4) * 4
