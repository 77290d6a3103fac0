"""Whether offsets are those of segments, before a kernel uses them."""

from __future__ import annotations

from typing import Any

from numba.core import types

from numba_hip.algorithms.argument_checks import check_ascending
from numba_hip.algorithms.operands import Operands
from numba_hip.errors import AlgorithmError


def check_offsets(operands: Operands, offsets: Any, read: Any) -> None:
    """Raise `AlgorithmError` for *offsets* of segments, which *read* returns, that are no integers, or that are on the
    host and do not ascend."""
    kind = operands.type_of(read, "offsets")
    if not isinstance(kind, types.Integer):
        raise AlgorithmError(f"offsets has values of type {kind}; pass integers")
    check_ascending(offsets, "offsets", "where the segments begin")
