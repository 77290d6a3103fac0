"""The text of a device array: its contents as NumPy writes them. Of a large one only the edges are copied."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from hip_runtime.copying import HostArray

if TYPE_CHECKING:
    from hip_runtime.array import DeviceArray

CLASS = "DeviceArray("


def describe(array: DeviceArray) -> str:
    """*array* without its contents, for messages."""
    return f"<DeviceArray {array.shape} {array.dtype} on {array.device!r}>"


def represent(array: DeviceArray) -> str:
    """``repr`` of *array*; without its contents if these cannot be read now, for example while its stream is
    captured."""
    try:
        text = _contents(array, ", ", CLASS)
    except Exception as error:  # a repr that raises would hide what the user looks at in a debugger
        return f"{describe(array).removesuffix('>')}, not read: {type(error).__name__}>"
    shape = "" if array.size and not _is_large(array) else f", shape={array.shape}"
    return f"{CLASS}{text}{shape}, dtype={array.dtype}, device={array.device.id})"


def write(array: DeviceArray) -> str:
    """``str`` of *array*."""
    try:
        return _contents(array, " ", "") if array.shape else str(array.copy_to_host()[()])
    except Exception:
        return represent(array)


def _is_large(array: DeviceArray) -> bool:
    return array.size > np.get_printoptions()["threshold"]


def _contents(array: DeviceArray, separator: str, prefix: str) -> str:
    if not _is_large(array):
        return np.array2string(array.copy_to_host(), separator=separator, prefix=prefix)
    # One more than NumPy shows along an axis, so that it writes dots there.
    return np.array2string(
        _edges(array, int(np.get_printoptions()["edgeitems"])), separator=separator, prefix=prefix, threshold=0
    )


def _edges(array: DeviceArray, shown: int) -> HostArray:
    """*array* without what lies between the first and last *shown* elements along each axis, but for one of them."""
    most = 2 * shown + 1
    parts: list[list[tuple[slice, slice]]] = []  # for each axis: source and target ranges
    for extent in array.shape:
        if extent <= most:
            parts.append([(slice(0, extent), slice(0, extent))])
        else:
            last = slice(extent - shown, extent), slice(most - shown, most)
            parts.append([(slice(0, shown), slice(0, shown)), last])
    host: HostArray = np.zeros([min(extent, most) for extent in array.shape], array.dtype)
    for corner in itertools.product(*parts):
        source, target = zip(*corner, strict=True)
        host[target] = array[source].copy_to_host()
    return host
