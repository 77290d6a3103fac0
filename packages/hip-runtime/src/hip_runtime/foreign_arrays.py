"""Checks of other libraries' array descriptions before they are used.

Everything here raises `ArrayError` with the field and its value, whatever the value is: even one that cannot be
compared, converted or printed.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from hip_runtime.errors import ArrayError, MaskedArrayError
from hip_runtime.layout import ADDRESSES, Layout, check_numbers

MAX_NDIM = 32 if np.__version__.startswith("1.") else 64
"""Axes of an array at most: as many as NumPy has, which the contents are copied to."""

_SHOWN = 200  # characters of a value in a message


def shown(value: object) -> str:
    """*value* for a message: its ``repr``, shortened, or its type if it has no usable one."""
    try:
        text = repr(value)
    except Exception:  # of a foreign class, or an integer of more digits than Python prints
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def attribute(obj: object, name: str) -> Any:
    """Attribute *name* of *obj*, or ``None`` if it has none. Raises `ArrayError` if reading it raises."""
    try:
        return getattr(obj, name, None)
    except Exception as error:
        raise ArrayError(
            f"{name} of an object of type {type(obj).__name__} raises {type(error).__name__}: {shown(error)}"
        ) from error


def whole_number(value: object, field: str) -> int:
    """*value* as an integer."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except Exception:
        raise ArrayError(f"{field} is {shown(value)}, which is not a whole number") from None


def whole_numbers(value: object, field: str, of: str) -> tuple[int, ...]:
    """*value*, a tuple or list of integers, one for each of at most `MAX_NDIM` axes. *of* says whose *field* it is."""
    if not isinstance(value, (tuple, list)):
        raise ArrayError(f"{field} {of} is {shown(value)}, which is not a tuple of whole numbers")
    if len(value) > MAX_NDIM:
        raise ArrayError(f"{field} {of} has {len(value)} numbers; an array has at most {MAX_NDIM} axes")
    return tuple(whole_number(number, f"{field}[{axis}] {of}") for axis, number in enumerate(value))


def check_shape(shape: tuple[int, ...], of: str) -> None:
    """Raise an error for negative extents."""
    for axis, extent in enumerate(shape):
        if extent < 0:
            raise ArrayError(f"shape[{axis}] {of} is {shown(extent)}, a negative extent; each must be 0 or more")


def check_place(layout: Layout, address: int, field: str, of: str) -> None:
    """Raise an error for an array outside the address space; its first element is at *address*, according to
    *field*."""
    check_numbers(layout, of)
    if not 0 <= address < ADDRESSES:
        raise ArrayError(f"{field} {of} is {shown(address)}; addresses are from 0 to 2**63 - 1")
    if not address and layout.size:
        raise ArrayError(f"{field} {of} is address 0 for {layout.size} elements, shape {layout.shape}")
    first, end = layout.extent
    if address + first < 0 or address + end > ADDRESSES:
        raise ArrayError(
            f"strides {layout.strides} and shape {layout.shape} {of} reach from {field} {address:#x} to outside of the "
            "address space"
        )


def is_masked(obj: object) -> bool:
    """Whether *obj* is a masked array of NumPy's."""
    return type(obj) is not np.ndarray and isinstance(obj, np.ma.MaskedArray)


def check_unmasked(obj: object, described: str) -> None:
    """Raise `MaskedArrayError` for a masked array of NumPy's, which is *described* so."""
    if is_masked(obj):
        raise MaskedArrayError(
            f"{described} has a mask, which devices do not see: pass its filled(value), or its data and its mask"
        )


def host_array(obj: Any) -> np.ndarray[Any, Any]:
    """*obj* as NumPy reads it; `ArrayError` where it says by ``__array_interface__`` that it lies where no memory is.

    NumPy trusts that description, and reading such an array would crash the process. `MaskedArrayError` for one with a
    mask, which would be lost.
    """
    if type(obj) is np.ndarray:
        return obj
    check_unmasked(obj, f"an array of type {type(obj).__name__}")
    if isinstance(obj, (np.ndarray, np.generic)) or attribute(obj, "__array_interface__") is None:
        return np.asarray(obj)
    of = f"of __array_interface__ of an object of type {type(obj).__name__}"
    try:
        found = np.asarray(obj)
    except Exception as error:  # NumPy's error, or one that the object raises
        raise ArrayError(f"NumPy makes no array {of}: {shown(error)}") from error
    layout = Layout(found.shape, found.strides, found.itemsize)
    check_place(layout, found.__array_interface__["data"][0], "data[0]", of)
    return found
