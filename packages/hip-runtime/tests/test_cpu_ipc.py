"""Memory of the CPU device that processes share by handles: both see what the other writes, and nothing is left."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import hip_runtime as rt
from hip_runtime.device import Device
from hip_runtime.drivers.cpu.driver import CpuDriver
from hip_runtime.drivers.cpu.memory import heap, pages
from hip_runtime.interop import from_interface
from hip_runtime.protocols import array_interface

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs files in memory, which Linux has")


@pytest.fixture(scope="module")
def other() -> Iterator[ProcessPoolExecutor]:
    """Another process, which inherits nothing from this one."""
    before = os.environ.get("NUMBA_HIP_DEVICE")
    os.environ["NUMBA_HIP_DEVICE"] = "cpu"
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pool.submit(os.getpid).result(60)
        yield pool
    if before is None:
        del os.environ["NUMBA_HIP_DEVICE"]
    else:
        os.environ["NUMBA_HIP_DEVICE"] = before


def add_one(handle: Any) -> tuple[Any, int]:
    with handle as array:
        seen = array.copy_to_host()
        array.copy_to_device(seen + 1)
    return seen, rt.current_device().memory_info()[0] - rt.current_device().memory_info()[1]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("elements", [1, 1000, 3 << 20])
def test_both_processes_see_what_the_other_writes(elements: int, device: Device, other: ProcessPoolExecutor) -> None:
    before = descriptors()
    host = np.arange(elements, dtype=np.float32)
    neighbour, array = rt.to_device(host), rt.to_device(host)
    address, view = array.address, array[elements // 3 :: 2]
    handle = view.get_ipc_handle()
    assert array.address == address
    np.testing.assert_array_equal(array.copy_to_host(), host, err_msg="the contents moved, and nobody noticed")
    seen, in_use = other.submit(add_one, handle).result(60)
    np.testing.assert_array_equal(seen, host[elements // 3 :: 2])
    assert in_use == 0, "the memory is the first process's"
    host[elements // 3 :: 2] += 1
    np.testing.assert_array_equal(array.copy_to_host(), host)
    array.copy_to_device(host * 2)
    np.testing.assert_array_equal(other.submit(add_one, handle).result(60)[0], host[elements // 3 :: 2] * 2)
    np.testing.assert_array_equal(neighbour.copy_to_host(), np.arange(elements, dtype=np.float32))
    del neighbour, array, view, handle
    gc.collect()
    assert descriptors() == before


def test_a_view_that_runs_backwards(device: Device, other: ProcessPoolExecutor) -> None:
    host = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    array = rt.to_device(host)
    handle = pickle.loads(pickle.dumps(array[1:, ::-2].get_ipc_handle()))
    np.testing.assert_array_equal(other.submit(add_one, handle).result(60)[0], host[1:, ::-2])


def test_memory_that_a_library_passes_on(device: Device, other: ProcessPoolExecutor) -> None:
    array = rt.to_device(np.arange(10))
    foreign = from_interface(array_interface(array[3:8]), array)
    assert other.submit(add_one, foreign.get_ipc_handle()).result(60)[0].tolist() == [3, 4, 5, 6, 7]
    mine = np.arange(4)
    outside = {"version": 3, "shape": (4,), "typestr": "<i8", "data": (mine.ctypes.data, False)}
    with pytest.raises(rt.InvalidAddressError, match="does not lie in memory of the CPU device"):
        from_interface(outside, mine).get_ipc_handle()


def test_work_on_streams_is_waited_for(device: Device, other: ProcessPoolExecutor) -> None:
    stream = rt.Stream(device)
    array = rt.to_device(np.zeros(1 << 20))
    for number in range(20):
        array.copy_to_device(np.full(1 << 20, float(number)), stream=stream)
    handle = array.get_ipc_handle()
    assert set(other.submit(add_one, handle).result(60)[0]) == {19.0}


def test_handles_of_memory_that_is_gone(device: Device, other: ProcessPoolExecutor) -> None:
    array = rt.to_device(np.arange(5))
    handle = array.get_ipc_handle().memory
    stale = bytes(handle.handle)
    handle.base = None
    del array
    for place in (lambda: rt.open_ipc_array(stale, 5, np.int64),
                  lambda: other.submit(rt.open_ipc_array, stale, 5, np.int64).result(60)):  # fmt: skip
        with pytest.raises(rt.InvalidHandleError, match="is gone: process"):
            place()
    again = rt.to_device(np.arange(5))
    assert again.get_ipc_handle().memory.handle != stale
    with pytest.raises(rt.InvalidHandleError, match="is gone"):
        rt.open_ipc_array(stale, 5, np.int64)


def test_handles_keep_places_within_pages(device: Device, other: ProcessPoolExecutor) -> None:
    """Small allocations start at different places of their pages, and a handle tells where."""
    arrays = [rt.to_device(np.full(5, number)) for number in range(17)]
    places = [array_interface(array)["data"][0] % pages.PAGE for array in arrays]
    assert len(set(places)) == 16
    assert all(place % 256 == 0 for place in places)
    for number, array in enumerate(arrays):
        assert set(other.submit(add_one, array.get_ipc_handle()).result(60)[0]) == {number}
        assert set(array.copy_to_host()) == {number + 1}
    handle = arrays[3].get_ipc_handle().memory.handle
    fields = pages._HANDLE.unpack_from(handle)
    with pytest.raises(rt.InvalidHandleError, match="is gone"):
        rt.open_ipc_array(pages._HANDLE.pack(*fields[:-1], 1 << 40).ljust(64, b"\0"), 5, np.int64)


def test_bytes_that_are_no_handle(device: Device) -> None:
    read, write = os.pipe()
    try:
        pipe = pages._HANDLE.pack(pages._MAGIC, os.getpid(), read, 1, 0).ljust(64, b"\0")
        nobody = pages._HANDLE.pack(pages._MAGIC, 2**31 - 1, 3, 1, 0).ljust(64, b"\0")
        for wrong in (pipe, nobody, bytes(64), b"", bytes(63)):
            with pytest.raises(rt.InvalidHandleError, match="IPC handle"):
                rt.open_ipc_array(wrong, 1, np.int64)
    finally:
        os.close(read)
        os.close(write)


def test_a_failure_to_share_changes_nothing(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    array = rt.to_device(np.arange(5))
    before = descriptors()
    with monkeypatch.context() as patch:
        patch.setattr(pages, "_map_over", fail)
        with pytest.raises(rt.OutOfDeviceMemoryError, match="No space left"):
            array.get_ipc_handle()
    assert descriptors() == before
    assert array.copy_to_host().tolist() == [0, 1, 2, 3, 4]
    monkeypatch.delattr(os, "memfd_create")
    with pytest.raises(rt.UnsupportedError, match="on Linux only"):
        array.get_ipc_handle()


def test_freed_memory_is_used_again_and_shared_memory_is_not() -> None:
    driver = CpuDriver(64 << 20)
    place = driver.alloc(0, 100)
    driver.free(place)
    assert driver.alloc(0, 4000) == place
    driver.ipc_handle(place)
    driver.free(place)
    other = driver.alloc(0, 100)
    assert driver._heap._live[other][1].descriptor == -1


def test_no_more_than_a_limit_is_kept() -> None:
    kept = heap.CpuHeap(1 << 40)
    size = heap.SPARE_BLOCK
    places = [kept.allocate(size) for _ in range(5)]
    places.append(kept.allocate(size + 1))
    for place in places:
        kept.release(kept.take(place))
    assert kept._spare_bytes == sum(len(blocks) * size for size, blocks in kept._spare.items()) == heap.SPARE_BYTES
    assert kept.free_bytes() == 1 << 40
