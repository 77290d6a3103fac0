"""``hip.reduce``: kernels that combine all elements of an array by a function of two numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hip_runtime import DeviceArray, Stream, as_device_array, device_array, is_device_array, to_device
from numba_hip._numba.typing import from_dtype
from numba_hip.decorators import jit
from numba_hip.dispatch.dispatcher import Dispatcher
from numba_hip.language import shared, sync, thread_index

# What these mean in a kernel, a type checker cannot know.
grid: Any = thread_index.grid
gridsize: Any = thread_index.gridsize
blockIdx: Any = thread_index.blockIdx
threadIdx: Any = thread_index.threadIdx
syncthreads: Any = sync.syncthreads
shared_array: Any = shared.array

BLOCK = 256
MOST_BLOCKS = 256
"""The same on every device, so that the elements are combined in the same order everywhere. The partial results of the
first pass are at most as many as a block of the second has threads."""


class Reduce:
    """Combines the elements of arrays by *functor*, a function of two numbers that is associative and commutative.

    As a decorator, ``@hip.reduce`` turns a function into a reduction.
    """

    def __init__(self, functor: Callable[[Any, Any], Any]) -> None:
        self._functor = jit(device=True)(functor)
        self._kernels: dict[Any, Dispatcher] = {}

    def __repr__(self) -> str:
        return f"<hip reduction by {self._functor.__qualname__}>"

    def __call__(
        self, arr: Any, size: int | None = None, res: Any = None, init: Any = 0, stream: Stream | int | None = None
    ) -> Any:
        """The first *size* elements of *arr* (all by default), which has one axis, and *init*, combined.

        *arr* is an array of the host or the device. The result is returned; if *res*, an array on the device, is given,
        the result is stored in its element 0 instead, without waiting. The same elements always give the same result,
        to the last bit: the order of combination depends on *size* only.
        """
        if np.ndim(arr) != 1:
            raise TypeError(f"a reduction takes an array of one axis, got one of {np.ndim(arr)}")
        count: Any = int(arr.shape[0]) if size is None else size
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= arr.shape[0]:
            raise ValueError(f"size is {size!r}; the array has {arr.shape[0]} elements")
        if res is not None and not (isinstance(res, DeviceArray) and res.ndim == 1 and res.size):
            raise TypeError("res has to be an array on the device with one axis and an element at least")
        if res is not None and res.dtype != arr.dtype:
            raise TypeError(f"res has dtype {res.dtype}; the elements are {arr.dtype}")
        on = stream if isinstance(stream, Stream) else None
        target = device_array(1, arr.dtype) if res is None else res
        start = arr.dtype.type(init)
        if count == 0:
            target[:1].copy_to_device(np.full(1, start, arr.dtype), stream=on)
        else:
            self._launch(_on_device(arr, on), count, target, start, on)
        if res is not None:
            return None
        host = target.copy_to_host(stream=on)
        if on is not None:
            on.synchronize()
        return host[0]

    def _launch(self, arr: DeviceArray, count: int, target: DeviceArray, start: Any, on: Stream | None) -> None:
        kernel = self._kernels.get(arr.dtype)
        if kernel is None:
            kernel = self._kernels[arr.dtype] = _reduction_kernel(self._functor, from_dtype(arr.dtype))
        blocks = min(MOST_BLOCKS, -(-count // BLOCK))
        partial = device_array(blocks, arr.dtype)
        kernel[blocks, BLOCK, on](arr, count, partial, start, False)
        kernel[1, BLOCK, on](partial, blocks, target, start, True)


reduce = Reduce


def _on_device(arr: Any, on: Stream | None) -> DeviceArray:
    if isinstance(arr, DeviceArray):
        return arr
    return as_device_array(arr) if is_device_array(arr) else to_device(np.ascontiguousarray(arr), stream=on)


def _reduction_kernel(functor: Any, element: Any) -> Dispatcher:
    """A kernel that combines elements to one result for each block; with *last* also with a start value."""

    def combine(arr, count, results, start, last):  # type: ignore[no-untyped-def]  # for kernels alone
        values = shared_array(BLOCK, element)
        thread = threadIdx.x
        first = grid(1)
        if first < count:
            value = arr[first]
            for place in range(first + gridsize(1), count, gridsize(1)):
                value = functor(value, arr[place])
            values[thread] = value
        syncthreads()
        held = min(count - blockIdx.x * BLOCK, BLOCK)
        width = BLOCK // 2
        while width > 0:
            if thread < width and thread + width < held:
                values[thread] = functor(values[thread], values[thread + width])
            syncthreads()
            width //= 2
        if thread == 0:
            results[blockIdx.x] = functor(start, values[0]) if last else values[0]

    kernel: Dispatcher = jit(combine)
    return kernel
