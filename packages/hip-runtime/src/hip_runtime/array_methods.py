"""Methods of arrays on all elements: fill, conversion, lists; and errors that say what to use for arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from hip_runtime import layout as layouts
from hip_runtime.copying import STAGED_BYTES, check_dtype, to_device
from hip_runtime.element_values import host_value
from hip_runtime.errors import ArrayTypeError, CopyError

if TYPE_CHECKING:
    from hip_runtime.array import DeviceArray
    from hip_runtime.stream import Stream

NUMBERS = (int, float, complex, np.generic)

INSTEAD = (
    "a device array is memory for kernels; np.asarray(array) is a copy of it for NumPy, a kernel, "
    "hip.algorithms or a ufunc of vectorize computes on the device, and other libraries, as CuPy and PyTorch, take the "
    "array as it is"
)

NUMPY_METHODS = frozenset(
    {"all", "any", "argmax", "argmin", "argsort", "clip", "conj", "cumprod", "cumsum", "dot", "max", "mean", "min",
     "prod", "repeat", "round", "sort", "std", "sum", "take", "trace", "var"}
)  # fmt: skip
"""Methods of NumPy's arrays that compute."""

OPERATIONS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
UNARY = {"neg": "-", "pos": "+", "invert": "~", "abs": "abs()"}


class ArrayMethods:
    """The part of `DeviceArray` that concerns all of its elements."""

    __slots__ = ()

    def fill(self, value: Any, stream: Stream | int | None = None) -> None:
        """Set all elements to *value*, a number; `CopyError` for an array of more."""
        array = cast("DeviceArray", self)
        if not isinstance(value, NUMBERS) and math.prod(np.shape(value)) > 1:
            raise CopyError(
                f"fill takes one number, not an array of shape {np.shape(value)}: array[...] = value copies it"
            )
        if not (array.size and (array.is_c_contiguous() or array.is_f_contiguous())):
            array.setitem(..., value, stream)
            return
        flat = array if array.ndim == 1 else array.reshape(array.size, order="C" if array.is_c_contiguous() else "F")
        filled = _fill_start(flat, value, stream)
        while filled < array.size:  # doubles the filled part each time, on the device
            more = min(filled, array.size - filled)
            flat.setitem(slice(filled, filled + more), flat[:more], stream)
            filled += more

    def astype(self, dtype: Any, stream: Stream | int | None = None) -> DeviceArray:
        """A copy with elements of *dtype*, converted on the host as NumPy does it."""
        array = cast("DeviceArray", self)
        kind = check_dtype(dtype)
        order = "F" if array.is_f_contiguous() and not array.is_c_contiguous() else "C"
        if kind == array.dtype:
            return array.copy(order, stream)
        host = array.copy_to_host(stream=stream)
        array._wait(stream)
        layout = layouts.dense(array.shape, kind.itemsize, order)
        memory = array.device.allocate(layout.nbytes)
        made = type(array)(layout, kind, memory, device=array.device, stream=array.stream)
        made.copy_to_device(host.astype(kind), stream)
        return made

    def tolist(self) -> Any:
        """The elements as Python numbers, in nested lists."""
        return cast("DeviceArray", self).copy_to_host().tolist()

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in NUMPY_METHODS]


def _fill_start(flat: DeviceArray, value: Any, stream: Stream | int | None) -> int:
    """Set the first elements of *flat* to *value*, and return how many: as many as one copy has that does not wait."""
    if not isinstance(value, (*NUMBERS, np.ndarray)):  # maybe on a device
        flat.setitem(slice(0, 1), value, stream)
        return 1
    flat._check_writable()
    count = min(max(STAGED_BYTES // flat.itemsize, 1), flat.size)
    target = flat if count == flat.size else flat[:count]
    to_device(target, np.repeat(host_value(value, flat if flat.size == 1 else flat[:1]), count), flat._handle(stream))
    return count


class _MissingMethod:
    """A method that arrays do not have: the error for asking says what to do instead. A ``__getattr__`` would slow down
    the lookup of every attribute of an array, and a launch looks up several."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, array: object, owner: type | None = None) -> NoReturn:
        raise AttributeError(f"a device array has no method {self._name}: {INSTEAD}")


def _refusing(symbol: str) -> Callable[[Any, Any], Any]:
    def operation(array: Any, other: Any) -> Any:
        if not isinstance(other, (ArrayMethods, int, float, complex)) or isinstance(other, np.generic):
            return NotImplemented  # the other operand's class may support device arrays
        raise ArrayTypeError(f"a device array has no operator {symbol}: {INSTEAD}")

    return operation


def _refusing_alone(symbol: str) -> Callable[[Any], NoReturn]:
    def operation(array: Any) -> NoReturn:
        raise ArrayTypeError(f"a device array has no operator {symbol}: {INSTEAD}")

    return operation


for _name in NUMPY_METHODS:
    setattr(ArrayMethods, _name, _MissingMethod(_name))
for _name, _symbol in OPERATIONS.items():
    for _kind in ("", "r", "i"):
        setattr(ArrayMethods, f"__{_kind}{_name}__", _refusing(_symbol + "=" * (_kind == "i")))
for _name, _symbol in COMPARISONS.items():
    setattr(ArrayMethods, f"__{_name}__", _refusing(_symbol))
for _name, _symbol in UNARY.items():
    setattr(ArrayMethods, f"__{_name}__", _refusing_alone(_symbol))
