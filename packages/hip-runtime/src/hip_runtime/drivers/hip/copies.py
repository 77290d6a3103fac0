"""Copies and fills on streams."""

from __future__ import annotations

from ctypes import byref, c_int
from math import prod
from typing import Any

import numpy as np

from hip_runtime.driver import MemoryKind, Strided
from hip_runtime.drivers.hip.calls import Calls
from hip_runtime.drivers.hip.memory import HipHeap
from hip_runtime.drivers.hip.streams import HipStream
from hip_runtime.drivers.hip.strided_copies import CopyPlan, dense_strides, forwards, plan_copy, span
from hip_runtime.errors import CaptureError

_MEMCPY_DEFAULT = 4
"""``hipMemcpyDefault``: the runtime finds out from the addresses which way to copy."""

_DEVICE_ORDINAL = 9
"""``HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL``"""

DIRECT_COPIES = 4
"""So many rectangles are copied one by one before it is tried whether going through the host takes fewer."""

WIDEST_SPAN = 8
"""Bytes read at once for each byte that is wanted, at most; elements further apart are read as rectangles."""


class Copier:
    """Copies on HIP streams, not on default ones: of those HIP's functions, and those that wait, end every capture of
    the process. What is meant for a default stream goes on the driver's own, see `HipStreamTable.transfers`."""

    def __init__(self, calls: Calls, heap: HipHeap) -> None:
        self._calls = calls
        self._heap = heap

    def devices_of(self, *addresses: int) -> list[int]:
        """The devices that *addresses* are on, those of the first ones first; device 0 where none is on any."""
        found = (self._device_at(address) for address in addresses) if self._calls.device_count > 1 else ()
        return list(dict.fromkeys(device for device in found if device is not None)) or [0]

    def _device_at(self, address: int) -> int | None:
        device = c_int()
        if self._calls.hipPointerGetAttribute(byref(device), _DEVICE_ORDINAL, address) == 0 and device.value >= 0:
            return device.value
        self._calls.hipGetLastError()
        return None

    def copy(self, stream: HipStream, target: int, source: int, nbytes: int, owners: object) -> None:
        """Copy bytes that may overlap."""
        if abs(target - source) >= nbytes or target == source:
            self._copy(stream, target, source, nbytes, owners)
            return
        _refuse_to_record(stream, "overlaps itself, which takes memory of its own")
        between = Scratch(self._heap, stream.device, nbytes)
        self._copy(stream, between.address, source, nbytes, None)
        self._copy(stream, target, between.address, nbytes, (owners, between))

    def write(self, stream: HipStream, address: int, content: bytes) -> None:
        """Write *content*, which is there when this returns."""
        self._calls.call("hipMemcpyAsync", address, content, len(content), _MEMCPY_DEFAULT, stream.handle)
        stream.wait()

    def fill(self, stream: HipStream, address: int, value: int, nbytes: int) -> None:
        """Set bytes to *value*."""
        self._calls.call("hipMemsetAsync", address, value, nbytes, stream.handle)

    def copy_elements(
        self, stream: HipStream, target: Strided, source: Strided, shape: tuple[int, ...], itemsize: int, owners: object
    ) -> None:
        """Copy elements between two layouts that may overlap; nothing between the elements is written to."""
        plan = plan_copy(target, source, shape, itemsize)
        overlap = _overlap(target, source, shape, itemsize)
        devices = self._between(target.address, source.address) if plan.copies else None
        if devices is not None and any(height > 1 for *_, height in plan.rectangles()):
            # HIP copies bytes between devices that cannot reach each other, and not rectangles.
            _refuse_to_record(stream, "goes through the host")
            ahead, order = forwards(target, shape)
            self._copy_through_host(stream, ahead, order, source, shape, itemsize)
            return
        if overlap or plan.copies > DIRECT_COPIES:
            ahead, order = forwards(target, shape)
            packed = plan_copy(ahead, Strided(0, dense_strides(shape, itemsize)), shape, itemsize)
            if overlap or packed.copies < plan.copies:
                _refuse_to_record(stream, "goes through the host")
                self._copy_through_host(stream, ahead, order, source, shape, itemsize)
                return
        self._copy_rectangles(stream, plan, owners)

    def _between(self, target: int, source: int) -> tuple[int, int] | None:
        """The devices that the two addresses are on, where these are two."""
        if self._calls.device_count == 1:
            return None
        into, found = self._device_at(target), self._device_at(source)
        return None if into is None or found is None or into == found else (into, found)

    def _copy(self, stream: HipStream, target: int, source: int, nbytes: int, owners: object) -> None:
        devices = self._between(target, source)
        if devices is None:
            self._calls.call("hipMemcpyAsync", target, source, nbytes, _MEMCPY_DEFAULT, stream.handle)
        else:  # the runtime goes through the host if the devices cannot access each other
            into, found = devices
            self._calls.call("hipMemcpyPeerAsync", target, into, source, found, nbytes, stream.handle)
        if owners is not None:
            stream.keep(owners)

    def _copy_rectangles(self, stream: HipStream, plan: CopyPlan, owners: object) -> None:
        for target, into, source, found, width, height in plan.rectangles():
            if height == 1:
                self._copy(stream, target, source, width, None)
            else:
                self._calls.call(
                    "hipMemcpy2DAsync", target, into, source, found, width, height, _MEMCPY_DEFAULT, stream.handle
                )
        if owners is not None:
            stream.keep(owners)

    def _copy_through_host(
        self,
        stream: HipStream,
        target: Strided,
        order: tuple[slice, ...],
        source: Strided,
        shape: tuple[int, ...],
        itemsize: int,
    ) -> None:
        """Read the elements, put them in *order*, and write them to the *target*. Waits for the stream."""
        found, found_order = forwards(source, shape)
        start, nbytes = span(found, shape, itemsize)
        element: np.dtype[Any] = np.dtype((np.void, itemsize))
        if nbytes <= WIDEST_SPAN * prod(shape) * itemsize:
            raw = np.empty(nbytes, np.uint8)
            self._copy(stream, raw.ctypes.data, start, nbytes, None)
            gathered = np.ndarray(shape, element, raw.data, strides=found.strides)
        else:
            gathered = np.empty(shape, element)
            place = Strided(gathered.ctypes.data, gathered.strides)
            self._copy_rectangles(stream, plan_copy(place, found, shape, itemsize), None)
        stream.wait()
        packed = np.ascontiguousarray(gathered[found_order][order])
        place = Strided(packed.ctypes.data, packed.strides)
        self._copy_rectangles(stream, plan_copy(target, place, shape, itemsize), None)
        stream.wait()


class Scratch:
    """Device memory that goes with the last reference."""

    def __init__(self, heap: HipHeap, device: int, nbytes: int) -> None:
        self._heap = heap
        self.address = heap.allocate(device, nbytes, MemoryKind.DEVICE)

    def __del__(self) -> None:
        if hasattr(self, "address"):
            self._heap.retire(self._heap.take(self.address))


def _refuse_to_record(stream: HipStream, reason: str) -> None:
    if stream.recording is not None:
        raise CaptureError(
            f"a copy that {reason} cannot be recorded: copy between arrays that lie apart, in layouts that are alike"
        )


def _overlap(target: Strided, source: Strided, shape: tuple[int, ...], itemsize: int) -> bool:
    into, into_bytes = span(target, shape, itemsize)
    found, found_bytes = span(source, shape, itemsize)
    return into < found + found_bytes and found < into + into_bytes
