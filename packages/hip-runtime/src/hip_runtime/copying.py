"""Copies between arrays of any layout, on the host or on a device."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hip_runtime import activity
from hip_runtime.activity import Activity, do
from hip_runtime.driver import PER_THREAD_STREAM, Driver, Strided
from hip_runtime.errors import ArrayError, CopyError, CopyTypeError
from hip_runtime.layout import Layout

if TYPE_CHECKING:
    from hip_runtime.array import DeviceArray
    from hip_runtime.device import Device

HostArray = np.ndarray[Any, Any]

TO_DEVICE, TO_HOST, ON_DEVICE = "host to device", "device to host", "device to device"
"""What profiles call copies."""

STAGED_BYTES = 64 << 10
"""Pageable memory of up to so many bytes is copied aside before it goes to the device on a stream, so that the call
need not wait for that stream. As CUDA does: https://docs.nvidia.com/cuda/cuda-driver-api/api-sync-behavior.html"""


def check_dtype(dtype: Any) -> np.dtype[Any]:
    """*dtype* as NumPy's type of elements that are plain bytes. Raises `ArrayError` for Python objects and unknown
    types."""
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArrayError(f"dtype {dtype!r} is not a type of array elements: {error}") from None
    if found.hasobject:
        raise ArrayError(
            f"dtype {found} holds Python objects, which a device cannot; convert the array to a numeric type"
        )
    if found.subdtype is not None:
        raise ArrayError(
            f"dtype {found} has axes of its own, {found.shape}; add them to the array's shape, and use {found.base}"
        )
    if found.itemsize == 0:
        raise ArrayError(f"dtype {found} has no bytes; give a text or void type its length")
    return found


def host_layout(array: HostArray) -> Layout:
    """Layout of a NumPy array."""
    made = Layout(array.shape, array.strides, array.itemsize)
    flags = array.flags
    made.know_contiguity(c_contiguous=flags.c_contiguous, f_contiguous=flags.f_contiguous)
    return made


def host_address(array: HostArray) -> int:
    """Where the first element of a NumPy array lies."""
    return int(array.__array_interface__["data"][0])  # in a third of the time of array.ctypes.data


def check_fit(target: Any, source: Any) -> None:
    """Raise `CopyError` unless both have the same shape and the same type of elements."""
    if target.shape != source.shape:
        raise CopyError(
            f"cannot copy an array of shape {source.shape} to one of shape {target.shape}: the shapes must be equal"
        )
    if target.dtype != source.dtype:
        raise CopyTypeError(
            f"cannot copy elements of type {source.dtype} to an array of {target.dtype}: convert them first"
        )


def to_host(target: HostArray, source: DeviceArray, stream: int) -> None:
    """Fill *target* from *source*: at once if it is pageable memory, otherwise when the stream reaches the copy."""
    check_fit(target, source)
    if not target.flags.writeable:
        raise CopyError("cannot copy to a host array that is read-only")
    place, nbytes = host_address(target), target.nbytes
    if nbytes and _are_alike(target, source.layout):
        bytes_to_host(source.device, place, source.address, nbytes, stream, (target, source))
        return
    driver, layout = source.device.driver, host_layout(target)
    work = Activity("copy", TO_HOST, source.device, stream, nbytes)
    _copy(work, place, layout, source.address, source.layout, (target, source))
    if layout.size and _is_over_at_return(driver, place, stream):
        driver.synchronize_stream(stream)


def to_device(target: DeviceArray, source: HostArray, stream: int) -> None:
    """Fill *target* from *source*, which may be changed afterwards if it is pageable memory."""
    check_fit(target, source)
    if 0 in target.strides:
        once = _repeated_in_both(target, source)
        target, source = target[once], source[once]
    driver = target.device.driver
    place, nbytes = host_address(source), source.nbytes
    wait = nbytes > 0 and _is_over_at_return(driver, place, stream)
    if wait and nbytes <= STAGED_BYTES:
        source, wait = source.copy(order="K"), False
        place = host_address(source)
    if nbytes and _are_alike(source, target.layout):
        _copy_bytes(TO_DEVICE, target.device, target.address, place, nbytes, stream, (target, source))
    else:
        work = Activity("copy", TO_DEVICE, target.device, stream, nbytes)
        _copy(work, target.address, target.layout, place, host_layout(source), (target, source))
    if wait:
        driver.synchronize_stream(stream)


def bytes_to_host(device: Device, target: int, source: int, nbytes: int, stream: int, owners: object) -> None:
    """Copy bytes from *device* to *target* on the host; pageable memory is filled when this returns."""
    _copy_bytes(TO_HOST, device, target, source, nbytes, stream, owners)
    if nbytes and _is_over_at_return(device.driver, target, stream):
        device.driver.synchronize_stream(stream)


def bytes_to_device(device: Device, target: int, source: int, nbytes: int, stream: int, owners: object) -> None:
    """Copy bytes from *source* on the host to *device*; pageable memory may be changed when this returns."""
    _copy_bytes(TO_DEVICE, device, target, source, nbytes, stream, owners)
    if nbytes and _is_over_at_return(device.driver, source, stream):
        device.driver.synchronize_stream(stream)


def _copy_bytes(name: str, device: Device, target: int, source: int, nbytes: int, stream: int, owners: object) -> None:
    """Copy *nbytes* bytes; *name* is what profiles call it."""
    if activity.observer is None:  # copies of a few bytes pay for what describes them
        device.driver.copy(target, source, nbytes, stream, owners)
        return
    copy = partial(device.driver.copy, target, source, nbytes, stream, owners)
    do(Activity("copy", name, device, stream, nbytes), copy)


def _are_alike(host: HostArray, layout: Layout) -> bool:
    """Whether *host* and an array of the same shape with *layout* have their elements in the same order without
    gaps."""
    flags = host.flags
    return (flags.c_contiguous and layout.is_c_contiguous) or (flags.f_contiguous and layout.is_f_contiguous)


def _is_over_at_return(driver: Driver, host: int, stream: int) -> bool:
    """Whether the host may use its memory at *host* as soon as a copy on *stream* was requested.

    A copy on a default stream is always done then, and a recorded one is not done at all."""
    return stream > PER_THREAD_STREAM and not driver.is_capturing(stream) and driver.is_pageable(host)


def on_device(target: DeviceArray, source: DeviceArray, stream: int) -> None:
    """Fill *target* from *source*, on one device, where they may overlap, or on two of one kind."""
    check_fit(target, source)
    if target.device is not source.device:
        _wait_for_other(target.device, source.device, stream)
    if 0 in target.strides:
        once = _repeated_in_both(target, source)
        target, source = target[once], source[once]
    work = Activity("copy", ON_DEVICE, target.device, stream, source.nbytes)
    _copy(work, target.address, target.layout, source.address, source.layout, (target, source))


def _wait_for_other(target: Device, source: Device, stream: int) -> None:
    """Before a copy between two devices: on a default stream it comes after the work on that of each."""
    if not target.is_like(source):
        raise CopyError(f"cannot copy from {source} to {target}: copy through the host")
    if target.driver is not source.driver and stream <= PER_THREAD_STREAM:
        source.driver.synchronize_stream(stream)


def _repeated_in_both(target: DeviceArray, source: Any) -> tuple[slice, ...]:
    """An index that keeps only the first element along each axis on which both arrays repeat one element."""
    axes = zip(target.shape, target.strides, source.strides, strict=True)
    return tuple(slice(0, 1) if extent > 1 and one == other == 0 else slice(None) for extent, one, other in axes)


def _copy(
    work: Activity, target: int, target_layout: Layout, source: int, source_layout: Layout, owners: object
) -> None:
    if target_layout.size == 0:
        return
    if (target_layout.is_c_contiguous and source_layout.is_c_contiguous) or (
        target_layout.is_f_contiguous and source_layout.is_f_contiguous
    ):
        _copy_bytes(work.name, work.device, target, source, target_layout.nbytes, work.stream, owners)
        return
    if target_layout.overlaps_itself:
        raise CopyError(
            f"cannot copy to an array of shape {target_layout.shape} and strides {target_layout.strides}: its elements "
            "overlap"
        )
    if _one_block(target_layout, source_layout):
        first = target_layout.extent[0]
        _copy_bytes(work.name, work.device, target + first, source + first, target_layout.nbytes, work.stream, owners)
        return
    to, taken = Strided(target, target_layout.strides), Strided(source, source_layout.strides)
    shape, itemsize = target_layout.shape, target_layout.itemsize
    copy = work.device.driver.copy_strided
    do(work, partial(copy, to, taken, shape, itemsize, work.stream, owners))


def _one_block(target: Layout, source: Layout) -> bool:
    """Whether both have their elements in the same order without gaps, so that their bytes can be copied directly."""
    first, end = target.extent
    return end - first == target.nbytes and all(
        extent == 1 or one == other
        for extent, one, other in zip(target.shape, target.strides, source.strides, strict=True)
    )
