"""The exceptions that kernels can raise: device code returns a number, and the host raises the exception with that
number."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fault:
    """An exception that a kernel can raise, as the host raises it."""

    exception: type[BaseException]
    arguments: tuple[Any, ...]
    location: str | None

    @property
    def code(self) -> int:
        """A positive 31-bit number that stands for this exception, the same in every process."""
        kind = f"{self.exception.__module__}.{self.exception.__qualname__}"
        return (zlib.crc32(repr((kind, self.arguments, self.location)).encode()) & 0x7FFFFFFE) + 1
