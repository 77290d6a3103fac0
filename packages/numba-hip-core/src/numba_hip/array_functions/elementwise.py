"""Kernels that apply a function to every element, or every subarray, of arrays that are broadcast against each
other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numba.core import types

from hip_runtime import DeviceArray, Stream, as_device_array, device_array, is_device_array, to_device
from hip_runtime.foreign_arrays import check_unmasked
from numba_hip._numba.typing import as_dtype
from numba_hip.compilation.options import CompileOptions
from numba_hip.dispatch.dispatcher import Dispatcher

Shape = tuple[int, ...]
WEAK = {bool: "biufc", int: "iufc", float: "fc", complex: "c"}
"""Kinds of dtypes that a Python number becomes without a word, as in NumPy: it has a kind, but no size."""

MOST_KERNELS = 256
"""How many kernels, one for each combination of numbers of dimensions, are kept."""


@dataclass(frozen=True)
class Operand:
    """How a kernel accesses one operand: for each dimension of the array before those that belong to the function,
    whether it has one element that is taken again and again (``None`` for a number, see `find_repeated`); how many
    dimensions belong to the function, whether that takes an array, and the type that an element is converted to."""

    repeated: tuple[bool, ...] | None
    core: int = 0
    as_array: bool = False
    convert_to: types.Type | None = None


def broadcast(function: str, shapes: Sequence[Shape]) -> Shape:
    """The shape that *shapes* broadcast to. Raises `ValueError` if they do not."""
    if len(set(shapes)) == 1:
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        shown = ", ".join(map(str, shapes))
        raise ValueError(f"{function}: operands of shapes {shown} cannot be broadcast together") from None


def find_repeated(shape: Shape, extents: Shape) -> tuple[bool, ...]:
    """Which dimensions of *shape*, which is broadcast to *extents*, have one element that is taken for all. A number
    that a function takes as an array has one dimension, even where *extents* has none."""
    if shape == extents:
        return (False,) * len(shape)
    common = min(len(shape), len(extents))
    pairs = zip(shape[len(shape) - common :], extents[len(extents) - common :], strict=True)
    return tuple(own == 1 != whole for own, whole in pairs)


def fits(value: Any, wanted: np.dtype[Any]) -> bool:
    """Whether *value*, an array or a number, can become *wanted* without loss: judged by its type, and a single number
    of the host also by its value. Device arrays are not judged by value."""
    if type(value) in WEAK:
        if wanted.kind not in WEAK[type(value)]:
            return False
        return wanted.kind not in "iu" or bool(np.iinfo(wanted).min <= value <= np.iinfo(wanted).max)
    dtype = np.dtype(value.dtype) if hasattr(value, "dtype") else np.asarray(value).dtype
    if np.can_cast(dtype, wanted):
        return True
    if is_device_array(value) or np.shape(value) != () or not np.can_cast(dtype, wanted, "same_kind"):
        return False
    number = np.asarray(value)
    with np.errstate(all="ignore"):
        converted = number.astype(wanted)
    if dtype.kind in "biu":  # compared as Python compares numbers, since an integer that wraps around wraps back
        return bool(converted.item() == number.item())
    with np.errstate(all="ignore"):
        return bool(np.array_equal(converted.astype(dtype), number, equal_nan=dtype.kind in "fc"))


def keeps_value(value: Any, wanted: np.dtype[Any]) -> bool:
    """Whether *value* fits *wanted*, or is a float that is a whole number which does."""
    is_whole = isinstance(value, (float, np.floating)) and value.is_integer()
    return fits(value, wanted) or (is_whole and wanted.kind in "iu" and fits(int(value), wanted))


def narrows(value: Any, wanted: np.dtype[Any]) -> bool:
    """Whether *value* is made of numbers to which *wanted* converts without loss: so Numba CUDA chooses a signature."""
    given = np.dtype(value.dtype) if hasattr(value, "dtype") else np.asarray(value).dtype
    return fits(value, wanted) or (given.kind in "biufc" and np.can_cast(wanted, given))


def check_conversion(function: str, result: np.dtype[Any], out: np.dtype[Any]) -> None:
    """Raise `TypeError` if a *result* of *function* does not convert to the dtype of *out*, as NumPy has it."""
    if not np.can_cast(result, out, "same_kind"):
        raise TypeError(f"{function}: the result is {result}, which does not convert to {out}, the dtype of out")


def take_operands(function: str, values: Sequence[Any], role: str = "argument") -> list[Any]:
    """*values* of *function*, of which arrays of other libraries are device arrays over the same memory. Raises
    `MaskedArrayError` for one with a mask, which would be lost."""
    for number, value in enumerate(values, 1):
        check_unmasked(value, f"{role} {number} of {function}")
    return [
        as_device_array(value) if not isinstance(value, DeviceArray) and is_device_array(value) else value
        for value in values
    ]


def onto_device(value: Any, dtype: np.dtype[Any], stream: Stream | None) -> Any:
    """*value* as a kernel takes it: numbers unchanged, host arrays as device arrays of *dtype*."""
    if isinstance(value, DeviceArray):
        return value
    array = np.asarray(value).astype(dtype, copy=False)
    return dtype.type(array[()]) if array.ndim == 0 and dtype.kind not in "mM" else to_device(array, stream=stream)


def flatten(operands: Sequence[Any], shape: Shape) -> list[Any]:
    """*operands*, of which the arrays have one axis instead of *shape* if all of them are contiguous."""
    arrays = [value for value in operands if isinstance(value, DeviceArray)]
    if len(shape) < 2 or not all(value.shape == shape and value.is_c_contiguous() for value in arrays):
        return list(operands)
    return [value.reshape(value.size) if isinstance(value, DeviceArray) else value for value in operands]


def new_result(shape: Shape, dtype: np.dtype[Any]) -> DeviceArray:
    """A device array for results."""
    return device_array(shape, dtype)


@lru_cache(MOST_KERNELS)
def elementwise_kernel(
    core: Callable[..., Any], inputs: tuple[Operand, ...], outputs: tuple[Operand, ...], exceptions: bool = False
) -> Dispatcher:
    """A kernel ``(extents, *inputs, *outputs)`` that runs *core* once for every element of a space of *extents*.

    If the first output is an array for *core* to fill, all outputs are passed to it; otherwise *core* returns the value
    of the single output. Threads step through the elements by the size of the grid. *exceptions* is the option of
    `jit`.
    """
    operands = (*inputs, *outputs)
    names = [f"a{n}" for n in range(len(operands))]
    ndim = max(len(operand.repeated or ()) for operand in operands)
    space: dict[str, Any] = {"core": core}
    parts = []
    for name, operand in zip(names, operands, strict=True):
        part = _part(name, operand, ndim)
        if operand.convert_to is not None:
            space[f"type_{name}"] = operand.convert_to
            part = f"type_{name}({part})"
        parts.append(part)
    if outputs[0].as_array:
        statement = f"core({', '.join(parts)})"
    else:
        statement = f"{parts[-1]} = core({', '.join(parts[:-1])})"
    lines = [
        f"def elementwise(extents, {', '.join(names)}):",
        "    count = 1",
        *(f"    count *= extents[{axis}]" for axis in range(ndim)),
        "    for flat in range(grid(1), count, gridsize(1)):",
        "        rest = flat",
        *(
            line
            for axis in reversed(range(1, ndim))
            for line in (f"        i{axis} = rest % extents[{axis}]", f"        rest //= extents[{axis}]")
        ),
        "        i0 = rest",
        f"        {statement}",
    ]
    from numba_hip.language.thread_index import grid, gridsize

    space.update(grid=grid, gridsize=gridsize)
    exec("\n".join(lines), space)  # the only way in Python to write an index with as many parts as an array has axes
    return Dispatcher(space["elementwise"], CompileOptions(exceptions=exceptions))


def _part(name: str, operand: Operand, ndim: int) -> str:
    """The expression for the part of operand *name* that belongs to the current element."""
    if operand.repeated is None:
        return name
    first = ndim - len(operand.repeated)
    indices = ["0" if one else f"i{axis}" for axis, one in enumerate(operand.repeated, first)]
    if operand.as_array and operand.core == 0:
        # The function gets an array of one element where its signature says that there are no dimensions.
        if not indices:
            return f"{name}.reshape(1)"
        indices[-1] = f"{indices[-1]}:{indices[-1]} + 1"
        return f"{name}[{', '.join(indices)}]"
    indices += [":"] * operand.core
    return f"{name}[{', '.join(indices) or '()'}]" if indices or not operand.as_array else name


@lru_cache(MOST_KERNELS)
def dtype_of(kind: types.Type) -> np.dtype[Any]:
    """The NumPy dtype of elements of Numba type *kind*, or of an array of them."""
    dtype: np.dtype[Any] = as_dtype(kind.dtype if isinstance(kind, types.Array) else kind)
    return dtype
