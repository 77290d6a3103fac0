"""``hip.reduce``: kernels that combine all elements of an array by a function of two numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hip_runtime import (
    Device,
    DeviceArray,
    Stream,
    as_device_array,
    current_device,
    device_array,
    is_device_array,
    to_device,
)
from hip_runtime.copying import check_dtype
from hip_runtime.foreign_arrays import check_unmasked
from hip_runtime.layout import dense
from hip_runtime.memory import Buffer
from hip_runtime.stream import find_stream
from numba_hip.arguments.argument_types import element_type
from numba_hip.array_functions.elementwise import keeps_value
from numba_hip.decorators import jit
from numba_hip.dispatch.dispatcher import Dispatcher
from numba_hip.dispatch.launch import ConfiguredKernel
from numba_hip.language.untyped_names import blockIdx, shared_array, syncthreads, threadIdx

LANES = 32
"""Columns of a row of an array: a thread for each combines what is in it, so that the threads of a row walk through
memory side by side, from one end of the row to the other. That is quick on processors, too, and needs no barrier."""

ROWS_IN_BLOCK = 8

ROWS, FEW_ROWS, ROWS_FOR_PROCESSORS = 1024, 64, 512
"""Into how many rows an array is cut: as many as keep a GPU busy, or as few as leave one block's work; for a processor,
which runs a block without waiting for memory, as many as both."""

MANY = 1 << 17
"""Elements from which on they are cut into many rows."""

FEW = FEW_ROWS * LANES
"""Elements that one block combines on any device."""

BLOCK = 256
"""Threads that combine what is left."""


class Kernels(NamedTuple):
    """What reduces elements of one type: a kernel for columns, one for what is left, that on the default stream, and
    the number that most reductions start with, None for dates."""

    columns: Dispatcher
    last: Dispatcher
    at_once: ConfiguredKernel
    zero: Any


class PartialResults:
    """Arrays of elements of *dtype* on *device* that a reduction works in."""

    def __init__(self, device: Device, dtype: Any) -> None:
        self._device = device
        self._dtype = dtype
        self._made: dict[int, DeviceArray] = {}

    def array(self, size: int) -> DeviceArray:
        """The array of *size* elements."""
        made = self._made.get(size)
        if made is None:
            made = self._made[size] = device_array(size, self._dtype, device=self._device)
        return made


class Reduce:
    """Combines the elements of arrays by *functor*, a function of two numbers that is associative and commutative.

    As a decorator, ``@hip.reduce`` turns a function into a reduction.
    """

    def __init__(self, functor: Callable[[Any, Any], Any]) -> None:
        self._functor = jit(device=True)(functor)
        _check_parameters(self._functor.py_func)
        self._kernels: dict[Any, Kernels] = {}
        self._spare: dict[tuple[Device, Any], list[PartialResults]] = {}
        """Workspaces that nothing uses."""
        self._in_order: dict[tuple[Device, Any], list[PartialResults]] = {}
        """Workspaces that nothing but work of the default stream uses."""

    def __repr__(self) -> str:
        return f"<hip reduction by {self._functor.__qualname__}>"

    def __call__(
        self, arr: Any, size: int | None = None, res: Any = None, init: Any = 0, stream: Stream | int | None = None
    ) -> Any:
        """The first *size* elements of *arr* (all by default), which has one axis, and *init*, combined.

        *arr* is an array of the host or the device. The result is returned; if *res*, an array on the device, is given,
        the result is stored in its element 0 instead, without waiting. The same elements always give the same result,
        to the last bit: the order of combination depends on *size* only. Dates, which have no zero, are combined with
        the first of them unless there is an *init*.
        """
        if isinstance(arr, DeviceArray):
            shape = arr.shape
        else:
            check_unmasked(arr, "the array of a reduction")
            shape = np.shape(arr)
        if len(shape) != 1:
            raise TypeError(f"a reduction takes an array of one axis, got one of {len(shape)}")
        count: Any = shape[0] if size is None else size
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= shape[0]:
            raise ValueError(f"size is {size!r}; the array has {shape[0]} elements")
        if not hasattr(arr, "dtype"):
            arr = np.asarray(arr)
        dtype = arr.dtype
        if init is None:  # NumPy makes NaN of it
            raise TypeError(f"init is None; it has to be a number that {dtype} has, 0 by default")
        kernels = self._kernels.get(dtype) or self._make_kernels(dtype)
        on = None if stream is None else find_stream(stream)
        start = kernels.zero if type(init) is int and not init else _as_element(init, dtype)
        if start is None:
            start = _first_of(arr, count, on)
        if res is None:
            return self._combine_for_host(arr, count, start, on) if count else start
        if not (isinstance(res, DeviceArray) and len(res.shape) == 1 and res.shape[0]):
            raise TypeError("res has to be an array on the device with one axis and an element at least")
        if res.dtype is not dtype and res.dtype != dtype:
            raise TypeError(f"res has dtype {res.dtype}; the elements are {dtype}")
        if not count:
            res[:1].copy_to_device(np.full(1, start, arr.dtype), stream=on)
        elif on is not None:
            self._launch(_on_device(arr, on), count, res, start, on, PartialResults(res.device, dtype))
        elif count <= FEW and isinstance(arr, DeviceArray):
            kernels.at_once(arr, count, res, start)
        else:
            self._combine_in_order(_on_device(arr, on), count, res, start)
        return None

    def _combine_for_host(self, arr: Any, count: int, start: Any, on: Stream | None) -> Any:
        """The elements and *start* combined, as a number that the host has."""
        found = _in_place(arr)
        source = _on_device(arr, on) if found is None else found
        spare = self._spare.setdefault((source.device, arr.dtype), [])
        space = spare.pop() if spare else PartialResults(source.device, arr.dtype)
        result = space.array(1)
        self._launch(source, count, result, start, on, space)
        host = result.copy_to_host(stream=on)
        if on is not None:
            on.synchronize()
        spare.append(space)  # no longer in use
        return host[0]

    def _combine_in_order(self, arr: DeviceArray, count: int, target: DeviceArray, start: Any) -> None:
        """Combine on the default stream, which runs what it is given in order: so the workspace is there for the next
        reduction on it before this one is done."""
        spare = self._in_order.setdefault((target.device, arr.dtype), [])
        space = spare.pop() if spare else PartialResults(target.device, arr.dtype)
        self._launch(arr, count, target, start, None, space)
        spare.append(space)

    def _launch(
        self, arr: DeviceArray, count: int, target: DeviceArray, start: Any, on: Stream | None, space: PartialResults
    ) -> None:
        kernels = self._kernels[arr.dtype]
        stream = 0 if on is None else on
        is_processor = target.device.is_cpu
        few = (ROWS_FOR_PROCESSORS if is_processor else FEW_ROWS) * LANES
        while count > few:
            most = ROWS * LANES if count >= MANY and not is_processor else few
            length = -(-count // most) * LANES
            left = count // length * LANES + min(count % length, LANES)
            partial = space.array(most)
            blocks = -(-left // (LANES * ROWS_IN_BLOCK))
            kernels.columns[blocks, (LANES, ROWS_IN_BLOCK), stream](arr, count, length, partial)
            arr, count = partial, left
        kernels.last[1, BLOCK, stream](arr, count, target, start)

    def _make_kernels(self, dtype: Any) -> Kernels:
        check_dtype(dtype)
        last = _last_kernel(self._functor, element_type(dtype))
        zero = None if dtype.kind == "M" else _as_element(0, dtype)
        made = self._kernels[dtype] = Kernels(_column_kernel(self._functor), last, last[1, BLOCK], zero)
        return made


reduce = Reduce


def _check_parameters(function: Callable[..., Any]) -> None:
    """Raise `TypeError` for a *function* that cannot be called with two numbers."""
    declared = inspect.signature(function)
    try:
        declared.bind(0, 0)
    except TypeError as error:
        raise TypeError(
            f"{function.__name__}{declared} is called with two numbers, of which a reduction makes one: {error}"
        ) from None


def _as_element(init: Any, dtype: np.dtype[Any]) -> Any:
    """*init* as an element of *dtype*. Raises `TypeError` for an integer, a date or a duration that such elements do
    not hold."""
    if dtype.kind not in "mM":
        try:
            if dtype.kind not in "iu" or keeps_value(init, dtype):
                return dtype.type(init)
        except (TypeError, ValueError):
            pass
        raise TypeError(f"init is {init!r}; it has to be a number that {dtype} has, 0 by default")
    try:
        found = np.array(init, dtype)[()]
    except (TypeError, ValueError):
        found = None
    if found is None or (isinstance(init, np.generic) and not np.isnat(found) and found != init):
        raise TypeError(f"init is {init!r}, which an element of {dtype} does not hold; pass {dtype.type.__name__}(...)")
    return found


def _first_of(arr: Any, count: int, on: Stream | None) -> Any:
    """The first element of *arr*."""
    if not count:
        raise TypeError("init has to be a date, as there are no elements: dates have no zero")
    first = _on_device(arr, on)[:1].copy_to_host(stream=on) if is_device_array(arr) else arr[:1]
    if on is not None:
        on.synchronize()
    return first[0]


def _on_device(arr: Any, on: Stream | None) -> DeviceArray:
    if isinstance(arr, DeviceArray):
        return arr
    return as_device_array(arr) if is_device_array(arr) else to_device(np.ascontiguousarray(arr), stream=on)


def _in_place(arr: Any) -> DeviceArray | None:
    """The host array *arr* as an array of the CPU device, as long as somebody waits; ``None`` where that cannot be."""
    device = current_device()
    if type(arr) is not np.ndarray or not device.is_cpu or not (arr.flags.c_contiguous and arr.flags.aligned):
        return None
    check_dtype(arr.dtype)
    memory = Buffer(arr.ctypes.data, arr.nbytes, owner=arr)
    return DeviceArray(dense(arr.shape, arr.itemsize), arr.dtype, memory, device=device)


def _column_kernel(functor: Any) -> Dispatcher:
    """A kernel that combines what is in each column of each row of an array; rows have *length* elements."""

    def combine_columns(arr, count, length, results):  # type: ignore[no-untyped-def]  # for kernels alone
        lane = threadIdx.x
        row = blockIdx.x * ROWS_IN_BLOCK + threadIdx.y
        start = row * length
        end = min(start + length, count)
        first = start + lane
        if first < end:
            value = arr[first]
            for place in range(first + LANES, end, LANES):
                value = functor(value, arr[place])
            results[row * LANES + lane] = value

    kernel: Dispatcher = jit(combine_columns)
    return kernel


def _last_kernel(functor: Any, element: Any) -> Dispatcher:
    """A kernel of one block that combines all elements of an array with a start value."""

    def combine(arr, count, results, start):  # type: ignore[no-untyped-def]  # for kernels alone
        values = shared_array(BLOCK, element)
        thread = threadIdx.x
        if thread < count:
            value = arr[thread]
            for place in range(thread + BLOCK, count, BLOCK):
                value = functor(value, arr[place])
            values[thread] = value
        syncthreads()
        width = BLOCK // 2
        while width > 0:
            if thread < width and thread + width < count:
                values[thread] = functor(values[thread], values[thread + width])
            syncthreads()
            width //= 2
        if thread == 0:
            results[0] = functor(start, values[0])

    kernel: Dispatcher = jit(combine)
    return kernel
