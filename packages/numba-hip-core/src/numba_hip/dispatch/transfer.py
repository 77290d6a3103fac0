"""Copies of a launch's host arrays: to the device, and back what the kernel wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from hip_runtime import (
    CaptureError,
    DeviceArray,
    Stream,
    as_device_array,
    is_device_array,
    to_device,
)
from hip_runtime.arrays import array_for
from hip_runtime.said_names import our
from hip_runtime.stream_handle import stream_handle
from numba_hip.advisory_warnings import advise_on_copies
from numba_hip.arguments.argument_types import is_on_device
from numba_hip.arguments.transfer_hints import ArgHint
from numba_hip.arguments.tuple_members import with_members

HostArray = np.ndarray[Any, Any]
Copy = TypeVar("Copy")


def check_capture(values: Sequence[Any], names: Sequence[str], stream: Stream | None) -> None:
    """`CaptureError` where *stream* is captured and one of *values* is an array or record of the host.

    Its copy back would be due when the graph is launched, of which nobody tells.
    """
    if stream is None or not stream.capturing:
        return
    for value, name in zip(values, names, strict=True):
        if _is_of_host(value.value if isinstance(value, ArgHint) else value):
            raise CaptureError(
                f"argument {name!r} is an array or record of the host, and a launch that is recorded for a graph "
                f"cannot copy it back; pass a device array ({our('to_device')} before the capture), and record a copy "
                "of it to the host with copy_to_host(array, stream=...)"
            )


def _is_of_host(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_of_host, value))
    return isinstance(value, np.void) or (isinstance(value, np.ndarray) and not is_device_array(value))


class SharedCopies(Generic[Copy]):
    """The copies of a launch's host arrays that the kernel may read and write. Of arrays that are the same elements
    only one is made: what the kernel writes to one of two would be lost where the other is copied back behind it."""

    def __init__(self) -> None:
        self._found: list[tuple[HostArray, Copy]] = []

    def find(self, array: HostArray) -> Copy | None:
        """The copy of the elements of *array*, if there is one."""
        for other, copy in self._found:
            if np.may_share_memory(other, array) and _describe(other) == _describe(array):
                return copy
        return None

    def add(self, array: HostArray, copy: Copy) -> None:
        """Note that *copy* is that of *array*."""
        self._found.append((array, copy))


def _describe(array: HostArray) -> tuple[object, ...]:
    return array.ctypes.data, array.shape, array.strides, array.dtype


class ArgumentCopies:
    """The copies of host arrays that one launch works on, in order on *stream* (``None`` is the default one)."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._arrays: list[tuple[HostArray, DeviceArray]] = []
        self._records: list[tuple[np.void, DeviceArray]] = []
        self._shared: SharedCopies[DeviceArray] = SharedCopies()
        self._advised = 0
        """Arrays that are copied both ways because nobody said which way is needed."""

    def onto_device(self, value: Any, hint: type[ArgHint] | None = None) -> Any:
        """*value* as a kernel takes it: arrays and records become device arrays, also those within tuples.

        *hint* says which way contents are copied: both ways by default. A host array that is read-only is so for the
        kernel, too, where there is no hint.
        """
        if isinstance(value, ArgHint):
            return self.onto_device(value.value, type(value))
        if isinstance(value, np.ndarray) and not is_device_array(value):
            return self._copy_array(value, hint)
        if isinstance(value, np.void):
            return self._copy_record(value, hint)
        if isinstance(value, tuple):
            return with_members(value, lambda member: self.onto_device(member, hint))
        if not isinstance(value, DeviceArray) and is_on_device(value):
            return as_device_array(value)
        return value

    def _copy_array(self, value: HostArray, hint: type[ArgHint] | None) -> DeviceArray:
        both_ways = hint is None or (hint.copies_in and hint.copies_out)
        if both_ways and (known := self._shared.find(value)) is not None:
            return known
        self._advised += hint is None
        # Dense, also where the host repeats elements or skips some: its type is what signatures name most often.
        copy = array_for(value, self.stream)
        if hint is None or hint.copies_in:
            copy.copy_to_device(value, self.stream)
        if hint is None and not value.flags.writeable:
            return copy.read_only()
        if hint is None or hint.copies_out:
            self._arrays.append((value, copy))
        if both_ways:
            self._shared.add(value, copy)
        return copy

    def _copy_record(self, value: np.void, hint: type[ArgHint] | None) -> DeviceArray:
        copy = to_device(np.array(value), stream=self.stream)
        if value.flags.writeable if hint is None else hint.copies_out:
            self._records.append((value, copy))
        return copy

    def advise(self) -> None:
        """Warn of copies that nobody asked for. Called when nothing is in the way of the launch any more."""
        for _ in range(self._advised):
            advise_on_copies()

    def back_to_host(self) -> None:
        """Copy every array that was brought onto the device, and that can be written, back to where it came from.

        A kernel that faulted is reported before the first of them. The host does not wait where all of them are pinned
        memory and the launch was given a stream."""
        if self._is_waited_for():
            driver = (self._arrays or self._records)[0][1].device.driver
            driver.synchronize_stream(stream_handle(self.stream))
        for host, copy in self._arrays:
            copy.copy_to_host(host, stream=self.stream)
        contents = [copy.copy_to_host(stream=self.stream) for _, copy in self._records]
        for (record, _), content in zip(self._records, contents, strict=True):
            for name in record.dtype.names or ():  # a record need not share its memory with any array
                record[name] = content[name]

    def _is_waited_for(self) -> bool:
        if self._records or (self._arrays and self.stream is None):
            return True
        return any(copy.device.driver.is_pageable(host.ctypes.data) for host, copy in self._arrays)
