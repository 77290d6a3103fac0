"""The HIP runtime library under the name that hip-python looks for.

hip-python opens ``libamdhip64.so``. That is a link of the packages for developers; without them there is but
``libamdhip64.so.6`` or ``.so.7``. The dynamic loader takes a library that is there for the one that is asked for if its
SONAME, which is in the file, is that name. So a library of that SONAME is loaded which holds nothing, and needs the
real one: symbols that are looked for in it are found there.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path
from typing import Any

from hip_devicelib.errors import NotFoundError
from hip_devicelib.rocm import find_rocm

NAME = "libamdhip64.so"
"""What hip-python of all releases hands to ``dlopen``, unless it knows of a folder that holds the file."""

_FAILED = "failed to dlopen"
"""What hip-python says then."""

_HEADER, _SEGMENT, _DYNAMIC, _SYMBOL, _HASH = map(
    struct.Struct, ("<16sHHIQQQIHHHHHH", "<IIQQQQQQ", "<qQ", "<IBBHQQ", "<4I")
)
_IDENT_BYTES = 20
"""Of an ELF file: what kind of file it is, and for which machine."""


def start(hip: Any) -> Any:
    """What ``hipInit`` answers, the first function of the module *hip* to be called, for which it loads the library."""
    try:
        return hip.hipInit(0)
    except RuntimeError as error:
        library = _find() if _FAILED in str(error) else None
        if library is None:
            raise
        try:
            provide(library)
        except OSError as reason:
            raise RuntimeError(f"{_FAILED} {library}: {reason}") from None
        return hip.hipInit(0)


def _find() -> Path | None:
    """The HIP runtime library of this machine's ROCm, whatever version its name has."""
    try:
        return find_rocm().files.get("hip")
    except NotFoundError:
        return None


def provide(library: Path) -> None:
    """Make later attempts to open `NAME` find *library*. Raises `OSError` if it cannot be loaded."""
    path = library.resolve()
    ctypes.CDLL(str(path))
    with library.open("rb") as found:
        ident = found.read(_IDENT_BYTES)
    # The file is one of memory: no folder need be writable, or allow code. It stays open, since the loader knows the
    # library by this number.
    file = os.memfd_create(NAME)
    os.write(file, build_alias(NAME.encode(), os.fsencode(path), ident))
    ctypes.CDLL(f"/proc/self/fd/{file}")


def build_alias(name: bytes, needed: bytes, ident: bytes) -> bytes:
    """A shared library (ELF, 64 bits) with the SONAME *name* that needs *needed* and has nothing of its own.

    *ident* are the first bytes of one for the same machine."""
    strings = b"\0" + name + b"\0" + needed + b"\0"
    start = _HEADER.size + 3 * _SEGMENT.size
    symbols = start + 8 * _DYNAMIC.size
    hashes = symbols + _SYMBOL.size
    text = hashes + _HASH.size
    dynamic = (
        (1, len(name) + 2),  # DT_NEEDED
        (14, 1),  # DT_SONAME
        (4, hashes),  # DT_HASH
        (5, text),  # DT_STRTAB
        (10, len(strings)),  # DT_STRSZ
        (6, symbols),  # DT_SYMTAB
        (11, _SYMBOL.size),  # DT_SYMENT
        (0, 0),
    )
    size = text + len(strings)
    segments = (
        _segment(1, 0, size, 4096),  # PT_LOAD; writable, as some loaders note addresses in it
        _segment(2, start, len(dynamic) * _DYNAMIC.size, 8),  # PT_DYNAMIC
        _segment(0x6474E551, 0, 0, 16),  # PT_GNU_STACK, without which stacks are made executable
    )
    kind, machine = struct.unpack_from("<HH", ident, 16)
    header = _HEADER.pack(
        ident[:16], kind, machine, 1, 0, _HEADER.size, 0, 0, _HEADER.size, _SEGMENT.size, len(segments), 0, 0, 0
    )
    entries = (_DYNAMIC.pack(*entry) for entry in dynamic)
    return b"".join((header, *segments, *entries, bytes(_SYMBOL.size), _HASH.pack(1, 1, 0, 0), strings))


def _segment(kind: int, offset: int, size: int, alignment: int) -> bytes:
    return _SEGMENT.pack(kind, 6, offset, offset, offset, size, size, alignment)
