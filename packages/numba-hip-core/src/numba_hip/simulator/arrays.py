"""The arguments of a kernel in the simulator: NumPy arrays, and everything else unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np

from hip_runtime import DeviceArray, as_device_array, current_device
from numba_hip.arguments.argument_types import is_on_device
from numba_hip.arguments.transfer_hints import ArgHint
from numba_hip.dispatch.transfer import SharedCopies

HostArray = np.ndarray[Any, Any]


class _Memory:
    """The memory of a device array of the CPU device, for NumPy; keeps it alive."""

    def __init__(self, array: DeviceArray) -> None:
        self.buffer = array.buffer
        self.__array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "strides": array.strides,
            "typestr": f"|V{array.itemsize}",
            "data": (array.address, array.readonly),
        }


class Arguments:
    """The arguments of one simulated launch. Host arrays are copied, as they are for a device, and written back."""

    def __init__(self) -> None:
        self._written: list[tuple[Any, HostArray]] = []
        self._shared: SharedCopies[HostArray] = SharedCopies()

    def prepare(self, value: Any, hint: type[ArgHint] | None = None) -> Any:
        """*value* as the kernel receives it."""
        if isinstance(value, ArgHint):
            return self.prepare(value.value, type(value))
        if isinstance(value, tuple):
            members = [self.prepare(member, hint) for member in value]
            return value._make(members) if hasattr(value, "_make") else tuple(members)
        if is_on_device(value):
            return self._on_device(as_device_array(value))
        if isinstance(value, (np.ndarray, np.void)):
            return self._on_host(value, hint)
        return value

    def _on_host(self, value: Any, hint: type[ArgHint] | None) -> Any:
        copied_in = hint is None or hint.copies_in
        is_shared = isinstance(value, np.ndarray) and copied_in and (hint is None or hint.copies_out)
        if is_shared and (known := self._shared.find(value)) is not None:
            return as_seen(known)
        copy = np.array(value) if copied_in else np.full_like(np.asarray(value), 0)
        if value.flags.writeable if hint is None else hint.copies_out:
            self._written.append((value, copy))
        elif hint is None:
            copy.flags.writeable = False
        if is_shared:
            self._shared.add(value, copy)
        return as_seen(copy)

    def _on_device(self, array: DeviceArray) -> Any:
        if array.device.is_cpu:  # its memory is that of the host
            return as_seen(np.asarray(_Memory(array)).view(array.dtype))
        copy = array.copy_to_host()
        self._written.append((array, copy))
        return as_seen(copy)

    def write_back(self) -> None:
        """Copy what the kernel wrote to where the arguments came from."""
        for target, copy in self._written:
            if isinstance(target, DeviceArray):
                target.copy_to_device(copy)
            elif isinstance(target, np.void):
                for name in target.dtype.names or ():
                    target[name] = copy[()][name]
            else:
                target[...] = copy


def as_seen(array: HostArray) -> Any:
    """*array*, with the fields of records as attributes, and a record without dimensions as a record."""
    if array.dtype.names is None:
        return array
    records = array.view(np.recarray)
    return records if array.ndim else records.reshape(1)[0]


def wait_for_device() -> None:
    """Wait for the device's earlier work before a simulated launch."""
    current_device().synchronize()
