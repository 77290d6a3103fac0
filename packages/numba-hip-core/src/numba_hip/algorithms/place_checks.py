"""Whether indices are places of an array, before a kernel uses them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from hip_runtime import DeviceArray
from hip_runtime.host_view import view_memory
from numba_hip.algorithms.operands import Operands
from numba_hip.algorithms.reductions import transform_reduce
from numba_hip.errors import AlgorithmError

MOST_AT_ONCE = 1 << 14
"""So many indices NumPy looks at in less time than a launch takes."""


def check_places(operands: Operands, indices: Any, read: Any, count: int, limit: int) -> None:
    """Raise `AlgorithmError` for the least or the largest of the first *count* of *indices*, which *read* returns, if
    it is not below *limit*, or negative."""
    kind = operands.type_of(read, "indices")
    if not isinstance(kind, types.Integer):
        raise AlgorithmError(f"indices has values of type {kind}; pass integers")
    host = _on_host(operands, indices, count)
    if host is not None:
        least, most = int(host.min()), int(host.max())
    else:
        least, most = transform_reduce(indices, _pair, _extremes, count=count, stream=operands.stream)
    if least < 0 or most >= limit:
        wrong = least if least < 0 else most
        raise AlgorithmError(f"indices has {wrong}; there are places 0 to {limit - 1}")


def _on_host(operands: Operands, indices: Any, count: int) -> np.ndarray[Any, Any] | None:
    """The first *count* of *indices*, if they are few and in memory of the host."""
    if count > MOST_AT_ONCE:
        return None
    if isinstance(indices, (np.ndarray, list, range)):
        return np.asarray(indices)[:count]
    if not isinstance(indices, DeviceArray) or not indices.device.is_cpu:
        return None
    operands.wait()
    return view_memory(indices.layout, indices.dtype, indices.buffer, indices.address)[:count]


def _pair(index: Any) -> Any:
    return index, index


def _extremes(a: Any, b: Any) -> Any:
    return min(a[0], b[0]), max(a[1], b[1])
