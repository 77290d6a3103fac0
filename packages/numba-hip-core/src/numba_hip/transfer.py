"""Bringing the arguments of a launch onto the device, and what a kernel wrote back to the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from hip_runtime import DeviceArray, Stream, as_device_array, is_device_array, to_device


class Transfer:
    """The copies of host arrays that one launch works on, in order on *stream* (``None`` is the default one)."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._copies: list[tuple[np.ndarray[Any, Any], DeviceArray]] = []

    def onto_device(self, value: Any) -> Any:
        """*value* as a kernel takes it: arrays become device arrays, also those within tuples."""
        if isinstance(value, np.ndarray):
            copy = to_device(value, stream=self.stream)
            if value.flags.writeable:
                self._copies.append((value, copy))
            return copy
        if isinstance(value, tuple):
            members = [self.onto_device(member) for member in value]
            return value._make(members) if hasattr(value, "_make") else tuple(members)
        if not isinstance(value, DeviceArray) and is_device_array(value):
            return as_device_array(value)
        return value

    def back_to_host(self) -> None:
        """Copy every array that was brought onto the device, and that can be written, back to where it came from."""
        for host, copy in self._copies:
            copy.copy_to_host(host, stream=self.stream)
        if self._copies and self.stream is not None:
            self.stream.synchronize()
