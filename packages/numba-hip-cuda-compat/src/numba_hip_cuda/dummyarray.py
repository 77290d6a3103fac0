"""``numba.cuda.cudadrv.dummyarray``: shapes and strides without memory, over `hip_runtime.layout`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hip_runtime import layout as layouts
from hip_runtime.errors import ArrayError
from hip_runtime.layout import Layout, Shape


class Extent(NamedTuple):
    """Addresses of the first byte, and of that behind the last."""

    begin: int
    end: int


class Element:
    """One element of an `Array`."""

    is_array = False

    def __init__(self, extent: Extent) -> None:
        self._extent = extent

    @property
    def extent(self) -> Extent:
        """Where it lies."""
        return self._extent

    def iter_contiguous_extent(self) -> Iterator[Extent]:
        """Its bytes, in one piece."""
        yield self.extent


class Array:
    """Where elements would lie from the address *start* on. Parts of it, and its other shapes, are such arrays.

    `from_desc` makes one. What does not fit is a `hip_runtime.errors.ArrayError`, a ``ValueError``.
    """

    is_array = True

    def __init__(self, start: int, layout: Layout) -> None:
        self.start = start
        self.layout = layout

    @classmethod
    def from_desc(cls, offset: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Array:
        """Elements of *itemsize* bytes from the address *offset* on, *strides* bytes apart along each axis."""
        extents = layouts.normalise_shape(shape)
        return cls(offset, Layout(extents, layouts.normalise_strides(strides, len(extents)), itemsize))

    @property
    def shape(self) -> Shape:
        """Elements along each axis."""
        return self.layout.shape

    @property
    def strides(self) -> Shape:
        """Bytes from one element to the next along each axis."""
        return self.layout.strides

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.layout.itemsize

    @property
    def ndim(self) -> int:
        """Axes."""
        return self.layout.ndim

    @property
    def size(self) -> int:
        """Elements."""
        return self.layout.size

    @property
    def is_c_contig(self) -> bool:
        """Whether elements follow each other, the last axis fastest."""
        return self.layout.is_c_contiguous

    @property
    def is_f_contig(self) -> bool:
        """Whether elements follow each other, the first axis fastest."""
        return self.layout.is_f_contiguous

    @property
    def flags(self) -> dict[str, bool]:
        """Which orders the elements are contiguous in."""
        return {"C_CONTIGUOUS": self.is_c_contig, "F_CONTIGUOUS": self.is_f_contig}

    @property
    def extent(self) -> Extent:
        """The addresses that all elements lie within."""
        first, end = self.layout.extent
        return Extent(self.start + first, self.start + end)

    def iter_contiguous_extent(self) -> Iterator[Extent]:
        """The pieces of memory in which elements follow each other, from the first element on."""
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
        """The same elements in another shape, and the pieces of memory that they lie in; one extent may be -1."""
        given = newdims[0] if len(newdims) == 1 and isinstance(newdims[0], Sequence) else newdims
        _check_unknown(given, self.size)
        made = Array(self.start, layouts.reshape(self.layout, given, order))
        return made, list(made.iter_contiguous_extent())

    def squeeze(self, axis: int | Sequence[int] | None = None) -> tuple[Array, list[Extent]]:
        """Without axes of extent 1, all or those in *axis*, and the pieces of memory."""
        made = Array(self.start, layouts.squeeze(self.layout, axis))
        return made, list(made.iter_contiguous_extent())

    def ravel(self, order: str = "C") -> tuple[Array, list[Extent]]:
        """All elements along one axis, in *order*, and the pieces of memory; what is not contiguous lies elsewhere."""
        if self.is_c_contig if order == "C" else self.is_f_contig:
            return self.reshape(self.size, order=order)
        return Array(0, layouts.dense((self.size,), self.itemsize)), list(self.iter_contiguous_extent())


def is_element_indexing(item: Any, ndim: int) -> bool:
    """Whether *item* is an index for each of *ndim* axes, and so gives one element."""
    items = item if isinstance(item, tuple) else (item,)
    whole = any(isinstance(part, slice) or part is None or part is Ellipsis for part in items)
    return len(items) == ndim and not whole


def _part(layout: Layout, first: int) -> Layout:
    """The axes from number *first* on."""
    return Layout(layout.shape[first:], layout.strides[first:], layout.itemsize)


def _check_unknown(shape: Sequence[int], size: int) -> None:
    """Refuse, in the words of Numba CUDA, a new *shape* whose extent -1 cannot be told."""
    unknown = sum(extent == -1 for extent in shape)
    if unknown > 1:
        raise ArrayError(f"can only specify one unknown dimension; the new shape is {tuple(shape)}")
    known = int(np.prod([extent for extent in shape if extent != -1], dtype=object))
    if unknown and (known <= 0 or size % known):
        raise ArrayError(f"cannot infer valid shape for unknown dimension: {size} elements do not fit {tuple(shape)}")


__all__ = ["Array", "Element", "Extent", "is_element_indexing"]
