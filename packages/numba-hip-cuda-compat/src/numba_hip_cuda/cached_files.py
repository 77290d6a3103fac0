"""``cached_file_read`` of ``numba.cuda.utils``."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def cached_file_read(filepath: str | Path, how: str = "r") -> str | bytes:
    """The contents of the file *filepath*, opened as *how* says; read once, whatever happens to the file later."""
    with Path(filepath).open(how) as file:
        contents: str | bytes = file.read()
    return contents
