"""Arithmetic on shapes and strides, without memory: a `Layout` is the position of each element of an array.

Strides are in bytes and may be negative or zero. Every function returns a new layout and the offset in bytes of its
first element from the first element of the old one, or raises `ArrayError` naming the value and the limit.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from hip_devicelib.cached_property import cached_property
from hip_runtime.errors import ArrayError, ArrayExtentError, ArrayIndexError, ArrayTypeError

Shape = tuple[int, ...]

ADDRESSES = 1 << 63
"""Bytes that have an address, at most: kernels are given addresses, extents and strides as signed numbers of 64
bits."""


@dataclass(frozen=True)
class Layout:
    """Extent (elements) and stride (bytes) of each axis, and the size in bytes of an element."""

    shape: Shape
    strides: Shape
    itemsize: int

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @cached_property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without what lies between them."""
        return self.size * self.itemsize

    @cached_property
    def is_c_contiguous(self) -> bool:
        """Whether elements are contiguous, the last axis fastest; an empty array is contiguous."""
        return _is_dense(reversed(list(zip(self.shape, self.strides, strict=True))), self.itemsize, self.size)

    @cached_property
    def is_f_contiguous(self) -> bool:
        """Whether elements are contiguous, the first axis fastest; an empty array is contiguous."""
        return _is_dense(zip(self.shape, self.strides, strict=True), self.itemsize, self.size)

    @cached_property
    def extent(self) -> tuple[int, int]:
        """First byte and byte past the last, as offsets from the first element; (0, 0) where there are no elements."""
        if self.size == 0:
            return 0, 0
        reach = [(extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True)]
        return sum(step for step in reach if step < 0), sum(step for step in reach if step > 0) + self.itemsize

    def know_contiguity(self, *, c_contiguous: bool, f_contiguous: bool) -> None:
        """Take over what is known of these strides already."""
        self.__dict__["is_c_contiguous"], self.__dict__["is_f_contiguous"] = c_contiguous, f_contiguous

    def _know_dense(self, order: str) -> None:
        """Keep what is so of a contiguous layout in *order*, which would take longer to find out than to launch."""
        known = self.__dict__
        known["is_c_contiguous" if order == "C" else "is_f_contiguous"] = True
        if len(self.shape) == 1:
            known["is_c_contiguous"] = known["is_f_contiguous"] = True
            known["size"] = self.shape[0]
            known["extent"] = 0, self.shape[0] * self.itemsize

    @property
    def overlaps_itself(self) -> bool:
        """Whether two elements may share a byte: then nothing may be written through the layout."""
        if self.size <= 1:
            return False
        axes = sorted(
            (abs(stride), extent) for stride, extent in zip(self.strides, self.shape, strict=True) if extent > 1
        )
        reach = self.itemsize
        for stride, extent in axes:
            if stride < reach:
                return True
            reach = stride * (extent - 1) + reach
        return False


def _is_dense(axes: Any, itemsize: int, size: int) -> bool:
    expected = itemsize
    for extent, stride in axes:
        if extent != 1 and size and stride != expected:
            return False
        expected *= extent
    return True


def normalise_shape(shape: Any) -> Shape:
    """*shape*, a whole number or a sequence of them, as a tuple of non-negative integers."""
    extents = _whole_numbers(shape)
    if extents is None:
        from hip_runtime.float_advice import advice_on_floats  # most programs do without

        advice = advice_on_floats(shape if isinstance(shape, (tuple, list)) else [shape])
        raise ArrayTypeError(f"shape must be a whole number or a sequence of them, not {shape!r}{advice}")
    if any(extent < 0 for extent in extents):
        raise ArrayExtentError(f"shape {extents} has a negative extent; each must be 0 or more")
    return extents


def normalise_strides(strides: Any, ndim: int) -> Shape:
    """*strides*, bytes for each of *ndim* axes, as a tuple."""
    distances = _whole_numbers(strides)
    if distances is None:
        raise ArrayTypeError(f"strides must be whole numbers of bytes, not {strides!r}")
    if len(distances) != ndim:
        raise ArrayError(f"strides {distances} are for {len(distances)} axes; the shape has {ndim}")
    return distances


def _whole_numbers(value: Any) -> tuple[int, ...] | None:
    """*value* as a tuple of integers: it is one, or a sequence or a one-dimensional array of them; else ``None``."""
    several = isinstance(value, Sequence) or getattr(value, "ndim", 0) == 1
    try:
        return tuple(operator.index(number) for number in value) if several else (operator.index(value),)
    except TypeError:
        return None


def check_numbers(layout: Layout, of: str = "") -> None:
    """Raise an error for a layout with more bytes than the address space, or with extents or strides that large.

    *of* says in messages whose shape and strides they are.
    """
    _check_bits("shape", layout.shape, of)
    # As for NumPy, also where an extent of 0 leaves nothing of it: the strides of such an array count the others.
    if prod(extent for extent in layout.shape if extent) * layout.itemsize >= ADDRESSES:
        raise ArrayError(
            f"shape {layout.shape}{of and ' '}{of} with elements of {layout.itemsize} bytes is larger than any address "
            "space"
        )
    _check_bits("strides", layout.strides, of)


def _check_bits(field: str, numbers: Shape, of: str) -> None:
    for axis, number in enumerate(numbers):
        if abs(number) >= ADDRESSES:
            raise ArrayError(f"{field}[{axis}]{of and ' '}{of} has {number.bit_length()} bits; at most 63 are possible")


def dense(shape: Shape, itemsize: int, order: str = "C") -> Layout:
    """The contiguous layout of *shape*, in the *order* ``"C"`` (last axis fastest) or ``"F"`` (first axis fastest)."""
    if order not in ("C", "F"):
        raise ArrayError(f"order must be 'C' or 'F', not {order!r}")
    strides = []
    stride = itemsize
    for extent in reversed(shape) if order == "C" else shape:
        strides.append(stride)
        stride *= max(extent, 1)
    made = Layout(shape, tuple(reversed(strides)) if order == "C" else tuple(strides), itemsize)
    made._know_dense(order)
    return made


def dense_like(layout: Layout) -> Layout:
    """The contiguous layout of the same shape whose axes lie in the same order in memory, as NumPy's order ``"K"``."""
    slowest_first = sorted(range(layout.ndim), key=lambda axis: -abs(layout.strides[axis]))
    moved = dense(tuple(layout.shape[axis] for axis in slowest_first), layout.itemsize)
    strides = dict(zip(slowest_first, moved.strides, strict=True))
    return Layout(layout.shape, tuple(strides[axis] for axis in range(layout.ndim)), layout.itemsize)


def reshape(layout: Layout, shape: Sequence[int], order: str = "C") -> Layout:
    """The same elements, in the same order, in another shape; one extent may be -1. Only for layouts contiguous in
    *order*."""
    target = _infer(layout, shape)
    if order not in ("C", "F"):
        raise ArrayError(f"order must be 'C' or 'F', not {order!r}")
    if target == layout.shape:
        return layout
    if not (layout.is_c_contiguous if order == "C" else layout.is_f_contiguous):
        raise ArrayError(
            f"an array of shape {layout.shape} and strides {layout.strides} cannot be reshaped to {target} in order "
            f"{order!r} without a copy; copy it to a contiguous array first"
        )
    made = dense(target, layout.itemsize, order)
    check_numbers(made)
    return made


def _infer(layout: Layout, shape: Sequence[int]) -> Shape:
    extents = [operator.index(extent) for extent in shape]
    unknown = [axis for axis, extent in enumerate(extents) if extent == -1]
    if len(unknown) > 1:
        raise ArrayError(f"new shape {tuple(extents)} has more than one -1")
    known = prod(extent for extent in extents if extent != -1)
    if unknown and known and layout.size % known == 0:
        extents[unknown[0]] = layout.size // known
    if any(extent < 0 for extent in extents) or prod(extents) != layout.size:
        raise ArrayError(
            f"an array of shape {layout.shape} has {layout.size} elements; it does not fit shape {tuple(shape)}"
        )
    return tuple(extents)


def transpose(layout: Layout, axes: Sequence[int] | None = None) -> Layout:
    """Axes in another order; reversed where *axes* is ``None``."""
    given = tuple(reversed(range(layout.ndim))) if axes is None else tuple(operator.index(axis) for axis in axes)
    if len(given) != layout.ndim:
        raise ArrayError(f"axes {given} are not a permutation of the {layout.ndim} axes of the array")
    order = tuple(check_axis(axis, layout.ndim) for axis in given)
    if len(set(order)) != len(order):
        raise ArrayError("repeated axis in transpose")  # NumPy's message
    return Layout(tuple(layout.shape[a] for a in order), tuple(layout.strides[a] for a in order), layout.itemsize)


def squeeze(layout: Layout, axis: int | Sequence[int] | None = None) -> Layout:
    """Without the axes of extent 1, or without those in *axis*, which must have extent 1."""
    if axis is None:
        dropped = {number for number, extent in enumerate(layout.shape) if extent == 1}
    else:
        wanted = axis if isinstance(axis, Sequence) else (axis,)
        dropped = {check_axis(number, layout.ndim) for number in wanted}
        for number in dropped:
            if layout.shape[number] != 1:
                raise ArrayError(
                    f"axis {number} has extent {layout.shape[number]} in shape {layout.shape}; only 1 is squeezed"
                )
    kept = [number for number in range(layout.ndim) if number not in dropped]
    return Layout(tuple(layout.shape[a] for a in kept), tuple(layout.strides[a] for a in kept), layout.itemsize)


def reinterpret(layout: Layout, itemsize: int) -> Layout:
    """The same bytes as elements of *itemsize* bytes. Where that differs, the last axis must be contiguous."""
    if itemsize == layout.itemsize:
        return layout
    if not layout.shape:
        raise ArrayError(
            f"an array without dimensions has elements of {layout.itemsize} bytes; it cannot view {itemsize}"
        )
    nbytes = layout.shape[-1] * layout.itemsize
    if layout.size and layout.shape[-1] != 1 and layout.strides[-1] != layout.itemsize:
        raise ArrayError(
            f"To change to a dtype of a different size, the last axis must be contiguous; elements have "
            f"{layout.itemsize} bytes and are {layout.strides[-1]} apart"
        )
    if nbytes % itemsize:
        raise ArrayError(
            "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last axis "
            "of the array."
        )  # NumPy's message
    return Layout((*layout.shape[:-1], nbytes // itemsize), (*layout.strides[:-1], itemsize), itemsize)


def check_axis(axis: int, ndim: int) -> int:
    """*axis*, counted from the end where negative, as a number from 0."""
    if not -ndim <= axis < ndim:
        raise ArrayError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim


def broadcast(layout: Layout, shape: Shape) -> Layout:
    """The layout repeated, with strides 0, to fill *shape*."""
    missing = len(shape) - layout.ndim
    fits = missing >= 0 and all(have in (1, want) for have, want in zip(layout.shape, shape[missing:], strict=True))
    if not fits:
        raise ArrayError(f"shape {layout.shape} cannot be broadcast to shape {shape}")
    strides = tuple(
        0 if have == 1 and want != 1 else stride
        for have, want, stride in zip(layout.shape, shape[missing:], layout.strides, strict=True)
    )
    return Layout(shape, (0,) * missing + strides, layout.itemsize)


def index(layout: Layout, key: Any) -> tuple[Layout, int]:
    """Apply a basic index (integers, slices, ``...``, ``None``) and give the new layout and the offset of its start."""
    keys = _expand(layout, key)
    shape: list[int] = []
    strides: list[int] = []
    offset = 0
    axis = 0
    for part in keys:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        extent, stride = layout.shape[axis], layout.strides[axis]
        if isinstance(part, slice):
            start, stop, step = _slice(part, extent)
            count = len(range(start, stop, step))
            offset += start * stride if count else 0
            shape.append(count)
            # A step past the end is as large as anybody likes, and leads nowhere.
            strides.append(stride * step if abs(stride * step) < ADDRESSES else stride)
        else:
            offset += _integer(part, extent, axis, layout) * stride
        axis += 1
    return Layout(tuple(shape), tuple(strides), layout.itemsize), offset


def append(layout: Layout, inner: Shape, itemsize: int) -> Layout:
    """The layout of parts of *itemsize* bytes that lie in each element of *layout* as C-contiguous arrays *inner*."""
    within = dense(inner, itemsize)
    return Layout(layout.shape + inner, layout.strides + within.strides, itemsize)


def _expand(layout: Layout, key: Any) -> list[Any]:
    keys = list(key) if isinstance(key, tuple) else [key]
    given = sum(part is not None and part is not Ellipsis for part in keys)
    if given > layout.ndim:
        raise ArrayError(f"{given} indices given for an array of {layout.ndim} dimensions")
    if sum(part is Ellipsis for part in keys) > 1:
        raise ArrayError("an index can have only one '...'")
    fill = [slice(None)] * (layout.ndim - given)
    position = next((number for number, part in enumerate(keys) if part is Ellipsis), None)
    return keys + fill if position is None else keys[:position] + fill + keys[position + 1 :]


def _slice(part: slice, extent: int) -> tuple[int, int, int]:
    try:
        return part.indices(extent)
    except (TypeError, ValueError) as error:
        raise ArrayError(f"{part}: {error}") from None


def _integer(part: Any, extent: int, axis: int, layout: Layout) -> int:
    try:
        if isinstance(part, (bool, np.bool_)) or getattr(part, "ndim", None):
            raise TypeError
        position = operator.index(part)
    except TypeError:
        raise ArrayTypeError(
            f"{part!r} cannot index a device array: use integers, slices, '...' and None; for anything else copy to "
            "the host"
        ) from None
    if not -extent <= position < extent:
        raise ArrayIndexError(f"index {position} is out of range for axis {axis} of shape {layout.shape}")
    return position % extent
