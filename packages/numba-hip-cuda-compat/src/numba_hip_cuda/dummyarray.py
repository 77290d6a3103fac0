"""``numba.cuda.cudadrv.dummyarray``: shapes and strides without memory, over `hip_runtime.layout`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hip_runtime import layout as layouts
from hip_runtime.errors import ArrayError
from hip_runtime.layout import Layout, Shape


class Extent(NamedTuple):
    """The addresses of the first byte and of the byte after the last."""

    begin: int
    end: int


class Element:
    """One element of an `Array`."""

    is_array = False

    def __init__(self, extent: Extent) -> None:
        self._extent = extent

    @property
    def extent(self) -> Extent:
        """The byte range of the element."""
        return self._extent

    def iter_contiguous_extent(self) -> Iterator[Extent]:
        """The same as a list of contiguous ranges, of which there is one."""
        yield self.extent


class Array:
    """The layout of an array whose memory would start at the address *start*. Slicing and reshaping give such arrays.

    Made by `from_desc`. Operations that do not fit raise `hip_runtime.errors.ArrayError`, a ``ValueError``.
    """

    is_array = True

    def __init__(self, start: int, layout: Layout) -> None:
        self.start = start
        self.layout = layout

    @classmethod
    def from_desc(cls, offset: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Array:
        """An array of elements of *itemsize* bytes from the address *offset* on, with *strides* in bytes."""
        extents = layouts.normalise_shape(shape)
        return cls(offset, Layout(extents, layouts.normalise_strides(strides, len(extents)), itemsize))

    @property
    def shape(self) -> Shape:
        """The extent of each axis."""
        return self.layout.shape

    @property
    def strides(self) -> Shape:
        """The distance in bytes between elements along each axis."""
        return self.layout.strides

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.layout.itemsize

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.layout.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.layout.size

    @property
    def is_c_contig(self) -> bool:
        """Whether the elements are contiguous in C order."""
        return self.layout.is_c_contiguous

    @property
    def is_f_contig(self) -> bool:
        """Whether the elements are contiguous in Fortran order."""
        return self.layout.is_f_contiguous

    @property
    def flags(self) -> dict[str, bool]:
        """The orders in which the elements are contiguous."""
        return {"C_CONTIGUOUS": self.is_c_contig, "F_CONTIGUOUS": self.is_f_contig}

    @property
    def extent(self) -> Extent:
        """The address range that contains all elements."""
        first, end = self.layout.extent
        return Extent(self.start + first, self.start + end)

    def iter_contiguous_extent(self) -> Iterator[Extent]:
        """The ranges of contiguous elements, from the first element on."""
        if self.is_c_contig or self.is_f_contig:
            yield self.extent
            return
        inner = self.ndim
        while inner and _part(self.layout, inner - 1).is_c_contiguous:
            inner -= 1
        nbytes = _part(self.layout, inner).nbytes
        for place in np.ndindex(*self.shape[:inner]):
            begin = self.start + sum(i * stride for i, stride in zip(place, self.strides[:inner], strict=True))
            yield Extent(begin, begin + nbytes)

    def __getitem__(self, item: Any) -> Array | Element:
        part, offset = layouts.index(self.layout, item)
        if is_element_indexing(item, self.ndim):
            return Element(Extent(self.start + offset, self.start + offset + self.itemsize))
        return Array(self.start + offset, part)

    def __iter__(self) -> Iterator[Array | Element]:
        return (self[place] for place in range(self.shape[0]))

    def __repr__(self) -> str:
        return f"<Array shape={self.shape} strides={self.strides} itemsize={self.itemsize} at {self.start:#x}>"

    def reshape(self, *newdims: Any, order: str = "C") -> tuple[Array, list[Extent]]:
        """The same elements in another shape, and their contiguous ranges; one extent may be -1."""
        given = newdims[0] if len(newdims) == 1 and isinstance(newdims[0], Sequence) else newdims
        _check_unknown(given, self.size)
        made = Array(self.start, layouts.reshape(self.layout, given, order))
        return made, list(made.iter_contiguous_extent())

    def squeeze(self, axis: int | Sequence[int] | None = None) -> tuple[Array, list[Extent]]:
        """The array without axes of extent 1 (all of them, or those in *axis*), and its contiguous ranges."""
        made = Array(self.start, layouts.squeeze(self.layout, axis))
        return made, list(made.iter_contiguous_extent())

    def ravel(self, order: str = "C") -> tuple[Array, list[Extent]]:
        """All elements along one axis in *order*, and their contiguous ranges. Elements that are not contiguous would
        have to be copied."""
        if self.is_c_contig if order == "C" else self.is_f_contig:
            return self.reshape(self.size, order=order)
        return Array(0, layouts.dense((self.size,), self.itemsize)), list(self.iter_contiguous_extent())


def is_element_indexing(item: Any, ndim: int) -> bool:
    """Whether *item* has an index for each of *ndim* axes, and so selects one element."""
    items = item if isinstance(item, tuple) else (item,)
    whole = any(isinstance(part, slice) or part is None or part is Ellipsis for part in items)
    return len(items) == ndim and not whole


def _part(layout: Layout, first: int) -> Layout:
    """The axes from number *first* on."""
    return Layout(layout.shape[first:], layout.strides[first:], layout.itemsize)


def _check_unknown(shape: Sequence[int], size: int) -> None:
    """Reject a *shape* whose extent -1 is ambiguous, with Numba CUDA's message."""
    unknown = sum(extent == -1 for extent in shape)
    if unknown > 1:
        raise ArrayError(f"can only specify one unknown dimension; the new shape is {tuple(shape)}")
    known = int(np.prod([extent for extent in shape if extent != -1], dtype=object))
    if unknown and (known <= 0 or size % known):
        raise ArrayError(f"cannot infer valid shape for unknown dimension: {size} elements do not fit {tuple(shape)}")


__all__ = ["Array", "Element", "Extent", "is_element_indexing"]
