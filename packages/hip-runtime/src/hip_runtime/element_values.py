"""Values of the host as elements of a device array: what is assigned, and what is read of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hip_runtime import copying
from hip_runtime.copying import HostArray
from hip_runtime.errors import ArrayError, CopyError
from hip_runtime.foreign_arrays import host_array
from hip_runtime.layout import Shape

if TYPE_CHECKING:
    from hip_runtime.array import DeviceArray

REAL = set("biuf")
"""Kinds of numbers that NumPy stores in one another's arrays: of floats integers lose the fraction."""


def fill_record(record: np.void, contents: HostArray) -> Any:
    """Write *contents*, an array without axes, to the fields of *record*, which is returned."""
    copying.check_fit(record, contents)
    for name in contents.dtype.names or ():  # a record need not share its memory with any array
        record[name] = contents[name]
    return record


def host_value(value: Any, target: DeviceArray) -> HostArray:
    """*value* with the shape and the type of *target*, in which it is stored. Raises `CopyError` if it does not fit."""
    try:
        source = host_array(value)
        while source.ndim > target.ndim and source.shape[0] == 1:  # as NumPy does, too
            source = source[0]
        _check_broadcast(source.shape, target.shape)
        if source.dtype != target.dtype:
            plain = not isinstance(value, np.ndarray) or {source.dtype.kind, target.dtype.kind} <= REAL
            source = source.astype(target.dtype, casting="unsafe" if plain else "same_kind")
        return np.broadcast_to(source, target.shape)
    except ArrayError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise CopyError(
            f"cannot store {value!r} in an array of shape {target.shape} and type {target.dtype}: {error}"
        ) from None


def _check_broadcast(source: Shape, target: Shape) -> None:
    """Raises `CopyError`, with NumPy's message, unless shape *source* can be broadcast to *target*."""
    if not source:
        return
    try:
        fits = np.broadcast_shapes(source, target) == target
    except ValueError:
        fits = False
    if not fits:
        shown = [str(shape).replace(" ", "") for shape in (source, target)]
        raise CopyError(f"could not broadcast input array from shape {shown[0]} into shape {shown[1]}")
