"""The parameters that a kernel receives for an array: its address, its extents, and the strides that its type does not
imply.

Numba passes functions seven numbers for an array of one axis: two pointers for the owner of the memory, which nothing
in a kernel has, the number of elements, their size, the address, the extent and the stride. A kernel gets the address
and the extent, side by side, so that a GPU loads both at once; the rest is computed where it is needed. The strides of
the other axes are passed, so that rows are found without products of extents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from numba.core import types
from numba.core.errors import NumbaNotImplementedError

from hip_devicelib.codeobject import Parameter
from numba_hip._numba.typing import as_dtype


def stride_axes(kind: types.Array) -> range:
    """The axes whose strides are passed: all but the one whose elements lie side by side, as its type says."""
    if kind.layout == "C":
        return range(kind.ndim - 1)
    return range(1 if kind.layout == "F" else 0, kind.ndim)


def count_parameters(kind: types.Array) -> int:
    """How many parameters of a kernel an array of type *kind* becomes: address, extents and strides, in this order."""
    return 1 + int(kind.ndim) + len(stride_axes(kind))


def arrays_in(kinds: Iterable[types.Type]) -> Iterator[types.Array]:
    """The types of arrays among *kinds* and in tuples of these."""
    for kind in kinds:
        if isinstance(kind, types.BaseTuple):
            yield from arrays_in(kind)
        elif isinstance(kind, types.Array):
            yield kind


def contiguous_strides(kinds: Iterable[types.Type], parameters: Sequence[Parameter]) -> tuple[tuple[int, int], ...]:
    """The positions of those of *parameters* that are the innermost strides of arrays among the arguments of types
    *kinds* which leave them open, as ``float32[:]`` does, with what they are for contiguous arrays, in bytes: most
    arrays that are passed are contiguous."""
    open_arrays = [kind for kind in arrays_in(kinds) if kind.layout == "A" and kind.ndim]
    names = [parameter.name for parameter in parameters]
    found = [last for place in range(len(names)) if (last := _find_last_stride(names, place)) is not None]
    if len(found) != len(open_arrays):
        return ()
    sizes = [_itemsize(kind.dtype) for kind in open_arrays]
    return tuple((last, size) for last, size in zip(found, sizes, strict=True) if size is not None)


def _itemsize(kind: types.Type) -> int | None:
    """Bytes of an element of type *kind*, if that is known without a target."""
    if hasattr(kind, "bitwidth"):  # also of types that NumPy lacks
        return int(kind.bitwidth) // 8
    try:
        return int(as_dtype(kind).itemsize)
    except NumbaNotImplementedError:
        return None


def _find_last_stride(names: Sequence[str], place: int) -> int | None:
    """Where among the *names* of parameters the last stride of the array is whose address is at *place*, if there is
    one with a stride for each of its axes."""
    name, dot, field = names[place].rpartition(".")
    if not dot or field != "0":
        return None
    axes = 0
    while names[place + 1 + axes : place + 2 + axes] == [f"{name}.1.{axes}"]:
        axes += 1
    strides = names[place + 1 + axes : place + 1 + 2 * axes]
    return place + 2 * axes if axes and strides == [f"{name}.2.{axis}" for axis in range(axes)] else None
