"""The parameters that a kernel receives for an array: its address, its extents, and the strides that its type does not
imply.

Numba passes functions seven numbers for an array of one axis: two pointers for the owner of the memory, which nothing
in a kernel has, the number of elements, their size, the address, the extent and the stride. A kernel gets the address
and the extent, side by side, so that a GPU loads both at once; the rest is computed where it is needed. The strides of
the other axes are passed, so that rows are found without products of extents.
"""

from __future__ import annotations

from numba.core import types


def stride_axes(kind: types.Array) -> range:
    """The axes whose strides are passed: all but the one whose elements lie side by side, as its type says."""
    if kind.layout == "C":
        return range(kind.ndim - 1)
    return range(1 if kind.layout == "F" else 0, kind.ndim)


def count_parameters(kind: types.Array) -> int:
    """How many parameters of a kernel an array of type *kind* becomes: address, extents and strides, in this order."""
    return 1 + int(kind.ndim) + len(stride_axes(kind))
