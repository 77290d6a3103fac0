"""Stands for ``numba.cuda.libdevicefuncs``, a private table of numba-cuda: without entries.

For each of them a test is generated that compiles a call to PTX, NVIDIA's assembly language.
"""

from __future__ import annotations

from typing import Any

functions: dict[str, Any] = {}


def create_signature(return_type: Any, arguments: Any) -> Any:
    """Asked for the entries of the table, of which there are none."""
    raise LookupError("the table of libdevice's functions has no entries here")
