"""Memory that algorithms need while they work, asked for once and used again."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any

import numpy as np

from hip_runtime import Device, DeviceArray, Stream, device_array
from hip_runtime.layout import dense
from numba_hip.errors import AlgorithmError

_entered: ContextVar[tuple[Workspace, ...]] = ContextVar("workspaces", default=())
"""Those whose blocks this context, such as a thread, is in: the last one is the current one."""


class Workspace:
    """Memory for the algorithms that are called in a ``with`` block of it.

    A call takes what it needs, and gives it back when it returns: the next one, of the same stream, finds it. So calls
    of the same sizes allocate nothing but their results, and nothing at all if these go to ``out=``: they can then be
    captured, after they were called once. All calls have the same device and stream; others raise `AlgorithmError`.
    A captured graph uses the memory whenever it is launched: keep other streams from it, and the workspace open, until
    the graph is done.
    """

    def __init__(self) -> None:
        self._free: list[DeviceArray] = []
        self._owner: tuple[Device, int | None] | None = None
        self._lock = threading.RLock()
        self.nbytes = 0
        """How much memory there is."""

    def __enter__(self) -> Workspace:
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        _entered.set(_entered.get()[:-1])

    def claim(self, device: Device, stream: Stream | None) -> None:
        """Let calls on *device* and *stream* use this. Raises `AlgorithmError` if it belongs to others."""
        owner = device, None if stream is None else stream.handle
        with self._lock:
            if self._owner is None:
                self._owner = owner
            if self._owner != owner:
                raise AlgorithmError(
                    "stream is another one than that of the calls before in this workspace, whose memory may still be "
                    "in use there: make a hip.algorithms.Workspace for each stream"
                )

    def take(self, nbytes: int, device: Device) -> DeviceArray:
        """Memory of at least *nbytes* bytes: the smallest that is free, or new."""
        with self._lock:
            fitting = [array for array in self._free if array.nbytes >= nbytes]
            if fitting:
                chosen = min(fitting, key=lambda array: int(array.nbytes))
                self._free = [array for array in self._free if array is not chosen]
                return chosen
            self.nbytes += nbytes
        return device_array(nbytes, np.uint8, device=device)

    def give_back(self, arrays: list[DeviceArray]) -> None:
        """Let other calls have *arrays*."""
        with self._lock:
            self._free += arrays


class Lease:
    """What a call has of the current workspace. Without one, it allocates.

    The memory is given back with the last reference, that of the call's last `Operands`: what was launched, and
    graphs, keep the memory but not this.
    """

    def __init__(self, device: Device, stream: Stream | None) -> None:
        self._taken: list[DeviceArray] = []
        self._device = device
        self._workspace = next(reversed(_entered.get()), None)
        if self._workspace is not None:
            self._workspace.claim(device, stream)

    def array(self, count: int, dtype: Any) -> DeviceArray:
        """Memory for *count* elements of *dtype*, until the call returns."""
        if self._workspace is None:
            return device_array(count, dtype, device=self._device)
        kind = np.dtype(dtype)
        bytes_of = self._workspace.take(max(count, 1) * kind.itemsize, self._device)
        self._taken.append(bytes_of)
        return DeviceArray(dense((count,), kind.itemsize), kind, bytes_of.buffer, device=self._device)

    def __del__(self) -> None:
        if self._taken and self._workspace is not None:
            self._workspace.give_back(self._taken)
