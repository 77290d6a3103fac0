"""What every driver must do. A driver joins with one entry in `CASES`."""

from __future__ import annotations

import ctypes
import gc
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import amd_kernels
import hip_kernels
import hip_standin
import numpy as np
import pytest
import spmd_kernels

from hip_devicelib.codeobject import CodeObject
from hip_runtime import config
from hip_runtime.driver import DEFAULT_STREAM, Driver, MemoryKind, Strided
from hip_runtime.drivers.cpu.driver import CpuDriver
from hip_runtime.drivers.hip.driver import HipDriver
from hip_runtime.errors import (
    EventError,
    InvalidAddressError,
    InvalidHandleError,
    KernelFault,
    ModuleLoadError,
    OutOfDeviceMemoryError,
    UnsupportedError,
)

MEMORY = 32 << 20


@dataclass(frozen=True)
class Case:
    """A driver, and its code objects of the kernels in `spmd_kernels`.

    *slow* tells the turns of the kernel `spin` that take some milliseconds, *shared_bytes* how far the device's free
    memory may change by itself: HIP takes some of a GPU's, and so do other programs. *opens_own_handles* is whether IPC
    handles can be tried in one process.
    """

    make: Callable[[], Driver]
    code: Callable[[str], CodeObject]
    drops_work_after_fault: bool
    slow: Callable[[], int] = lambda: 3_000_000
    shared_bytes: int = 0
    opens_own_handles: bool = True


def asynchronous() -> CpuDriver:
    """The CPU device with launches on the default stream that are done later."""
    with config.cpu_async.scope(True):
        return CpuDriver(MEMORY)


HOST_CASES = {
    "cpu": Case(lambda: CpuDriver(MEMORY), spmd_kernels.sample, True),
    "cpu, asynchronous": Case(asynchronous, spmd_kernels.sample, True),
    "hip": Case(hip_standin.driver, hip_kernels.sample, False),
}
GPU_CASES = {"gpu": Case(HipDriver, amd_kernels.sample, False, amd_kernels.slow_turns, 64 << 20, False)}
CASES = GPU_CASES if config.device() == "hip" else HOST_CASES
"""Those of this machine's AMD GPU where it is asked for; the drivers that need none everywhere else."""


class Bench:
    """A driver with what tests need to be short."""

    def __init__(self, case: Case) -> None:
        self.driver = case.make()
        self.code = case.code
        self.drops_work_after_fault = case.drops_work_after_fault
        self.slow = case.slow()
        self.shared_bytes = case.shared_bytes
        self.opens_own_handles = case.opens_own_handles
        self.free_at_start = self.driver.memory_info(0)[0]

    def check_free(self, nbytes: int) -> None:
        """Fail unless so many bytes are free."""
        assert abs(self.driver.memory_info(0)[0] - nbytes) <= self.shared_bytes

    def put(self, array: np.ndarray[Any, Any]) -> int:
        address = self.driver.alloc(0, array.nbytes)
        self.driver.copy(address, array.ctypes.data, array.nbytes)
        return address

    def get(self, address: int, like: np.ndarray[Any, Any], stream: int = DEFAULT_STREAM) -> np.ndarray[Any, Any]:
        result = np.empty_like(like)
        self.driver.copy(result.ctypes.data, address, result.nbytes, stream)
        return result

    def function(self, name: str) -> Any:
        code = self.code(name)
        return self.driver.get_function(self.driver.load_module(0, code), code.kernels[0])

    def launch_and_wait(self, *arguments: Any, **more: Any) -> None:
        """Drivers may run even the default stream later."""
        self.launch(*arguments, **more)
        self.driver.synchronize_stream(DEFAULT_STREAM)

    def launch(self, name: str, grid: Any, block: Any, *values: Any, stream: int = DEFAULT_STREAM, **more: Any) -> None:
        code = self.code(name)
        function = self.driver.get_function(self.driver.load_module(0, code), code.kernels[0])
        self.driver.launch(function, grid, block, 0, stream, spmd_kernels.pack(code.kernels[0], *values), **more)


@pytest.fixture(params=list(CASES))
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    bench = Bench(CASES[request.param])
    yield bench
    gc.collect()
    bench.driver.synchronize_device(0)
    bench.check_free(bench.free_at_start)


def test_satisfies_the_protocol(bench: Bench) -> None:
    assert isinstance(bench.driver, Driver)
    assert bench.driver.device_count() >= 1


def test_attributes_are_possible(bench: Bench) -> None:
    attributes = bench.driver.attributes(0)
    assert attributes.name
    assert attributes.target
    assert attributes.wave_size in (32, 64)
    assert attributes.compute_units >= 1
    assert attributes.max_threads_per_block >= 256
    assert all(limit >= 64 for limit in attributes.max_block_dim)
    assert all(limit >= 65535 for limit in attributes.max_grid_dim)
    assert attributes.total_memory == bench.driver.memory_info(0)[1]


# memory


@pytest.mark.sample(8)
@pytest.mark.parametrize("kind", list(MemoryKind))
@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 1 << 20])
def test_allocations_are_distinct_aligned_and_counted(bench: Bench, kind: MemoryKind, nbytes: int) -> None:
    one = bench.driver.alloc(0, nbytes, kind)
    two = bench.driver.alloc(0, nbytes, kind)
    assert one % 64 == two % 64 == 0
    assert abs(one - two) >= max(nbytes, 1)
    bench.driver.free(one)
    bench.driver.free(two)


def test_memory_exhausted_changes_nothing(bench: Bench) -> None:
    free, total = bench.driver.memory_info(0)
    with pytest.raises(OutOfDeviceMemoryError) as caught:
        bench.driver.alloc(0, total + 1)
    told = caught.value
    assert re.search(rf"{total + 1} bytes.* {told.free} of {total} bytes are free", str(told))
    assert (told.requested, told.total) == (total + 1, total)
    assert abs(told.free - free) <= bench.shared_bytes
    bench.check_free(free)


def test_memory_is_counted(bench: Bench) -> None:
    free, _ = bench.driver.memory_info(0)
    nbytes = 4 << 20  # HIP counts in blocks of 2 MiB, of which it hands out smaller pieces
    address = bench.driver.alloc(0, nbytes)
    assert bench.driver.memory_info(0)[0] <= free - nbytes
    bench.driver.free(address)
    bench.check_free(free)


@pytest.mark.parametrize("offset", [0, 8])
def test_only_live_allocations_can_be_freed(bench: Bench, offset: int) -> None:
    address = bench.driver.alloc(0, 256)
    if offset:
        with pytest.raises(InvalidAddressError, match=f"{address + offset:#x}"):
            bench.driver.free(address + offset)
        bench.driver.free(address)
    else:
        bench.driver.free(address)
        with pytest.raises(InvalidAddressError, match="freed already"):
            bench.driver.free(address)


def test_copy_and_fill(bench: Bench) -> None:
    data = np.arange(1000, dtype=np.int32)
    one, two = bench.put(data), bench.driver.alloc(0, data.nbytes)
    bench.driver.copy(two, one, data.nbytes)
    bench.driver.fill(one, 0xA5, 8)
    np.testing.assert_array_equal(bench.get(two, data), data)
    assert bench.get(one, data)[:3].view(np.uint32).tolist() == [0xA5A5A5A5, 0xA5A5A5A5, 2]
    bench.driver.copy(two + 4, two, 4 * 999)  # overlapping
    np.testing.assert_array_equal(bench.get(two, data), np.concatenate([data[:1], data[:-1]]))
    bench.driver.free(one)
    bench.driver.free(two)


@pytest.mark.sample(8)
@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "c16", "V3", "V40"])
def test_strided_copies(bench: Bench, dtype: str) -> None:
    raw = np.random.default_rng(1).integers(0, 255, 6 * 5 * np.dtype(dtype).itemsize, dtype=np.uint8)
    source = raw.view(dtype).reshape(6, 5)
    address = bench.driver.alloc(0, source.nbytes)
    bench.driver.fill(address, 7, source.nbytes)
    view = source[::-2, 1::2]
    # The same elements of the device's array, in reverse order.
    first = address + source.strides[0] * 1 + source.itemsize * 3
    strides = (2 * source.strides[0], -2 * source.itemsize)
    bench.driver.copy_strided(
        Strided(first, strides), Strided(view.ctypes.data, view.strides), view.shape, source.itemsize
    )
    expected = np.full(source.nbytes, 7, np.uint8).view(dtype).reshape(6, 5)
    expected[1::2, 3::-2] = view
    assert bench.get(address, source).tobytes() == expected.tobytes()
    back = np.empty_like(view)
    bench.driver.copy_strided(
        Strided(back.ctypes.data, back.strides), Strided(first, strides), view.shape, source.itemsize
    )
    assert back.tobytes() == view.tobytes()
    bench.driver.free(address)


# code and launches


def test_launch_computes(bench: Bench) -> None:
    n = 1000
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    dx, dy = bench.put(x), bench.put(y)
    bench.launch("saxpy", (4, 1, 1), (256, 1, 1), dy, dx, 2.0, n)
    np.testing.assert_array_equal(bench.get(dy, y), 2 * x + 1)
    bench.driver.free(dx)
    bench.driver.free(dy)


def test_a_launcher_launches_any_grid_on_any_stream(bench: Bench) -> None:
    counter, code = np.zeros(1, np.int64), bench.code("count")
    address, stream = bench.put(counter), bench.driver.create_stream(0)
    module = bench.driver.load_module(0, code)
    launch = bench.driver.launcher(bench.driver.get_function(module, code.kernels[0]), (5, 1, 1), 0, False)
    arguments = spmd_kernels.pack(code.kernels[0], address)
    for blocks in (1, 7, 2, 1000):
        launch(arguments, (blocks, 1, 1), DEFAULT_STREAM)
        launch(arguments, (1, blocks, 2), stream, arguments)
    bench.driver.synchronize_stream(stream)
    np.testing.assert_array_equal(bench.get(address, counter), 5 * 3 * (1 + 7 + 2 + 1000))
    bench.driver.unload_module(module)
    with pytest.raises(ModuleLoadError, match="unloaded"):
        launch(arguments, (1, 1, 1), DEFAULT_STREAM)
    bench.driver.destroy_stream(stream)
    bench.driver.free(address)


@pytest.mark.sample(4)
@pytest.mark.parametrize("grid", [(1, 1, 1), (5, 1, 1), (3, 4, 2), (1, 1, 7), (7, 3, 41)])
@pytest.mark.parametrize("block", [(1, 1, 1), (33, 1, 1), (4, 3, 2), (1, 1, 64)])
def test_indices(bench: Bench, grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    threads = int(np.prod(grid) * np.prod(block))
    out = np.full((threads, 12), -1, np.int32)
    address = bench.put(out)
    bench.launch("where", grid, block, address)
    rows = bench.get(address, out)
    bench.driver.free(address)
    numbers = np.arange(threads)
    expected = []
    for extent in block + grid:
        expected.append(numbers % extent)
        numbers = numbers // extent
    np.testing.assert_array_equal(rows[:, :6], np.stack(expected, 1))
    np.testing.assert_array_equal(rows[:, 6:], np.tile(block + grid, (threads, 1)))


@pytest.mark.sample(5)
@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 64, 1000, 100_003])
@pytest.mark.usefixtures("kept_programs")
def test_every_thread_runs_once(bench: Bench, blocks: int) -> None:
    counter = np.zeros(1, np.int64)
    address = bench.put(counter)
    for launches in range(1, 4):
        bench.launch("count", (blocks, 1, 1), (5, 1, 1), address)
        assert bench.get(address, counter)[0] == 5 * blocks * launches
    bench.driver.free(address)


def test_code_of_another_target_is_refused(bench: Bench) -> None:
    code = bench.code("saxpy")
    with pytest.raises(ModuleLoadError, match="gfx000"):
        bench.driver.load_module(0, CodeObject("gfx000", code.image, code.kernels))


@pytest.mark.parametrize("cut", [0, 3, 100])
def test_truncated_code_is_refused(bench: Bench, cut: int) -> None:
    code = bench.code("saxpy")
    with pytest.raises(ModuleLoadError):
        bench.driver.load_module(0, CodeObject(code.target, code.image[:cut], code.kernels))


def test_unloaded_code_does_not_run(bench: Bench) -> None:
    code = bench.code("count")
    module = bench.driver.load_module(0, code)
    function = bench.driver.get_function(module, code.kernels[0])
    bench.driver.unload_module(module)
    with pytest.raises(ModuleLoadError, match="unloaded"):
        bench.driver.launch(function, (1, 1, 1), (1, 1, 1), 0, DEFAULT_STREAM, bytes(8))


def test_occupancy_is_positive(bench: Bench) -> None:
    assert bench.driver.max_active_blocks(bench.function("saxpy"), 256, 0) >= 1


# faults


def test_fault_on_the_default_stream(bench: Bench) -> None:
    seen = np.zeros(256, np.uint8)
    address = bench.put(seen)
    with pytest.raises(KernelFault) as caught:
        bench.launch_and_wait("fault", (4, 1, 1), (64, 1, 1), address, 130, 42)
    fault = caught.value
    assert (fault.kernel, fault.code, fault.block, fault.thread) == ("fault", 42, (2, 0, 0), (2, 0, 0))
    assert bench.get(address, seen)[130] == 0
    bench.launch("fault", (4, 1, 1), (64, 1, 1), address, 1 << 40, 42)  # nobody stops: the device works on
    assert bench.get(address, seen).sum() == 256
    bench.driver.free(address)


def test_fault_on_a_stream_is_kept_and_drops_the_rest(bench: Bench) -> None:
    stream = bench.driver.create_stream(0)
    counter = bench.put(np.zeros(1, np.int64))
    seen = bench.put(np.zeros(64, np.uint8))
    bench.launch("count", (1, 1, 1), (1, 1, 1), counter, stream=stream)
    bench.launch("fault", (1, 1, 1), (64, 1, 1), seen, 63, -7, stream=stream)
    bench.launch("count", (1, 1, 1), (1, 1, 1), counter, stream=stream)
    with pytest.raises(KernelFault, match=r"'fault' raised error code -7 in block \(0, 0, 0\), thread \(63, 0, 0\)"):
        bench.driver.synchronize_stream(stream)
    bench.driver.synchronize_stream(stream)  # reported once
    done = 1 if bench.drops_work_after_fault else 2
    assert bench.get(counter, np.zeros(1, np.int64))[0] == done
    bench.launch("count", (1, 1, 1), (1, 1, 1), counter, stream=stream)
    bench.driver.synchronize_stream(stream)
    assert bench.get(counter, np.zeros(1, np.int64))[0] == done + 1
    bench.driver.destroy_stream(stream)
    bench.driver.free(counter)
    bench.driver.free(seen)


@pytest.mark.sample(6)
@pytest.mark.parametrize("how", ["event", "device", "destroyed"])
def test_fault_is_raised_by_whoever_waits_first(bench: Bench, how: str) -> None:
    stream = bench.driver.create_stream(0)
    event = bench.driver.create_event(0)
    seen = bench.put(np.zeros(64, np.uint8))
    bench.launch("fault", (1, 1, 1), (64, 1, 1), seen, 5, 9, stream=stream)
    bench.driver.record_event(event, stream)
    if how == "destroyed":
        bench.driver.destroy_stream(stream)
    wait = {
        "event": lambda: bench.driver.synchronize_event(event),
        "device": lambda: bench.driver.synchronize_device(0),
        "destroyed": lambda: bench.driver.synchronize_device(0),
    }[how]
    with pytest.raises(KernelFault, match="error code 9"):
        wait()
    bench.driver.synchronize_device(0)
    bench.driver.synchronize_event(event)
    if how != "destroyed":
        bench.driver.synchronize_stream(stream)
        bench.driver.destroy_stream(stream)
    bench.driver.free(seen)


def test_description_of_a_fault(bench: Bench) -> None:
    seen = bench.put(np.zeros(64, np.uint8))
    stream = bench.driver.create_stream(0)
    describe = lambda fault: IndexError(f"code {fault.code}")  # noqa: E731
    with pytest.raises(IndexError, match="code 3"):
        bench.launch_and_wait("fault", (1, 1, 1), (64, 1, 1), seen, 5, 3, describe=describe)
    bench.launch("fault", (1, 1, 1), (64, 1, 1), seen, 5, 4, stream=stream, describe=describe)
    with pytest.raises(IndexError, match="code 4"):
        bench.driver.synchronize_stream(stream)
    bench.driver.destroy_stream(stream)
    bench.driver.free(seen)


# streams and events


@pytest.mark.usefixtures("kept_programs")
def test_stream_is_ordered(bench: Bench) -> None:
    n = 1 << 12
    stream = bench.driver.create_stream(0)
    x, y = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    dx, dy = bench.put(x), bench.put(y)
    for _ in range(20):
        bench.launch("saxpy", (n // 256, 1, 1), (256, 1, 1), dy, dx, 1.0, n, stream=stream)
        bench.driver.copy(dx, dy, x.nbytes, stream)  # x = y: each step depends on the one before
    result = bench.get(dy, y, stream)
    bench.driver.synchronize_stream(stream)
    np.testing.assert_array_equal(result, x * 2.0**19)
    assert bench.driver.query_stream(stream)
    bench.driver.destroy_stream(stream)
    bench.driver.free(dx)
    bench.driver.free(dy)


def test_stream_is_asynchronous_and_event_tells(bench: Bench) -> None:
    stream = bench.driver.create_stream(0)
    start, end = bench.driver.create_event(0), bench.driver.create_event(0)
    place = bench.put(np.zeros(1, np.int64))
    gate = threading.Event()
    bench.driver.add_callback(stream, lambda error: gate.wait(10) and None)
    bench.driver.record_event(start, stream)
    bench.launch("spin", (1, 1, 1), (1, 1, 1), place, bench.slow, stream=stream)
    bench.driver.record_event(end, stream)
    assert not bench.driver.query_stream(stream)
    assert not bench.driver.query_event(end)
    with pytest.raises(EventError, match="has not finished"):
        bench.driver.elapsed_time(start, end)
    gate.set()
    bench.driver.synchronize_event(end)
    assert bench.driver.query_event(end)
    assert 0 < bench.driver.elapsed_time(start, end) < 10_000
    assert bench.get(place, np.zeros(1, np.int64))[0] == bench.slow
    bench.driver.destroy_stream(stream)
    bench.driver.free(place)


def test_events_that_were_not_recorded(bench: Bench) -> None:
    one, two = bench.driver.create_event(0), bench.driver.create_event(0, timing=False)
    assert bench.driver.query_event(one)
    bench.driver.synchronize_event(one)
    bench.driver.wait_event(DEFAULT_STREAM, one)
    with pytest.raises(EventError, match="never recorded"):
        bench.driver.elapsed_time(one, one)
    bench.driver.record_event(two, DEFAULT_STREAM)
    with pytest.raises(EventError, match="without timing"):
        bench.driver.elapsed_time(two, two)
    bench.driver.destroy_event(one)
    bench.driver.destroy_event(two)


def test_stream_waits_for_event_of_another(bench: Bench) -> None:
    one, two = bench.driver.create_stream(0, blocking=False), bench.driver.create_stream(0, blocking=False)
    event = bench.driver.create_event(0)
    source, target = bench.put(np.zeros(1, np.int64)), bench.put(np.full(1, -1, np.int64))
    bench.launch("spin", (1, 1, 1), (1, 1, 1), source, bench.slow, stream=one)
    bench.driver.record_event(event, one)
    bench.driver.wait_event(two, event)
    bench.driver.copy(target, source, 8, two)
    bench.driver.synchronize_stream(two)
    assert bench.get(target, np.zeros(1, np.int64))[0] == bench.slow
    for stream in (one, two):
        bench.driver.destroy_stream(stream)
    bench.driver.free(source)
    bench.driver.free(target)


def test_default_stream_waits_for_blocking_streams(bench: Bench) -> None:
    stream = bench.driver.create_stream(0)
    place = bench.put(np.zeros(1, np.int64))
    bench.launch("spin", (1, 1, 1), (1, 1, 1), place, bench.slow, stream=stream)
    assert bench.get(place, np.zeros(1, np.int64))[0] == bench.slow  # a copy on the default stream
    bench.launch("spin", (1, 1, 1), (1, 1, 1), place, bench.slow, stream=stream)
    bench.launch("count", (1, 1, 1), (1, 1, 1), place)
    bench.driver.destroy_stream(stream)
    bench.driver.synchronize_device(0)
    assert bench.get(place, np.zeros(1, np.int64))[0] == 2 * bench.slow + 1
    bench.driver.free(place)


def test_non_blocking_stream_is_not_waited_for(bench: Bench) -> None:
    stream = bench.driver.create_stream(0, blocking=False)
    gate = threading.Event()
    bench.driver.add_callback(stream, lambda error: gate.wait(10) and None)
    place = bench.put(np.zeros(1, np.int64))
    bench.launch("count", (1, 1, 1), (1, 1, 1), place)
    assert bench.get(place, np.zeros(1, np.int64))[0] == 1
    assert not bench.driver.query_stream(stream)
    gate.set()
    bench.driver.synchronize_stream(stream)
    bench.driver.destroy_stream(stream)
    bench.driver.free(place)


@pytest.mark.parametrize("own_stream", [False, True])
def test_callbacks_come_after_the_work_in_order(bench: Bench, own_stream: bool) -> None:
    stream = bench.driver.create_stream(0) if own_stream else DEFAULT_STREAM
    place = bench.put(np.zeros(1, np.int64))
    host = np.zeros(1, np.int64)
    calls: list[Any] = []
    bench.launch("spin", (1, 1, 1), (1, 1, 1), place, bench.slow, stream=stream)
    bench.driver.copy(host.ctypes.data, place, 8, stream, host)
    bench.driver.add_callback(stream, lambda error: calls.append((error, host[0], threading.current_thread())))
    bench.driver.add_callback(stream, lambda error: calls.append("second"))
    bench.driver.synchronize_stream(stream)
    error, value, thread = calls[0]
    assert (error, value, calls[1:]) == (None, bench.slow, ["second"])
    assert thread is not threading.current_thread()
    if own_stream:
        bench.driver.destroy_stream(stream)
    bench.driver.free(place)


def test_callback_is_told_of_a_fault(bench: Bench) -> None:
    stream = bench.driver.create_stream(0)
    seen = bench.put(np.zeros(64, np.uint8))
    told: list[BaseException | None] = []
    bench.launch("fault", (1, 1, 1), (64, 1, 1), seen, 5, 9, stream=stream, describe=lambda fault: OSError(fault.code))
    bench.driver.add_callback(stream, told.append)
    with pytest.raises(OSError, match="9"):
        bench.driver.synchronize_stream(stream)
    assert isinstance(told[0], OSError)
    bench.driver.destroy_stream(stream)
    bench.driver.free(seen)


@pytest.mark.parametrize("own_stream", [False, True])
def test_error_of_a_callback_is_raised(bench: Bench, own_stream: bool) -> None:
    stream = bench.driver.create_stream(0) if own_stream else DEFAULT_STREAM

    def fail(error: BaseException | None) -> None:
        raise LookupError("from the callback")

    bench.driver.add_callback(stream, fail)
    with pytest.raises(LookupError, match="from the callback"):
        bench.driver.synchronize_stream(stream)
    bench.driver.synchronize_device(0)
    if own_stream:
        bench.driver.destroy_stream(stream)


def test_callback_can_use_the_default_stream(bench: Bench) -> None:
    stream = bench.driver.create_stream(0)
    place = bench.put(np.zeros(1, np.int64))
    bench.driver.add_callback(stream, lambda error: bench.launch("count", (1, 1, 1), (1, 1, 1), place))
    bench.driver.synchronize_stream(stream)
    assert bench.get(place, np.zeros(1, np.int64))[0] == 1
    bench.driver.destroy_stream(stream)
    bench.driver.free(place)


def test_destroyed_stream_finishes_and_is_unknown(bench: Bench) -> None:
    stream = bench.driver.create_stream(0)
    place = bench.put(np.zeros(1, np.int64))
    bench.launch("spin", (1, 1, 1), (1, 1, 1), place, bench.slow, stream=stream)
    bench.driver.destroy_stream(stream)
    for use in (bench.driver.synchronize_stream, bench.driver.query_stream, bench.driver.destroy_stream):
        with pytest.raises(InvalidHandleError, match=str(stream)):
            use(stream)
    bench.driver.synchronize_device(0)
    assert bench.get(place, np.zeros(1, np.int64))[0] == bench.slow
    bench.driver.free(place)


def test_memory_freed_under_queued_work_lives_until_it_is_done(bench: Bench) -> None:
    stream = bench.driver.create_stream(0)
    gate = threading.Event()
    free, _ = bench.driver.memory_info(0)
    place = bench.put(np.zeros(1, np.int64))
    host = np.zeros(1, np.int64)
    bench.driver.add_callback(stream, lambda error: gate.wait(10) and None)
    bench.launch("spin", (1, 1, 1), (1, 1, 1), place, 1000, stream=stream)
    bench.driver.copy(host.ctypes.data, place, 8, stream, host)
    threading.Timer(0.05, gate.set).start()
    bench.driver.free(place)
    bench.driver.synchronize_stream(stream)
    assert host[0] == 1000
    bench.driver.destroy_stream(stream)
    bench.driver.synchronize_device(0)
    bench.check_free(free)


def test_memory_freed_under_queued_work_can_be_had_again(bench: Bench) -> None:
    stream = bench.driver.create_stream(0)
    gate = threading.Event()
    threading.Timer(0.05, gate.set).start()
    for _ in range(3):
        place = bench.driver.alloc(0, MEMORY * 2 // 3)
        bench.driver.add_callback(stream, lambda error: gate.wait(10) and None)
        bench.driver.fill(place, 1, 1000, stream)
        bench.driver.free(place)
    bench.driver.destroy_stream(stream)
    bench.driver.synchronize_device(0)


def test_owners_live_until_the_work_is_done_and_no_longer(bench: Bench) -> None:
    class Owner:
        pass

    stream = bench.driver.create_stream(0)
    gate = threading.Event()
    gone = threading.Event()
    owner = Owner()
    weakref.finalize(owner, gone.set)
    place = bench.put(np.zeros(1, np.int64))
    bench.driver.add_callback(stream, lambda error: gate.wait(10) and None)
    bench.launch("count", (1, 1, 1), (1, 1, 1), place, stream=stream, owners=owner)
    del owner
    assert not gone.wait(0.02)
    gate.set()
    assert gone.wait(10)
    bench.driver.synchronize_stream(stream)
    bench.driver.destroy_stream(stream)
    bench.driver.free(place)


def test_threads_launch_the_same_function_at_once(bench: Bench) -> None:
    code = bench.code("saxpy")
    kernel = code.kernels[0]
    function = bench.driver.get_function(bench.driver.load_module(0, code), kernel)
    n = 1 << 14
    x = np.arange(n, dtype=np.float32) % 100
    dx = bench.put(x)
    failures: list[str] = []

    def work() -> None:
        dy = bench.put(np.zeros(n, np.float32))
        arguments = spmd_kernels.pack(kernel, dy, dx, 1.0, n)
        for _ in range(50):
            bench.driver.launch(function, (n // 64, 1, 1), (64, 1, 1), 0, DEFAULT_STREAM, arguments)
        if not np.array_equal(bench.get(dy, x), 50 * x):
            failures.append("wrong sum")
        bench.driver.free(dy)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    bench.driver.free(dx)


def test_host_runs_beside_a_kernel(bench: Bench) -> None:
    """Waiting lets other Python threads run: this one counts while that one waits for the kernel."""
    place = bench.put(np.zeros(1, np.int64))
    thread = threading.Thread(
        target=lambda: bench.launch_and_wait("spin", (1, 1, 1), (1, 1, 1), place, 30 * bench.slow)
    )
    thread.start()
    turns = 0
    while thread.is_alive():
        time.sleep(0.001)
        turns += 1
    assert turns > 3
    bench.driver.free(place)


def test_handles_for_other_processes_name_an_allocation(bench: Bench) -> None:
    place = bench.put(np.arange(4))
    handle = bench.driver.ipc_handle(place)
    assert len(handle) == len(bench.driver.ipc_handle(place)) == 64, "HIP may give another one each time"
    if bench.driver.name == "hip" and bench.opens_own_handles:
        handle = hip_standin.of_another_process(handle)
    if bench.opens_own_handles:
        opened = bench.driver.open_ipc_handle(0, handle)
        assert opened != place
        bench.driver.free(opened)
        with pytest.raises(InvalidAddressError):
            bench.driver.free(opened)
    else:
        with pytest.raises(InvalidHandleError, match="this process made the IPC handle"):
            bench.driver.open_ipc_handle(0, handle)
    assert bench.get(place, np.zeros(4, np.int64)).tolist() == [0, 1, 2, 3]
    bench.driver.free(place)
    for wrong in (b"", handle[:-1]):
        with pytest.raises(InvalidHandleError, match="IPC handle"):
            bench.driver.open_ipc_handle(0, wrong)


def test_the_allocation_that_an_address_lies_in(bench: Bench) -> None:
    place = bench.driver.alloc(0, 100)
    for address in (place, place + 99):
        start, nbytes = bench.driver.find_allocation(address)
        assert start == place
        assert nbytes >= 100
    bench.driver.free(place)
    with pytest.raises(InvalidAddressError, match="does not lie in memory"):
        bench.driver.find_allocation(1)


def test_device_is_not_its_own_peer(bench: Bench) -> None:
    assert not bench.driver.can_access_peer(0, 0)
    with pytest.raises(UnsupportedError):
        bench.driver.enable_peer_access(0, 0)


def test_pinned_memory_is_the_hosts(bench: Bench) -> None:
    address = bench.driver.alloc(0, 8, MemoryKind.MAPPED)
    ctypes.c_int64.from_address(address).value = 77
    counter = np.zeros(1, np.int64)
    bench.launch("count", (3, 1, 1), (1, 1, 1), address)
    bench.driver.synchronize_device(0)
    assert ctypes.c_int64.from_address(address).value == 80
    assert bench.get(address, counter)[0] == 80
    bench.driver.free(address)
