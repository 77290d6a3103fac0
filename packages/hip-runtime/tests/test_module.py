"""Launches through modules and functions: what is possible, what is not and how that is said."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import numpy as np
import pytest
from spmd_kernels import pack, sample

from hip_runtime import (
    Device,
    Event,
    Function,
    KernelFault,
    LaunchError,
    Module,
    ModuleLoadError,
    Stream,
    SymbolError,
    to_device,
)


@pytest.fixture
def count(device: Device) -> Function:
    return device.load(sample("count", max_block_threads=512, shared_bytes=1000)).function("count")


@pytest.mark.parametrize(
    ("grid", "block", "threads"),
    [
        (3, 4, 12),
        ((3,), (4,), 12),
        ([3, 2], (4, 1), 24),
        ((1, 2, 3), (2, 2, 2), 48),
        (np.int64(3), (np.int8(2), 1), 6),
        (np.array([2, 2]).tolist(), 512, 2048),
        (1, (1, 1, 512), 512),
    ],
)
@pytest.mark.sample(5)
def test_configurations(count: Function, grid: Any, block: Any, threads: int) -> None:
    counter = to_device(np.zeros(1, np.int64))
    count.launch(grid, block, pack(count.kernel, counter.address))
    assert counter[0] == threads


@pytest.mark.sample(7)
@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (0, 1, r"grid has extent 0 along x; each must be at least 1"),
        ((1, -2), 1, r"grid has extent -2 along y"),
        (1, (1, 1, 0), r"block has extent 0 along z"),
        ((1, 1, 1, 1), 1, r"grid must be a sequence of 1, 2 or 3 integers, got \[1, 1, 1, 1\]"),
        ((), 1, r"grid must be a sequence of 1, 2 or 3 integers, got \[\]"),
        (1.5, 1, r"grid must be a sequence of integers, got \[1\.5\]; 1.5 is a float: divide with // instead of /"),
        ([1, np.float32(2)], 1, r"grid must be a sequence of integers, got .*; 2.0 is a float: .*int\("),
        (1, (2.0, 1), r"block must be a sequence of integers, got \[2\.0, 1\]"),
        (True, 1, r"grid must be a sequence of integers, got \[True\]"),
        ("12", 1, r"grid must be a sequence of integers, got \['12'\]; one alone can stand"),
        (None, 1, r"grid must be a sequence of integers, got \[None\]"),
        (1, {1, 2}, r"block must be a sequence of integers"),
        (2**31, 1, r"grid has extent 2147483648 along x; .* allows at most 2147483647"),
        ((1, 65536), 1, r"grid has extent 65536 along y; .* allows at most 65535"),
        (1, 1025, r"block has extent 1025 along x; .* allows at most 1024"),
        (1, (32, 33), r"block \(32, 33, 1\) has 1056 threads; .* allows at most 1024"),
        (1, 513, r"block \(513, 1, 1\) has 513 threads; kernel 'count' was compiled for at most 512"),
    ],
)
def test_impossible_configurations(count: Function, grid: Any, block: Any, message: str) -> None:
    counter = to_device(np.zeros(1, np.int64))
    with pytest.raises(LaunchError, match=message):
        count.launch(grid, block, pack(count.kernel, counter.address))
    assert counter[0] == 0


@pytest.mark.parametrize("dynamic_shared", [-1, 65536 - 999, 1.5, None])
def test_impossible_shared_memory(count: Function, dynamic_shared: Any) -> None:
    with pytest.raises(LaunchError, match="dynamic_shared"):
        count.configure(1, 1, dynamic_shared=dynamic_shared)
    assert count.configure(1, 1, dynamic_shared=65536 - 1000).dynamic_shared == 64536


@pytest.mark.parametrize("arguments", [b"", bytes(7), bytes(9), bytearray(16)])
def test_arguments_of_another_size(count: Function, arguments: bytes) -> None:
    with pytest.raises(LaunchError, match=rf"{len(arguments)} bytes; kernel 'count' takes 8 bytes for"):
        count.launch(1, 1, arguments)


def test_arguments_of_another_kind(count: Function) -> None:
    counter = to_device(np.zeros(1, np.int64))
    count.launch(1, 1, bytearray(pack(count.kernel, counter.address)))
    assert counter[0] == 1
    with pytest.raises(LaunchError, match="must be bytes, not str"):
        count.launch(1, 1, "12345678")  # type: ignore[arg-type]


def test_unknown_kernel_names_the_known_ones(device: Device) -> None:
    with pytest.raises(SymbolError, match="'other'.*it holds: count"):
        device.load(sample("count")).function("other")
    with pytest.raises(SymbolError, match="'table'"):
        device.load(sample("count")).global_variable("table")


def test_module_on_the_current_device(device: Device) -> None:
    assert Module(None, sample("count")).device is device


@pytest.mark.parametrize("how", ["unload", "collect"])
def test_callbacks_before_a_module_is_unloaded(device: Device, how: str) -> None:
    said: list[object] = []
    module = device.load(sample("count"))
    handle = module.handle

    def fail(module: Module) -> None:
        said.append("fail")
        raise OSError("a callback that fails")

    module.before_unload(lambda module: said.append((module.handle, module.function("count").name)))
    if how == "unload":
        module.before_unload(fail)
        with pytest.raises(OSError, match="a callback that fails"):
            module.unload()
        assert said == ["fail", (handle, "count")]
        module.unload()
    del module
    gc.collect()
    assert said[-1:] == [(handle, "count")]
    assert len(said) == (2 if how == "unload" else 1)


def test_unloaded_module(device: Device) -> None:
    module = device.load(sample("count"))
    function = module.function("count")
    counter = to_device(np.zeros(1, np.int64))
    arguments = pack(function.kernel, counter.address)
    function.launch(1, 1, arguments)
    module.unload()
    with pytest.raises(ModuleLoadError, match="'count': its module was unloaded"):
        function.launch(1, 1, arguments)


def test_function_keeps_its_module(device: Device) -> None:
    function = device.load(sample("count")).function("count")
    gc.collect()
    counter = to_device(np.zeros(1, np.int64))
    function.launch(2, 2, pack(function.kernel, counter.address))
    assert counter[0] == 4


def test_launch_object_and_function_go_while_work_is_queued(device: Device) -> None:
    stream = Stream()
    counter = to_device(np.zeros(1, np.int64))
    for _ in range(20):
        function = device.load(sample("count")).function("count")
        function.launch(2, 2, pack(function.kernel, counter.address), stream=stream, owners=counter)
        del function
    gc.collect()
    stream.synchronize()
    assert counter[0] == 80


def test_cooperative_launch(count: Function) -> None:
    counter = to_device(np.zeros(1, np.int64))
    count.launch(4, 8, pack(count.kernel, counter.address), cooperative=True)
    assert counter[0] == 32


def test_occupancy(count: Function) -> None:
    assert count.max_active_blocks(64) >= 1
    with pytest.raises(LaunchError, match="block has extent 0"):
        count.max_active_blocks(0)


def test_faults_become_exceptions_of_the_layer_above(device: Device) -> None:
    function = device.load(sample("fault")).function("fault")
    seen = to_device(np.zeros(64, np.uint8))
    arguments = pack(function.kernel, seen.address, 3, 17)
    with pytest.raises(KernelFault) as caught:
        function.launch(1, 64, arguments)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert (again.code, again.thread) == (17, (3, 0, 0))

    function.describe_fault = lambda fault: IndexError(f"{fault.kernel}: {fault.code}, {fault.thread}")
    with pytest.raises(IndexError, match=r"fault: 17, \(3, 0, 0\)"):
        function.launch(1, 64, arguments)
    stream = Stream()
    event = Event()
    function.launch(1, 64, arguments, stream=stream)
    stream.record(event)
    with pytest.raises(IndexError, match="fault: 17"):
        event.synchronize()
    stream.synchronize()


def test_fault_reaches_the_stream_that_depends_on_it(device: Device) -> None:
    function = device.load(sample("fault")).function("fault")
    seen = to_device(np.zeros(64, np.uint8))
    one, two = Stream(), Stream()
    function.launch(1, 64, pack(function.kernel, seen.address, 3, 17), stream=one)
    two.wait(one.record())
    told: list[BaseException | None] = []
    two.add_callback(told.append)
    for stream in (two, one):
        with pytest.raises(KernelFault, match="code 17"):
            stream.synchronize()
    assert isinstance(told[0], KernelFault)
    assert told[0].code == 17


def test_stream_and_event_objects(device: Device) -> None:
    stream = Stream()
    assert int(stream) == stream.handle > 2
    assert repr(stream) == f"<stream {stream.handle} of device 0>"
    assert repr(Stream(handle=0)) == "<default stream of device 0>"
    start = stream.record()
    with stream.auto_synchronize() as inside:
        assert inside is stream
        stream.add_callback(lambda error: None)
        end = Event()
        end.record(stream)
    assert stream.query()
    assert end.query()
    assert start.elapsed_time(end) >= 0
    Event().wait(stream)
    stream.close()
    stream.close()
    Stream(handle=0).close()
    Stream(handle=0).synchronize()
