"""Which line of the source each part of the machine code in an object file comes from.

The layout of ``.debug_line`` is that of "DWARF Debugging Information Format", version 4, section 6.2.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from hip_devicelib.elf import ElfFile
from hip_runtime.drivers.cpu.object_code.object_file import read_object

_SECTION = ".debug_line"
_HEADER = struct.Struct("<IHIBBBbBB")
_VERSION = 4
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2


class Row(NamedTuple):
    """From ``start`` on, an offset in a section of code, it comes from ``line`` of ``file``; from no line where that is
    0, and from -1 on there is no more."""

    start: int
    file: str
    line: int


class LineTable:
    """The lines of the section that the function *symbol* is in, in the object file *image*."""

    def __init__(self, image: bytes, symbol: str) -> None:
        elf = read_object(image)
        function = elf.symbol(symbol)
        self._section, self.start = function.section, function.value
        """Where the function begins in its section."""
        rows = [row for program in _programs(elf) for row in _run(program, self._section)]
        self._rows = sorted(rows, key=lambda row: (row.start, row.line >= 0))
        self._starts = [row.start for row in self._rows]

    def __bool__(self) -> bool:
        return bool(self._rows)

    def find(self, offset: int) -> tuple[str, int, bool] | None:
        """File and line of what stands at *offset* in the section, and whether it is that very line: code that belongs
        to no line, as much of what LLVM moves, is near the one before it, or behind it."""
        at = bisect_right(self._starts, offset) - 1
        if at < 0 or self._rows[at].line < 0:
            return None
        if self._rows[at].line:
            return self._rows[at].file, self._rows[at].line, True
        for numbers in (range(at, -1, -1), range(at, len(self._rows))):
            for number in numbers:
                row = self._rows[number]
                if row.line < 0:
                    break
                if row.line:
                    return row.file, row.line, False
        return None


class _Program(NamedTuple):
    """One line program: where it is among all of them, and what its header says."""

    data: bytes
    first: int
    end: int
    files: list[str]
    step: int
    base: int
    span: int
    lengths: bytes
    """How many operands each standard opcode has, from number 1 on."""
    addresses: dict[int, tuple[int, int]]
    """Section and offset of what is relocated, by its place."""


def _programs(elf: ElfFile) -> Iterator[_Program]:
    section = elf.find_section(_SECTION)
    if section is None:
        return
    data, addresses = elf.section_bytes(section), elf.relocations(section)
    place = 0
    while place < len(data):
        length, version, header, step, _, _, base, span, opcodes = _HEADER.unpack_from(data, place)
        end = place + 4 + length
        if version == _VERSION:
            first = place + _HEADER.size + opcodes - 1
            lengths = data[first - opcodes + 1 : first]
            yield _Program(
                data, place + 10 + header, end, _read_files(data, first), step, base, span, lengths, addresses
            )
        place = end


def _read_files(data: bytes, place: int) -> list[str]:
    """The names of the files, from number 1 on, with their directories."""
    folders = [""]
    while data[place]:
        folder, place = _text(data, place)
        folders.append(folder)
    place += 1
    files = [""]
    while data[place]:
        name, place = _text(data, place)
        folder_number, place = _unsigned(data, place)
        for _ in range(2):  # modification time and size
            _, place = _unsigned(data, place)
        files.append(os.path.join(folders[folder_number], name))
    return files


def _run(program: _Program, section: int) -> Iterator[Row]:
    """The rows of *program* for code in *section*."""
    data, place = program.data, program.first
    base = len(program.lengths) + 1
    address, file, line, here = 0, 1, 1, -1
    while place < program.end:
        opcode = data[place]
        place += 1
        if opcode >= base:
            steps, more = divmod(opcode - base, program.span)
            address, line = address + steps * program.step, line + program.base + more
        elif opcode == 0:
            length, place = _unsigned(data, place)
            kind = data[place]
            if kind == _SET_ADDRESS:
                here, address = program.addresses.get(place + 1, (-1, 0))
            place += length
            if kind == _END_SEQUENCE:
                if here == section:
                    yield Row(address, "", -1)
                address, file, line, here = 0, 1, 1, -1
            continue
        elif opcode == _FIXED_ADVANCE_PC:
            address += int.from_bytes(data[place : place + 2], "little")
            place += 2
            continue
        elif opcode == _CONST_ADD_PC:
            address += (255 - base) // program.span * program.step
            continue
        elif opcode != _COPY:
            number = 0
            for _ in range(program.lengths[opcode - 1]):
                number, place = (_signed if opcode == _ADVANCE_LINE else _unsigned)(data, place)
            if opcode == _ADVANCE_PC:
                address += number * program.step
            elif opcode == _ADVANCE_LINE:
                line += number
            elif opcode == _SET_FILE:
                file = number
            continue
        if here == section:
            yield Row(address, program.files[file] if file < len(program.files) else "", line)


def _text(data: bytes, place: int) -> tuple[str, int]:
    end = data.index(b"\0", place)
    return data[place:end].decode(errors="replace"), end + 1


def _unsigned(data: bytes, place: int) -> tuple[int, int]:
    """A number in LEB128, and where it ends."""
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def _signed(data: bytes, place: int) -> tuple[int, int]:
    value, end = _unsigned(data, place)
    bits = 7 * (end - place)
    return value - (1 << bits if data[end - 1] & 0x40 else 0), end
