"""Kernels that report what their threads do, and what is known of which memory was written."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from spmd_blocks import kernel, launch
from spmd_kernels import pack

from hip_runtime import Device, config, device_array, to_device
from hip_runtime.driver import MemoryKind
from hip_runtime.drivers.cpu.diagnostics.observers import observed
from hip_runtime.drivers.cpu.llvmir import I64, VOID
from hip_runtime.drivers.cpu.memory.written_bytes import WrittenBytes
from hip_runtime.drivers.cpu.object_code.jit import compile_quickly
from hip_runtime.protocols import array_interface

OBSERVED = """
  %p = getelementptr i32, ptr %out, i32 %i
  call void @spmd.observe(ptr %item, i32 2, i32 7, ptr %p, i64 4, i64 -3)
  store i32 %i, ptr %p
  ret void
"""
WAITING = """
  call void @spmd.observe(ptr %item, i32 1, i32 0, ptr null, i64 0, i64 0)
  call void @spmd.barrier(ptr %item)
  %p = getelementptr i32, ptr %out, i32 %i
  call void @spmd.observe(ptr %item, i32 2, i32 1, ptr %p, i64 4, i64 0)
  store i32 %i, ptr %p
  ret void
"""
OBSERVE = "declare void @spmd.observe(ptr, i32, i32, ptr, i64, i64)\n"
OBSERVER = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 8)


def watch(events: list[tuple[int, ...]]) -> Any:
    """A function for C that keeps what it is told, and which thread of the processor told it."""
    return OBSERVER(lambda *numbers: events.append((threading.get_ident(), *numbers)))


def observe(device: Device, body: str, grid: int, shape: tuple[int, int, int]) -> tuple[list[Any], Any, str]:
    """What the threads of a kernel tell, the array that they wrote, and the form of the kernel."""
    count = grid * shape[0] * shape[1] * shape[2]
    out = to_device(np.zeros(count, np.int32))
    events: list[tuple[int, ...]] = []
    told = watch(events)
    with observed(ctypes.cast(told, ctypes.c_void_p).value or 0, 99):
        function = launch(device, kernel(body, [("out", "ptr")], OBSERVE), grid, shape, out.address)
    np.testing.assert_array_equal(out.copy_to_host(), np.arange(count))
    return events, out, function.form


def test_what_threads_tell(device: Device) -> None:
    shape = (4, 3, 1)
    events, out, form = observe(device, OBSERVED, 500, shape)
    assert form == f"{shape}: regions (what its threads do is observed)"
    assert {event[0] for event in events} == {threading.get_ident()}  # no thread of the pool ran a block
    expected = [
        (99, 2, 7, out.address + 4 * (12 * block + thread), 4, -3, block, thread)
        for block in range(500)
        for thread in range(12)
    ]
    assert [event[1:] for event in events] == expected


def test_threads_that_wait_tell_in_the_order_of_their_regions(device: Device) -> None:
    events, _, _ = observe(device, WAITING, 2, (5, 1, 1))
    assert [(event[3], event[7], event[8]) for event in events] == [
        (site, block, thread) for block in range(2) for site in range(2) for thread in range(5)
    ]


@pytest.mark.parametrize("form", ["loop", "vectors", "auto"])
def test_any_form_and_nobody_who_is_told(device: Device, form: str) -> None:
    out = to_device(np.zeros(64, np.int32))
    with config.cpu_form.scope(form):
        launch(device, kernel(OBSERVED, [("out", "ptr")], OBSERVE), 4, (16, 1, 1), out.address)
    np.testing.assert_array_equal(out.copy_to_host(), np.arange(64))


def test_observers_are_stacked(device: Device) -> None:
    first: list[tuple[int, ...]] = []
    second: list[tuple[int, ...]] = []
    watches = [watch(first), watch(second)]
    code = kernel(OBSERVED, [("out", "ptr")], OBSERVE)
    out = to_device(np.zeros(4, np.int32))
    addresses = [ctypes.cast(one, ctypes.c_void_p).value or 0 for one in watches]
    with observed(addresses[0], 1):
        with observed(addresses[1], 2):
            launch(device, code, 1, (4, 1, 1), out.address)
        launch(device, code, 1, (2, 1, 1), out.address)
    launch(device, code, 1, (4, 1, 1), out.address)
    assert [event[1] for event in first] == [1, 1]
    assert [event[1] for event in second] == [2, 2, 2, 2]


def written(device: Device, array: Any) -> list[int] | None:
    """Which bytes of *array* were written, as far as the device knows."""
    for start, nbytes, known in device.driver.allocations():  # type: ignore[attr-defined]
        if start <= array.address < start + nbytes:
            found = ctypes.string_at(known + array.address - start, array.nbytes) if known else None
            return None if found is None else list(found)
    raise AssertionError("the array is not in memory of the device")


def test_which_bytes_were_written(device: Device) -> None:
    before = device_array(4, np.uint8)
    device.driver.watch_writes()  # type: ignore[attr-defined]
    assert written(device, before) is None
    array = device_array(8, np.uint8)
    assert written(device, array) == [0] * 8
    array[2:4] = 1
    assert written(device, array) == [0, 0, 1, 1, 0, 0, 0, 0]
    device.driver.fill(array.address + 4, 9, 1)
    array[6:0:-4].copy_to_device(np.zeros(2, np.uint8))
    assert written(device, array) == [0, 0, 1, 1, 1, 0, 1, 0]
    other = device_array(8, np.uint8)
    other.copy_to_device(array)
    assert written(device, other) == [0, 0, 1, 1, 1, 0, 1, 0]
    assert written(device, to_device(np.zeros(3, np.uint8))) == [1, 1, 1]
    del array
    again = device_array(8, np.uint8)  # in the same pages
    assert written(device, again) == [0] * 8


def test_what_others_may_have_written(device: Device) -> None:
    device.driver.watch_writes()  # type: ignore[attr-defined]
    array, other = device_array(8, np.int32), device_array(8, np.int32)
    assert array_interface(array)["shape"] == (8,)
    assert written(device, array) is None
    assert written(device, other) is not None
    assert other.__dlpack__() is not None
    assert written(device, other) is None
    out = device_array(8, np.int32)
    launch(device, kernel(OBSERVED, [("out", "ptr")], OBSERVE), 1, (8, 1, 1), out.address)
    assert written(device, out) is not None  # the observer knows
    launch(device, kernel(OBSERVED.replace("call", ";"), [("out", "ptr")]), 1, (8, 1, 1), out.address)
    assert written(device, out) is None
    pinned = device.driver.alloc(0, 8, MemoryKind.MAPPED)
    assert all(known == 0 for start, _, known in device.driver.allocations() if start == pinned)  # type: ignore[attr-defined]
    device.driver.free(pinned)


def test_setting_watches_from_the_start() -> None:
    from hip_runtime.drivers.cpu.driver import CpuDriver

    with config.cpu_races.scope("1"):
        driver = CpuDriver(1 << 20)
    address = driver.alloc(0, 16)
    assert driver.allocations()[0][2] != 0
    driver.free(address)
    with pytest.raises(Exception, match="must be one of '0', '1' and 'warn'"), config.cpu_races.scope("yes"):
        pass


def test_written_bytes_of_what_is_not_known() -> None:
    known = WrittenBytes()
    known.fill(64, 8)
    known.copy(64, 128, 8)
    known.forget(64)
    assert known.where(64) == 0
    known.begin(1 << 20, 1)
    assert known.where(1 << 20) != 0
    known.forget((1 << 20) + 100)
    assert known.where(1 << 20) == 0


def test_ctrl_c_ends_an_observer(device: Device) -> None:
    """Its code counts as the kernel's: the thread that runs it is interrupted there."""
    module = ir.Module("observer")
    function = ir.Function(module, ir.FunctionType(VOID, [I64] * 8), "endless")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    again = builder.append_basic_block("again")
    builder.branch(again)
    builder.position_at_end(again)
    builder.atomic_rmw("add", builder.inttoptr(function.args[0], I64.as_pointer()), I64(1), "monotonic")
    builder.branch(again)
    program = compile_quickly(module, "endless")
    out, reached = to_device(np.zeros(4, np.int32)), np.zeros(1, np.int64)
    loaded = device.load(kernel(OBSERVED, [("out", "ptr")], OBSERVE)).function("k")
    arguments = pack(loaded.kernel, out.address)
    loaded.launch(1, 4, arguments)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell has us ignore it
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt), observed(program.entry, reached.ctypes.data):
            loaded.launch(1, 4, arguments)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert reached[0] > 0
    observe(device, OBSERVED, 2, (4, 1, 1))
