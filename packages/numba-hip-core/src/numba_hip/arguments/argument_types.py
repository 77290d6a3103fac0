"""The Numba type of each argument of a kernel, and its bytes in the packed argument buffer."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import typeof_impl

from hip_runtime import Device, DeviceArray, MemoryKind, as_device_array, devices, is_device_array
from hip_runtime.cuda_array_names import set_numba_type
from hip_runtime.errors import ArrayError
from hip_runtime.foreign_arrays import is_masked
from hip_runtime.interop import speaks_dlpack
from hip_runtime.said_names import our
from hip_runtime.small_floats import is_of_ml_dtypes
from numba_hip._numba.typing import from_dtype, type_code
from numba_hip.abi.array_parameters import stride_axes
from numba_hip.arguments.transfer_hints import ArgHint
from numba_hip.arguments.tuple_members import with_members
from numba_hip.bfloat import is_bfloat16, know_ml_dtypes
from numba_hip.errors import KernelArgumentError, KernelArgumentTypeError
from numba_hip.typeof import typeof


class ArrayArgument:
    """What a kernel gets of a device array: its Numba type, and its bytes in the buffer, ``packed`` for a kernel that
    takes any strides, and ``dense`` for one that takes the array as contiguous (`numba_hip.abi.array_parameters`).

    An array's shape, strides, dtype and address never change, so this is made once and kept with the array.
    """

    __slots__ = ("code", "dense", "packed", "type")

    def __init__(self, array: DeviceArray) -> None:
        self.type = _array_type(array)
        self.code = _code_of(self.type, array)
        start, steps = (array.address, *array.shape), array.strides
        self.packed = _pack_numbers(*start, *steps)
        self.dense = self.packed
        if self.type.layout != "A":
            self.dense = _pack_numbers(*start, *(steps[axis] for axis in stride_axes(self.type)))


def _array_type(array: DeviceArray) -> types.Array:
    if array.dtype.isbuiltin == 1 and not array.dtype.hasobject:
        return _known_array_type(array.dtype, array.ndim, layout_of(array), array.readonly)
    return types.Array(element_type(array.dtype), array.ndim, layout_of(array), readonly=array.readonly)


@lru_cache(256)
def _known_array_type(dtype: np.dtype[Any], ndim: int, layout: str, readonly: bool) -> types.Array:
    """The type of arrays of one of NumPy's own numbers: making it takes longer than the rest of a launch."""
    return types.Array(element_type(dtype), ndim, layout, readonly=readonly)


class RecordArgument(ArrayArgument):
    """What a kernel gets of a record, a device array without dimensions: the type of the record and its address."""

    __slots__ = ()

    def __init__(self, array: DeviceArray) -> None:
        self.type = element_type(array.dtype)
        self.code = _code_of(self.type, array)
        self.packed = self.dense = _pack_numbers(array.address)


def _code_of(kind: types.Type, array: DeviceArray) -> Any:
    """What tells arguments apart: their types and, where there are several devices, which of them can reach them."""
    if len(devices()) == 1:
        return type_code(kind)
    return type_code(kind), array.device.id if array.buffer.kind is MemoryKind.DEVICE else None


def check_devices(values: Sequence[Any], names: Sequence[str], device: Device) -> None:
    """Check that kernels of *device* may use the arrays among *values*: a `KernelArgumentError` names one that they may
    not."""
    if len(devices()) == 1:
        return
    for value, name in zip(values, names, strict=True):
        if isinstance(value, tuple):
            check_devices(value, [name + place for place in _places(value)], device)
        elif isinstance(value, DeviceArray) and not _is_within_reach(value, device):
            raise KernelArgumentError(
                f"argument {name!r} is an array of {value.device}, and the kernel runs on {device}: copy it there, "
                f"launch where it is (with {our('gpus')}[number]: ...), or let the one device use the memory of "
                "the other (Context.enable_peer_access)"
            )


def _is_within_reach(array: DeviceArray, device: Device) -> bool:
    return array.device is device or array.buffer.kind is not MemoryKind.DEVICE or array.device in device.peers


def _pack_numbers(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}q", *numbers)


def element_type(dtype: np.dtype[Any]) -> types.Type:
    """The Numba type of elements of NumPy's type *dtype*. Raises `KernelArgumentError` for 8-bit floats and the
    like."""
    know_ml_dtypes()
    if is_of_ml_dtypes(dtype) and not is_bfloat16(dtype):
        _check_float8(dtype)
    if problem := _problem_of_elements(dtype):
        raise KernelArgumentTypeError(f"an array of dtype {dtype} {problem}")
    return from_dtype(dtype)


def _check_float8(dtype: np.dtype[Any]) -> None:
    """Raise `KernelArgumentError` for a type of ml_dtypes that kernels do not have."""
    from numba_hip.float8 import FLOAT8

    if dtype.name not in FLOAT8:
        raise KernelArgumentError(
            f"kernels do not compute with elements of type {dtype}; pass array.view(np.uint8) for their bits, or "
            "convert the array with .astype(...)"
        )


def _problem_of_elements(dtype: np.dtype[Any]) -> str:
    """Why kernels cannot use elements of *dtype*, and what to pass instead; empty if they can."""
    base = dtype.base
    if base.hasobject:
        return "holds Python objects; kernels take numbers: convert it with .astype(...)"
    if not base.isnative:
        return (
            "has its bytes in the order of other machines; pass a copy in the order of this one: "
            ".astype(array.dtype.newbyteorder('='))"
        )
    for kind, longest in (("f", np.dtype(np.float64)), ("c", np.dtype(np.complex128))):
        if base.kind == kind and base.itemsize > longest.itemsize:
            return f"has longer numbers than devices have; pass .astype(np.{longest})"
    if base.kind in "mM" and (step := np.datetime_data(base)[1]) != 1:
        known = base.name.replace(f"[{step}", "[")
        return f"counts in steps of {step} units, and kernels in one: pass .astype({known!r})"
    if base.type is np.void and base.names is None:
        return "is bytes without a meaning; kernels take numbers and records: pass a .view(...) of such a type"
    for field in base.names or ():
        if problem := _problem_of_elements(base[field]):
            return f"has the field {field!r} of dtype {base[field]}, which {problem}"
    return ""


def layout_of(array: DeviceArray) -> str:
    """The array's layout, ``"C"``, ``"F"`` or ``"A"``, as in Numba's array types."""
    if array.is_c_contiguous():
        return "C"
    return "F" if array.is_f_contiguous() else "A"


def describe(array: DeviceArray) -> ArrayArgument:
    """The `ArrayArgument` of *array*, made on first use."""
    known = array.upper
    if isinstance(known, ArrayArgument):
        return known
    kind = RecordArgument if is_record(array) else ArrayArgument
    made = array.upper = kind(array)
    return made


def is_record(array: DeviceArray | np.ndarray[Any, Any]) -> bool:
    """Whether kernels take *array* as a record: it has a structured element, and no dimensions."""
    return array.ndim == 0 and array.dtype.names is not None


@typeof_impl.register(DeviceArray)
def _typeof_device_array(value: DeviceArray, context: Any) -> types.Type:
    del context
    return describe(value).type


set_numba_type(lambda array: describe(array).type)


def is_on_device(value: object) -> bool:
    """Whether *value* is an array that kernels use in place: of a device, or of a library with DLPack."""
    return is_device_array(value) or speaks_dlpack(value)


def plain(value: Any, argument: str) -> Any:
    """*value* of the *argument* as kernels take it: instances of classes as named tuples of their fields.
    `KernelArgumentError` for one that contains itself."""
    if isinstance(value, (int, float, np.generic, np.ndarray, DeviceArray)):
        return value
    from numba_hip.arguments.value_records import as_plain  # which most programs do not need

    try:
        return as_plain(value)
    except RecursionError:
        raise KernelArgumentError(
            f"argument {argument!r} is a {type(value).__name__} that contains itself, or too many objects in one "
            "another: kernels take the fields of an object by value"
        ) from None


def check_arguments(values: Sequence[Any], names: Sequence[str]) -> None:
    """Check *values* before anything is copied: a `KernelArgumentError` names an argument that kernels do not
    support."""
    for given, name in zip(values, names, strict=True):
        value = _hinted(given, name) if isinstance(given, ArgHint) else given
        _refuse_objects(value, name)
        if not isinstance(value, np.ndarray) and not is_on_device(value):
            type_of(value, name)


def _hinted(hint: ArgHint, name: str) -> Any:
    """The value in *hint*. Raises `KernelArgumentError` if it cannot be copied in that direction."""
    value = hint.value
    if not (isinstance(value, (np.ndarray, np.void, tuple)) or is_on_device(value)):
        raise KernelArgumentError(
            f"argument {name!r} is {type(hint).__name__} around a {type(value).__name__}; hints are for arrays, "
            "records and tuples of them: pass the value itself"
        )
    for member in value if isinstance(value, tuple) else (value,):
        if isinstance(member, (np.ndarray, np.void)) and hint.copies_out and not member.flags.writeable:
            raise KernelArgumentError(
                f"argument {name!r} is {type(hint).__name__} around an array that is read-only, and nothing can be "
                "copied back to it; use In"
            )
    return value


def _refuse_objects(value: Any, name: str) -> None:
    if isinstance(value, tuple):
        for member in value:
            _refuse_objects(member, name)
    elif is_masked(value):
        raise KernelArgumentError(
            f"argument {name!r} is a masked array, whose mask kernels do not see: pass {name}.filled(value), or "
            f"{name}.data and {name}.mask"
        )
    elif isinstance(value, np.ndarray) and (problem := _problem_of_elements(value.dtype)):
        raise KernelArgumentTypeError(f"argument {name!r} is an array of dtype {value.dtype}, which {problem}")


def type_of(value: Any, name: str) -> types.Type:
    """The Numba type of argument *name*. Raises `KernelArgumentError` for a value that kernels do not support."""
    know_ml_dtypes()
    try:
        found = typeof(_on_device(value))
    except ArrayError:
        raise
    except RecursionError:
        raise KernelArgumentError(
            f"argument {name!r} is a {type(value).__name__} of objects that contain themselves, or of too many in one "
            "another: kernels take numbers, arrays and tuples of them"
        ) from None
    except (ValueError, TypeError):
        _check_fields(value, name)
        if isinstance(value, int):
            raise KernelArgumentError(
                f"argument {name!r} is {value:#x}; kernels take integers from -2**63 to 2**64 - 1"
            ) from None
        raise KernelArgumentTypeError(
            f"argument {name!r} is a {type(value).__name__}, which kernels cannot take{_remedy(value, name)}"
        ) from None
    if not is_passable(found):
        _check_fields(value, name)
        raise KernelArgumentTypeError(
            f"argument {name!r} is a {type(value).__name__} (Numba type {found}); kernels take numbers, arrays and "
            f"tuples of them{_remedy(value, name)}"
        )
    return found


def _on_device(value: Any) -> Any:
    """*value*, where arrays of other libraries are device arrays over the same memory, also within tuples."""
    if isinstance(value, tuple):
        return with_members(value, _on_device)
    if isinstance(value, (int, float, np.generic, np.ndarray, DeviceArray)) or not is_on_device(value):
        return value
    return as_device_array(value, synchronize=False)


def _check_fields(value: Any, name: str) -> None:
    """Raise `KernelArgumentError` for the first member of a tuple that kernels do not support."""
    if isinstance(value, tuple):
        fields = [f".{field}" for field in value._fields] if hasattr(value, "_fields") else _places(value)
        for field, member in zip(fields, value, strict=True):
            type_of(member, name + field)


def _places(value: Sequence[Any]) -> list[str]:
    return [f"[{place}]" for place in range(len(value))]


def _remedy(value: Any, name: str) -> str:
    """What to pass instead of *value*, whose class kernels do not support."""
    if isinstance(value, (list, range, set, frozenset)) or type(value).__module__.startswith("numba.typed"):
        return f"; pass np.array({name})" if isinstance(value, Sequence) else f"; pass np.array(list({name}))"
    if isinstance(value, dict):
        return "; pass what is in it as arguments, as a named tuple, or its values as an array"
    if isinstance(value, (str, bytes)):
        return f"; pass an array, np.array([{name}]), or the numbers of its characters"
    if hasattr(value, "columns") and hasattr(value, "to_numpy"):
        return f"; pass a column of it, {name}['...'].to_numpy(), or all as an array, {name}.to_numpy()"
    if hasattr(value, "to_numpy"):
        return f"; pass {name}.to_numpy() (with .copy() where the kernel writes to it)"
    if isinstance(value, Enum):
        return "; of an enumeration they take members whose values are numbers of one type, or tuples of them"
    if isinstance(value, np.generic) and (problem := _problem_of_elements(value.dtype)):
        return f": dtype {value.dtype} {problem}"
    return "; np.asarray gives an array of what is in it" if hasattr(type(value), "__array__") else ""


def argument_type(value: Any, name: str, *, hinted: bool = False) -> types.Type:
    """The type that a kernel is compiled for when argument *name* is *value*, which is not copied for it.

    An array that is *hinted*, and so copied for the kernel to write to, is not read-only.
    """
    if isinstance(value, types.Type):
        return value
    if isinstance(value, type):
        return typeof(value)
    if isinstance(value, ArgHint):
        return argument_type(value.value, name, hinted=True)
    value = plain(value, name)
    if isinstance(value, np.ndarray) and not is_on_device(value):
        if is_record(value):
            return element_type(value.dtype)
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"  # that of the copy
        readonly = not (hinted or value.flags.writeable)
        return types.Array(element_type(value.dtype), value.ndim, order, readonly=readonly)
    if is_on_device(value):
        return describe(as_device_array(value, synchronize=False)).type
    if isinstance(value, tuple):
        found = type_of(value, name)
        members = [argument_type(member, name, hinted=hinted) for member in value]
        if isinstance(found, types.BaseNamedTuple):
            return types.NamedTuple(members, type(value))
        return types.BaseTuple.from_types(members)
    return type_of(value, name)


def is_passable(kind: types.Type) -> bool:
    """Whether a value of Numba type *kind* can be an argument of a kernel."""
    if isinstance(kind, (types.UniTuple, types.NamedUniTuple, types.Tuple, types.NamedTuple)):
        return all(is_passable(member) for member in kind)
    if isinstance(kind, types.EnumMember):
        return is_passable(kind.dtype) and not isinstance(kind.dtype, types.Array)
    passable = (
        types.Number, types.Boolean, types.Array, types.NPDatetime, types.NPTimedelta, types.Record, types.CPointer,
        types.NoneType,
    )  # fmt: skip
    return isinstance(kind, passable)
