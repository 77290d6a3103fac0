"""What is passed to a kernel: the type of each argument, and its bytes in the packed argument buffer."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import typeof
from numba.core import types
from numba.extending import typeof_impl
from numba.np import numpy_support

from hip_devicelib.codeobject import Parameter
from hip_runtime import DeviceArray, is_device_array
from numba_hip._numba import type_code
from numba_hip.errors import KernelArgumentError

FORMATS = {
    "i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "half": "e", "float": "f", "double": "d", "ptr": "Q",
}  # fmt: skip
"""Format characters of `struct` for the LLVM types of kernel parameters."""

Packer = Callable[[Any], bytes]


class ArrayArgument:
    """What a kernel needs of a device array: its Numba type and the bytes of its fields.

    An array's shape, strides, dtype and address never change, so this is made once and kept with the array.
    """

    __slots__ = ("code", "packed", "type")

    def __init__(self, array: DeviceArray) -> None:
        if array.dtype.hasobject:
            raise KernelArgumentError(f"an array of dtype {array.dtype} holds Python objects; kernels take numbers")
        self.type = types.Array(numpy_support.from_dtype(array.dtype), array.ndim, layout_of(array))
        self.code = type_code(self.type)
        # In the order of Numba's ArrayModel: meminfo, parent, nitems, itemsize, data, shape, strides.
        fields = (0, 0, array.size, array.itemsize, array.address, *array.shape, *array.strides)
        self.packed = struct.pack(f"<{len(fields)}q", *fields)


def layout_of(array: DeviceArray) -> str:
    """``"C"``, ``"F"`` or ``"A"``, as Numba's array types have it."""
    if array.is_c_contiguous():
        return "C"
    return "F" if array.is_f_contiguous() else "A"


def describe(array: DeviceArray) -> ArrayArgument:
    """The `ArrayArgument` of *array*, made on first use."""
    known = array.upper
    if isinstance(known, ArrayArgument):
        return known
    made = array.upper = ArrayArgument(array)
    return made


@typeof_impl.register(DeviceArray)
def _typeof_device_array(value: DeviceArray, context: Any) -> types.Array:
    del context
    return describe(value).type


def check_arguments(values: Sequence[Any], names: Sequence[str]) -> None:
    """Refuse, before anything is copied, what has no place in a kernel: a `KernelArgumentError` names the argument."""
    for value, name in zip(values, names, strict=True):
        _refuse_objects(value, name)
        if not isinstance(value, np.ndarray) and not is_device_array(value):
            type_of(value, name)


def _refuse_objects(value: Any, name: str) -> None:
    if isinstance(value, tuple):
        for member in value:
            _refuse_objects(member, name)
    elif isinstance(value, np.ndarray) and value.dtype.hasobject:
        raise KernelArgumentError(
            f"argument {name!r} is an array of dtype {value.dtype}, which holds Python objects; kernels take "
            "numbers: convert it with .astype(...)"
        )


def type_of(value: Any, name: str) -> types.Type:
    """The Numba type of argument *name*; `KernelArgumentError` for a value that has no place in a kernel."""
    try:
        found = typeof(value)
    except (ValueError, TypeError) as error:
        raise KernelArgumentError(
            f"argument {name!r} is a {type(value).__name__}, which kernels cannot take"
        ) from error
    if not is_passable(found):
        raise KernelArgumentError(
            f"argument {name!r} is a {type(value).__name__} (Numba type {found}); kernels take numbers, arrays and "
            "tuples of them"
        )
    return found


def is_passable(kind: types.Type) -> bool:
    """Whether a value of Numba type *kind* can be an argument of a kernel."""
    if isinstance(kind, (types.UniTuple, types.NamedUniTuple, types.Tuple, types.NamedTuple)):
        return all(is_passable(member) for member in kind)
    passable = (types.Number, types.Boolean, types.Array, types.NPDatetime, types.NPTimedelta, types.EnumMember)
    return isinstance(kind, passable)


def leaf_values(value: Any, kind: types.Type) -> list[Any]:
    """The scalars that *value* of Numba type *kind* is passed as, in the order of the kernel's parameters."""
    if isinstance(kind, types.BaseTuple):
        return [leaf for member, of in zip(value, kind, strict=True) for leaf in leaf_values(member, of)]
    if isinstance(kind, types.Array):
        return list(struct.unpack(f"<{5 + 2 * kind.ndim}q", describe(value).packed))
    if isinstance(kind, types.Complex):
        number = complex(value)
        return [number.real, number.imag]
    if isinstance(kind, (types.NPDatetime, types.NPTimedelta)):
        return [int(np.asarray(value).view(np.int64))]
    if isinstance(kind, types.EnumMember):
        return leaf_values(value.value, kind.dtype)
    if isinstance(kind, types.Integer):
        return [_wrap(int(value), kind)]
    return [bool(value) if isinstance(kind, types.Boolean) else float(value)]


def _wrap(value: int, kind: types.Integer) -> int:
    """*value* as the signed number with the same bits, which is how LLVM's integers are packed."""
    width = int(kind.bitwidth)
    low = value & ((1 << width) - 1)
    return low - (1 << width) if low >> (width - 1) else low


def packers(kinds: Sequence[types.Type], parameters: Sequence[Parameter]) -> list[Packer]:
    """One function for each argument that turns its value into the bytes of its part of the buffer, padding included.

    Joined in order, the bytes are the packed argument buffer that the layout *parameters* describes.
    """
    functions: list[Packer] = []
    position = start = 0
    for kind in kinds:
        count = leaf_count(kind)
        leaves = parameters[position : position + count]
        functions.append(_packer(kind, leaves, start))
        position += count
        start = leaves[-1].offset + leaves[-1].size if leaves else start
    return functions


def leaf_count(kind: types.Type) -> int:
    """How many parameters of a kernel an argument of Numba type *kind* becomes."""
    if isinstance(kind, types.BaseTuple):
        return sum(leaf_count(member) for member in kind)
    if isinstance(kind, types.Array):
        return 5 + 2 * int(kind.ndim)
    return 2 if isinstance(kind, types.Complex) else 1


def _packer(kind: types.Type, leaves: Sequence[Parameter], start: int) -> Packer:
    text = "<"
    for leaf in leaves:
        text += "x" * (leaf.offset - start) + FORMATS[leaf.type]
        start = leaf.offset + leaf.size
    pack = struct.Struct(text.replace("Q", "q")).pack
    padding = text.count("x")
    if isinstance(kind, types.Array):
        before = b"\0" * padding
        return (lambda array: before + array.upper.packed) if padding else (lambda array: array.upper.packed)
    if isinstance(kind, types.Float):
        return pack
    return lambda value: pack(*leaf_values(value, kind))
