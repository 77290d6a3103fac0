"""The text of HIP's device header, which HIPRTC contains.

``libhiprtc-builtins.so`` exports the whole preprocessed header as the symbol ``__hipRTC_header`` and its length in
bytes as ``__hipRTC_header_size``. The library is read and not loaded: no code runs, and it need not be loadable here.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from hip_devicelib.elf import read_elf
from hip_devicelib.errors import CodeObjectError, HeaderError
from hip_devicelib.rocm import Rocm

_TEXT, _SIZE = "__hipRTC_header", "__hipRTC_header_size"


@dataclass(frozen=True, slots=True)
class Header:
    """HIP's device header: its text, and the version of its ROCm (``6.4.43484``) if that is known."""

    text: str = field(repr=False)
    version: str | None

    @property
    def digest(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_header(rocm: Rocm) -> Header:
    """The header of *rocm*.

    Raises `NotFoundError` if it has no builtins library, and `HeaderError` if that library contains no header.
    """
    path = rocm.require("hiprtc-builtins")
    try:
        elf = read_elf(path.read_bytes(), machine=None)
        size = int.from_bytes(elf.symbol_bytes(_SIZE, 4, sized=False), "little")
        data = elf.symbol_bytes(_TEXT, size, sized=False)
    except OSError as error:
        raise HeaderError(f"cannot read {path}: {error.strerror}") from None
    except CodeObjectError as error:
        raise HeaderError(f"{path} holds no HIP header: {error}") from None
    try:
        # A compiler would not see anything after a zero byte.
        text = data.partition(b"\0")[0].decode()
    except UnicodeDecodeError as error:
        raise HeaderError(f"the header in {path} is not text: {error}") from None
    return Header(text, rocm.version("hiprtc-builtins"))
