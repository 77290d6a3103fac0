"""The reader of ELF files, on objects that LLVM makes and on what damage makes of them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hip_devicelib as hip
from hip_devicelib import CodeObjectError
from hip_devicelib.elf import ElfFile, read_elf

SOURCE = """
@table = addrspace(1) constant [3 x i32] [i32 5, i32 6, i32 7]
@place = addrspace(1) constant ptr @second
declare void @first(i32)
declare void @second(i32)
define amdgpu_kernel void @kernel(i32 %x) {
  call void @second(i32 %x)
  call void @first(i32 %x)
  ret void
}
"""
IMAGE = hip.object_code(hip.optimise(SOURCE, "gfx942", keep=["table", "place"]), "gfx942")


LINKED_SOURCE = """
@table = addrspace(1) constant [3 x i32] [i32 5, i32 6, i32 7]
@place = addrspace(1) global ptr addrspace(1) @table
@room = addrspace(1) global [100 x i64] zeroinitializer
define amdgpu_kernel void @kernel(i32 %x) {
  %p = load volatile ptr addrspace(1), ptr addrspace(1) @place
  store volatile i32 %x, ptr addrspace(1) %p
  ret void
}
"""


@pytest.fixture
def elf() -> ElfFile:
    return read_elf(IMAGE)


@pytest.fixture(scope="module")
def linked() -> bytes:
    bitcode = hip.optimise(LINKED_SOURCE, "gfx942", keep=["table", "place", "room"])
    return hip.link(hip.object_code(bitcode, "gfx942")).image


def test_symbols(elf: ElfFile) -> None:
    assert not elf.is_linked
    kernel = elf.symbol("kernel")
    assert kernel.section == elf.find_section(".text")
    assert kernel.value + kernel.size <= elf.sections[kernel.section].size
    assert sorted(elf.undefined_symbols()) == ["first", "second"]
    for missing in ("first", "kerne", "kernel2", ""):
        with pytest.raises(CodeObjectError, match=f"does not define {missing!r}"):
            elf.symbol(missing)


def test_bytes(elf: ElfFile) -> None:
    numbers = b"".join(number.to_bytes(4, "little") for number in (5, 6, 7))
    assert elf.symbol_bytes("table", 12) == numbers
    symbol = elf.symbol("table")
    assert elf.section_bytes(symbol.section)[symbol.value :].startswith(numbers)
    with pytest.raises(CodeObjectError, match="'table' lies outside of its section, or is too short"):
        elf.symbol_bytes("table", 13)
    with pytest.raises(CodeObjectError, match="there is no section 1000"):
        elf.section_bytes(1000)


def test_sections(elf: ElfFile) -> None:
    for missing in (".tex", ".text2", ""):
        number = elf.find_section(missing)
        assert number is None, missing


def test_relocations(elf: ElfFile) -> None:
    text = elf.find_section(".text")
    assert text is not None
    targets = elf.relocations(text)
    assert len(targets) == 4  # the two halves of each address
    assert {section for section, _ in targets.values()} == {0}, "neither function is in this file"
    assert all(0 < place < elf.sections[text].size for place in targets)
    symbols = elf.find_section(".symtab")
    assert symbols is not None
    assert elf.relocations(symbols) == {}


def test_what_a_loader_puts_into_memory(linked: bytes) -> None:
    elf = read_elf(linked)
    assert elf.is_linked
    assert elf.flags & 0xFF == 0x4C, "the number of gfx942"
    segments = elf.segments()
    memory = bytearray(max(segment.address + segment.size for segment in segments))
    for segment in segments:
        assert len(segment.content) <= segment.size
        memory[segment.address : segment.address + len(segment.content)] = segment.content
    table, room = elf.symbol("table"), elf.symbol("room")
    assert memory[table.value : table.value + 12] == elf.symbol_bytes("table", 12)
    assert room.value + room.size <= len(memory)
    assert not any(memory[room.value : room.value + room.size])
    found = {symbol.name: symbol for symbol in elf.defined_symbols()}
    assert found["table"] == table
    assert (found["kernel"].kind, found["kernel.kd"].kind, found["kernel.kd"].size) == (2, 1, 64)
    relocations = {relocation.place: relocation for relocation in elf.load_relocations()}
    address = relocations[found["place"].value]
    assert (address.kind, address.symbol, address.addend) == (3, table, 0)


def test_a_relocatable_file_has_nothing_to_load(elf: ElfFile) -> None:
    assert elf.segments() == []
    assert list(elf.load_relocations()) == []


def test_segments_that_lie_outside(linked: bytes) -> None:
    table = int.from_bytes(linked[32:40], "little")
    first = next(number for number in range(linked[56]) if linked[table + 56 * number] == 1)
    held, size = table + 56 * first + 32, table + 56 * first + 40
    for place, bad in ((32, 1 << 40), (54, 57), (held, 1 << 40), (size, 0)):
        width = 2 if place == 54 else 8
        damaged = linked[:place] + bad.to_bytes(width, "little") + linked[place + width :]
        with pytest.raises(CodeObjectError, match="segment"):
            read_elf(damaged).segments()


def test_numbers_that_lead_nowhere(elf: ElfFile) -> None:
    def with_word(section: str, offset: int) -> ElfFile:
        """The file with a number that is too large at *offset* in *section*."""
        place = elf.sections[elf.find_section(section) or 0].offset + offset
        return read_elf(IMAGE[:place] + b"\xff\xff\xff\x7f" + IMAGE[place + 4 :])

    with pytest.raises(CodeObjectError, match=f"there is no symbol {0x7FFFFFFF}"):
        with_word(".rela.text", 12).relocations(elf.find_section(".text") or 0)
    with pytest.raises(CodeObjectError, match="a name lies outside of its section"):
        with_word(".symtab", 0).undefined_symbols()


@given(st.data())
def test_damage_is_an_error_of_its_own(linked: bytes, data: st.DataObject) -> None:
    damaged = bytearray(data.draw(st.sampled_from((IMAGE, linked))))
    table = int.from_bytes(damaged[40:48], "little")
    # The section table is what all else is found by: half of the changes are made there.
    places = st.integers(0, len(damaged) - 1) | st.integers(table, len(damaged) - 1)
    for place in data.draw(st.lists(places, min_size=1, max_size=4)):
        damaged[place] = data.draw(st.integers(0, 255))
    try:
        elf = read_elf(bytes(damaged), machine=None)
    except CodeObjectError:
        return
    for read in (
        elf.undefined_symbols,
        lambda: elf.symbol("kernel"),
        lambda: elf.symbol_bytes("table", 12),
        lambda: elf.find_section(".text"),
        lambda: [elf.relocations(number) for number in range(len(elf.sections))],
        lambda: list(elf.notes()),
        elf.defined_symbols,
        elf.segments,
        lambda: list(elf.load_relocations()),
    ):
        with suppress(CodeObjectError):
            read()
