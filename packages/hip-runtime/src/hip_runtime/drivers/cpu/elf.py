"""The symbols that an object file needs from elsewhere.

Layouts of the ELF header, section header and symbol are those of the System V ABI, "Object Files" (64-bit, little-
endian).
"""

from __future__ import annotations

import struct

from hip_runtime.errors import ModuleLoadError

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SHT_SYMTAB = 2
_SHN_UNDEF = 0


def undefined_symbols(image: bytes) -> list[str]:
    """Names that the relocatable 64-bit ELF object *image* refers to and does not define, in the order of its table."""
    if image[:6] != b"\x7fELF\x02\x01":
        raise ModuleLoadError("the CPU device needs a system with 64-bit little-endian ELF objects, such as Linux")
    (section_table,) = struct.unpack_from("<Q", image, 40)
    entry_size, count = struct.unpack_from("<HH", image, 58)
    sections = [_SECTION.unpack_from(image, section_table + number * entry_size) for number in range(count)]
    names: list[str] = []
    for _, kind, _, _, offset, size, link, _, _, _ in sections:
        if kind != _SHT_SYMTAB:
            continue
        strings = sections[link][4]
        for name, _, _, section, _, _ in _SYMBOL.iter_unpack(image[offset : offset + size]):
            if name and section == _SHN_UNDEF:
                names.append(image[strings + name : image.index(b"\0", strings + name)].decode())
    return names
