"""``hip.texture``: a two-dimensional array read as a texture, at coordinates that are no whole numbers or lie outside.

The rules are those of HIP's and CUDA's textures: the element ``image[row, column]`` covers the coordinates from
``column`` to ``column + 1`` and from ``row`` to ``row + 1``, with its own value in the middle. It is done by ordinary
instructions, the same on every device, with weights that are not rounded to 8 bits as those of texture units are. The
function also works on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import overload, register_jitable

from numba_hip.errors import TextureError
from numba_hip.language.stub import given, number_type

__all__ = ["sample"]


def sample(
    image: Any, x: float, y: float, interpolate: bool = False, address: str = "clamp", normalized: bool = False
) -> Any:
    """The value of *image* at column *x* and row *y*.

    Without *interpolate* it is that of the element that covers the point, otherwise a float: the mean of the four
    elements around it, weighted by their distances (float64 for an image of float64 or wide integers, else float32).
    *address* says what is outside: ``"clamp"`` the nearest element of the edge, ``"wrap"`` the image again,
    ``"mirror"`` the image reversed, ``"border"`` zeros. *normalized* coordinates go from 0 to 1 over the image. In
    kernels the last three are written as constants. An image without elements is 0 everywhere.
    """
    if getattr(image, "ndim", None) != 2 or np.dtype(image.dtype).kind not in "iuf":
        raise TextureError(f"image has to be a two-dimensional array of numbers, not {_describe(image)}")
    for name, value in (("x", x), ("y", y)):
        if not isinstance(value, (int, float, np.integer, np.floating)):
            raise TextureError(f"{name} is {value!r}; it has to be a number")
    _check(interpolate, address, normalized)
    real = np.float64 if _is_wide(image.dtype) else np.float32
    return _sampler(interpolate, address, normalized, real)(image, x, y)


@register_jitable
def _clamp(place: Any, extent: Any) -> Any:
    return min(max(place, 0), extent - 1)


@register_jitable
def _wrap(place: Any, extent: Any) -> Any:
    return place % extent


@register_jitable
def _mirror(place: Any, extent: Any) -> Any:
    turned = place % (2 * extent)
    return min(turned, 2 * extent - 1 - turned)


PLACES: dict[str, Callable[[Any, Any], Any] | None] = {
    "clamp": _clamp, "wrap": _wrap, "mirror": _mirror, "border": None,
}  # fmt: skip
"""By the name of *address*: which element an index stands for; None where there are zeros outside."""


@cache
def _sampler(interpolate: bool, address: str, normalized: bool, real: Any) -> Callable[..., Any]:
    """The function of an image and a point, with coordinates and weights of the type *real*."""
    read, cell = _reader(address), _cell_of(real)
    zero, one, half = real(0), real(1), real(0.5)

    def nearest(image: Any, x: Any, y: Any) -> Any:
        rows, columns = (real(image.shape[0]), real(image.shape[1])) if normalized else (one, one)
        return read(image, cell(real(y) * rows), cell(real(x) * columns))

    def between(image: Any, x: Any, y: Any) -> Any:
        rows, columns = (real(image.shape[0]), real(image.shape[1])) if normalized else (one, one)
        across, down = real(x) * columns - half, real(y) * rows - half
        column, row = cell(across), cell(down)
        right, below = across - real(column), down - real(row)
        # beyond what a cell can be, the weights would lie outside of 0 to 1
        right, below = min(max(right, zero), one), min(max(below, zero), one)
        upper = real(read(image, row, column)) * (one - right) + real(read(image, row, column + 1)) * right
        lower = real(read(image, row + 1, column)) * (one - right) + real(read(image, row + 1, column + 1)) * right
        return upper * (one - below) + lower * below

    return between if interpolate else nearest


def _reader(address: str) -> Callable[..., Any]:
    """The function of an image, a row and a column that may lie outside."""
    place = PLACES[address]
    if place is None:

        @register_jitable
        def read_inside(image: Any, row: Any, column: Any) -> Any:
            inside = 0 <= row < image.shape[0] and 0 <= column < image.shape[1]
            return image[row, column] if inside else image.dtype.type(0)

        return cast(Callable[..., Any], read_inside)

    @register_jitable
    def read(image: Any, row: Any, column: Any) -> Any:
        if image.size == 0:
            return image.dtype.type(0)
        return image[place(row, image.shape[0]), place(column, image.shape[1])]

    return cast(Callable[..., Any], read)


def _cell_of(real: Any) -> Callable[[Any], Any]:
    """The function of a coordinate that gives the index of the element that covers it."""
    most = real(2.0**30)

    @register_jitable
    def cell(coordinate: Any) -> Any:
        bounded = min(max(np.floor(coordinate), -most), most)
        return int(bounded) if bounded == bounded else 0

    return cast(Callable[[Any], Any], cell)


def _is_wide(dtype: Any) -> bool:
    """Whether float32 lacks numbers of *dtype*."""
    return np.result_type(dtype, np.float32) == np.float64


def _describe(image: Any) -> str:
    dtype = getattr(image, "dtype", None)
    return type(image).__name__ if dtype is None else f"an array of {dtype} with {image.ndim} dimensions"


def _check(interpolate: Any, address: Any, normalized: Any) -> None:
    """`TextureError` for what these cannot be."""
    for name, value in (("interpolate", interpolate), ("normalized", normalized)):
        if not isinstance(value, bool):
            raise TextureError(f"{name} is {value!r}; it has to be True or False, written as such in a kernel")
    if address not in PLACES:
        raise TextureError(f"address is {address!r}; it can be {', '.join(map(repr, PLACES))}, written as such")


@overload(sample, prefer_literal=True)
def _sample_in_kernels(
    image: Any, x: Any, y: Any, interpolate: Any = False, address: Any = "clamp", normalized: Any = False
) -> Any:
    numbers = (types.Integer, types.Float)
    if not isinstance(image, types.Array) or image.ndim != 2 or not isinstance(image.dtype, numbers):
        raise TypingError(f"hip.texture.sample: image has to be a two-dimensional array of numbers, not {image}")
    for name, kind in (("x", x), ("y", y)):
        if not isinstance(number_type(kind), numbers):
            raise TypingError(f"hip.texture.sample: {name} has to be a number, not a {kind}")
    chosen = [given(value) if isinstance(value, types.Type) else value for value in (interpolate, address, normalized)]
    try:
        _check(*chosen)
    except TextureError as error:
        raise TypingError(f"hip.texture.sample: {error}") from None
    wide = image.dtype.bitwidth == 64 or (isinstance(image.dtype, types.Integer) and image.dtype.bitwidth > 16)
    function = register_jitable(_sampler(*chosen, np.float64 if wide else np.float32))

    def implementation(
        image: Any, x: Any, y: Any, interpolate: Any = False, address: Any = "clamp", normalized: Any = False
    ) -> Any:
        return function(image, x, y)

    return implementation
