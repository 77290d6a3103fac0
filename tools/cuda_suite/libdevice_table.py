"""Stands for ``numba.cuda.libdevicefuncs``, a private table of numba-cuda: without entries.

A test is generated for each entry, which compiles a call to PTX, NVIDIA's assembly language.
"""

from __future__ import annotations

from typing import Any

functions: dict[str, Any] = {}


def create_signature(return_type: Any, arguments: Any) -> Any:
    """The entries of the table, of which there are none."""
    raise LookupError("the table of libdevice's functions has no entries here")
