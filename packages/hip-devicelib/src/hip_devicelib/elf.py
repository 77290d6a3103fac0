"""A reader for the parts of ELF that code objects and object files need: notes, sections, symbols, relocations and
segments.

64-bit, little-endian files only (System V ABI, chapters 4 and 5). The file is not trusted: every offset and size is
checked against its length.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hip_devicelib.errors import CodeObjectError

EM_AMDGPU = 224
_ET_REL = 1
_SHT_SYMTAB, _SHT_RELA, _SHT_NOTE, _SHT_NOBITS, _SHT_DYNSYM = 2, 4, 7, 8, 11
_SHN_UNDEF = 0
_PT_LOAD = 1
_SHF_ALLOC = 2
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_NOTE = struct.Struct("<III")
_IDENT = b"\x7fELF\x02\x01"


@dataclass(frozen=True, slots=True)
class Section:
    """A row of the section table, with the fields of the ABI."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int


@dataclass(frozen=True, slots=True)
class ElfSymbol:
    """A symbol: the number of the section that defines it (0 if none does), its value and its size.

    In a relocatable file ``value`` counts from the start of the section, in a linked one it is an address. ``kind`` is
    the ABI's number: 1 for an object, 2 for a function.
    """

    name: str
    section: int
    value: int
    size: int
    kind: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment that a loader puts at ``address``: bytes of the file, then zeros up to ``size``."""

    address: int
    content: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Relocation:
    """A relocation: a place in memory that a loader fills, the machine's code for how to fill it, and a symbol that it
    may need."""

    place: int
    kind: int
    symbol: ElfSymbol | None
    addend: int


@dataclass(frozen=True)
class ElfFile:
    """An ELF file whose header and section table have been checked. ``kind`` is the header's ``e_type``, ``flags`` are
    specific to the machine.

    Sections are identified by number. All methods that read the file raise `CodeObjectError` if it is damaged.
    """

    data: bytes
    kind: int
    flags: int
    sections: tuple[Section, ...]
    name_table: int
    """The number of the section with the names of the sections."""

    @property
    def is_linked(self) -> bool:
        """Whether a runtime can load the file; otherwise it is a relocatable object."""
        return self.kind != _ET_REL

    def notes(self) -> Iterator[tuple[bytes, int, bytes]]:
        """The owner, type and description of every note. Raises `CodeObjectError` if a note is damaged."""
        for section in self.sections:
            if section.kind == _SHT_NOTE:
                yield from _split_notes(self._content(section))

    def symbol(self, name: str) -> ElfSymbol:
        """The symbol called *name* that the file defines; `CodeObjectError` if there is none."""
        wanted = name.encode() + b"\0"
        for table in self._symbol_tables():
            names = self._content(self._section(table.link))
            for start, kind, section, value, size in self._symbols(table):
                if section != _SHN_UNDEF and names.startswith(wanted, start):
                    return ElfSymbol(name, section, value, size, kind)
        raise CodeObjectError(f"this ELF file does not define {name!r}")

    def undefined_symbols(self) -> list[str]:
        """The undefined names in the file, in the order of its symbol tables."""
        return [
            name
            for table in self._symbol_tables()
            for start, _, section, _, _ in self._symbols(table)
            if section == _SHN_UNDEF and (name := self._name(table.link, start))
        ]

    def defined_symbols(self) -> list[ElfSymbol]:
        """All defined symbols; one that is in two tables is listed twice."""
        return [
            ElfSymbol(self._name(table.link, start), section, value, size, kind)
            for table in self._symbol_tables()
            for start, kind, section, value, size in self._symbols(table)
            if section != _SHN_UNDEF
        ]

    def segments(self) -> list[Segment]:
        """The segments that a loader puts into memory, in the order of the file."""
        start, entry_size, count = *struct.unpack_from("<Q", self.data, 32), *struct.unpack_from("<HH", self.data, 54)
        if count and (entry_size != _SEGMENT.size or start + count * entry_size > len(self.data)):
            raise CodeObjectError("damaged ELF file: the table of segments lies outside of the file")
        found = []
        for number in range(count):
            kind, _, offset, address, _, held, size, _ = _SEGMENT.unpack_from(self.data, start + number * entry_size)
            if kind == _PT_LOAD:
                if offset + held > len(self.data) or held > size:
                    raise CodeObjectError("damaged ELF file: a segment lies outside of the file")
                found.append(Segment(address, self.data[offset : offset + held], size))
        return found

    def load_relocations(self) -> Iterator[Relocation]:
        """The relocations of a linked file; places are addresses."""
        for section in self.sections:
            if section.kind == _SHT_RELA and section.flags & _SHF_ALLOC:
                table = self._section(section.link)
                symbols = list(self._symbols(table))
                for place, information, addend in self._entries(section, _RELOCATION):
                    number = information >> 32
                    symbol = None
                    if number:
                        start, kind, home, value, size = _chosen(symbols, number)
                        symbol = ElfSymbol(self._name(table.link, start), home, value, size, kind)
                    yield Relocation(place, information & 0xFFFFFFFF, symbol, addend)

    def symbol_bytes(self, name: str, size: int, *, sized: bool = True) -> bytes:
        """The *size* bytes of the symbol called *name*. Raises `CodeObjectError` if it has fewer.

        Assemblers often leave symbols without a size: if *sized* is false, only the end of the section is a limit.
        """
        symbol = self.symbol(name)
        section = self._section(symbol.section)
        start = symbol.value - section.address if self.is_linked else symbol.value
        content = self._content(section)
        if (sized and symbol.size < size) or not 0 <= start <= len(content) - size:
            raise CodeObjectError(f"damaged ELF file: symbol {name!r} lies outside of its section, or is too short")
        return content[start : start + size]

    def find_section(self, name: str) -> int | None:
        """The number of the first section called *name*."""
        names = self._content(self._section(self.name_table))
        wanted = name.encode() + b"\0"
        numbers = range(1, len(self.sections))
        return next((number for number in numbers if names.startswith(wanted, self.sections[number].name)), None)

    def section_bytes(self, number: int) -> bytes:
        """The contents of section *number*."""
        return self._content(self._section(number))

    def relocations(self, number: int) -> dict[int, tuple[int, int]]:
        """The targets of the relocations in section *number*: a section, and an offset in it.

        For relocatable files, in which places are offsets from the start of the section.
        """
        found = {}
        for section in self.sections:
            if section.kind == _SHT_RELA and section.info == number:
                symbols = list(self._symbols(self._section(section.link)))
                for place, information, addend in self._entries(section, _RELOCATION):
                    _, _, home, value, _ = _chosen(symbols, information >> 32)
                    found[place] = home, value + addend
        return found

    def _symbol_tables(self) -> Iterator[Section]:
        return (section for section in self.sections if section.kind in (_SHT_SYMTAB, _SHT_DYNSYM))

    def _symbols(self, table: Section) -> Iterator[tuple[int, int, int, int, int]]:
        """The position of the name, the kind, the section, the value and the size of each symbol of *table*."""
        for start, information, _, section, value, size in self._entries(table, _SYMBOL):
            yield start, information & 15, section, value, size

    def _entries(self, table: Section, layout: struct.Struct) -> Iterator[tuple[int, ...]]:
        content = self._content(table)
        if len(content) % layout.size:
            raise CodeObjectError(f"damaged ELF file: a table of {len(content)} bytes, {layout.size} for each entry")
        return layout.iter_unpack(content)

    def _name(self, table: int, start: int) -> str:
        """The text that begins at *start* in section *table*."""
        names = self._content(self._section(table))
        end = names.find(b"\0", start)
        if end < 0:
            raise CodeObjectError("damaged ELF file: a name lies outside of its section")
        return names[start:end].decode(errors="replace")

    def _section(self, index: int) -> Section:
        if not 0 < index < len(self.sections):
            raise CodeObjectError(f"damaged ELF file: there is no section {index}")
        return self.sections[index]

    def _content(self, section: Section) -> bytes:
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
    _, kind, found, _, _, _, start, flags, _, _, _, entry_size, count, names = _HEADER.unpack_from(data)
    if machine not in (None, found):
        raise CodeObjectError(f"this ELF file is for machine {found}, not for {machine} (AMD GPUs are {EM_AMDGPU})")
    if entry_size != _SECTION.size or start + count * entry_size > len(data):
        raise CodeObjectError("damaged ELF file: the section table lies outside of the file")
    sections = []
    for number in range(count):
        fields = _SECTION.unpack_from(data, start + number * entry_size)
        sections.append(Section(*fields[:8]))
    return ElfFile(data, kind, flags, tuple(sections), names)


def _chosen(symbols: Sequence[tuple[int, int, int, int, int]], number: int) -> tuple[int, int, int, int, int]:
    if number >= len(symbols):
        raise CodeObjectError(f"damaged ELF file: there is no symbol {number}")
    return symbols[number]


def _split_notes(content: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    position = 0
    while position < len(content):
        if position + _NOTE.size > len(content):
            raise CodeObjectError("damaged ELF file: a note is cut off")
        owner_size, size, kind = _NOTE.unpack_from(content, position)
        start = position + _NOTE.size
        description = start + _padded(owner_size)
        position = description + _padded(size)
        if description + size > len(content):
            raise CodeObjectError("damaged ELF file: a note is longer than its section")
        yield content[start : start + owner_size].rstrip(b"\0"), kind, content[description : description + size]


def _padded(size: int) -> int:
    return -(-size // 4) * 4
