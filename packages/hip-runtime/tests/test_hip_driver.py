"""The driver of AMD GPUs over the stand-in for the HIP runtime: what `test_driver_contract.py` cannot see."""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import struct
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import hip_kernels
import hip_standin
import numpy as np
import pytest
import spmd_kernels
from hip_standin import Standin

from hip_devicelib import read_kernels
from hip_devicelib.codeobject import CPU_TARGET, CodeObject
from hip_devicelib.target import STACK_BYTES
from hip_runtime import device as devices
from hip_runtime.arrays import to_device
from hip_runtime.cuda_device_attributes import HIP_NAMES
from hip_runtime.device import Device
from hip_runtime.driver import DEFAULT_STREAM, MemoryKind
from hip_runtime.drivers.hip.driver import HipDriver
from hip_runtime.drivers.hip.memory import RETIRED_COUNT
from hip_runtime.drivers.hip.modules import runs_on
from hip_runtime.drivers.hip.probe import import_hip
from hip_runtime.drivers.hip.streams import OWNERS_PER_POINT, HipStream
from hip_runtime.drivers.hip.unloading import UNLOADING_COUNT
from hip_runtime.errors import (
    DeviceUnavailableError,
    InvalidHandleError,
    KernelFault,
    LaunchError,
    ModuleLoadError,
    SymbolError,
    UnknownDeviceError,
    UnsupportedError,
)
from hip_runtime.module import Module
from hip_runtime.stream import Stream

SLOW = 3_000_000  # turns of the kernel `spin`: some milliseconds


@pytest.fixture
def standin() -> Standin:
    return hip_standin.standin()


@pytest.fixture
def driver(standin: Standin) -> Iterator[HipDriver]:
    """A driver; whatever the test and the driver took must be given back at the end."""
    before = standin.live()
    driver = HipDriver()
    standin.calls()
    standin.launches()
    yield driver
    gc.collect()
    driver.close()
    assert standin.live() == before


class Loaded:
    """A module with some kernels, unloaded at the end."""

    def __init__(self, driver: HipDriver, *names: str, device: int = 0) -> None:
        self.code = hip_kernels.code(*names, target=hip_kernels.TARGETS[device])
        self.driver = driver
        self.module = driver.load_module(device, self.code)
        self.functions = {name: driver.get_function(self.module, self.code.kernel(name)) for name in names}

    def __enter__(self) -> Loaded:
        return self

    def __exit__(self, *error: object) -> None:
        self.driver.unload_module(self.module)

    def launch(self, name: str, *values: Any, grid: int = 1, block: int = 1, stream: int = 0, **more: Any) -> None:
        arguments = spmd_kernels.pack(self.code.kernel(name), *values)
        self.driver.launch(self.functions[name], (grid, 1, 1), (block, 1, 1), 0, stream, arguments, **more)


def names(calls: list[str]) -> list[str]:
    return [call.split()[0] for call in calls]


# devices


def test_attributes_of_each_device(driver: HipDriver) -> None:
    one, other = (driver.attributes(device) for device in range(driver.device_count()))
    assert (one.name, one.target, one.wave_size) == ("Stand-in MI210", "gfx90a:sramecc+:xnack-", 64)
    assert (other.name, other.target, other.wave_size) == ("Stand-in RX 7900", "gfx1100", 32)
    assert (one.compute_units, one.total_memory, one.max_threads_per_block) == (104, hip_standin.MEMORY, 1024)
    assert (one.max_block_dim, one.max_grid_dim) == ((1024, 1024, 1024), (2**31 - 1, 65535, 65535))
    assert one.max_threads_along == 2**32 - 1
    assert (one.shared_bytes_per_block, one.registers_per_block) == (65536, 65536)
    assert (one.clock_rate, one.memory_clock_rate) == (1_700_000, 1_600_000)
    assert (one.pci, other.pci) == ((1, 0x40, 3), (1, 0x41, 3))
    assert (one.uuid, other.uuid) == ("GPU-0123456789abcde0", "GPU-0123456789abcde1")
    assert (one.integrated, one.managed_memory, one.concurrent_kernels, one.cooperative_launch) == (False, *[True] * 3)


def test_attributes_by_their_names(driver: HipDriver, standin: Standin) -> None:
    assert [driver.attribute(device, "L2CacheSize") for device in (0, 1)] == [4194304, 8388608]
    assert driver.attribute(0, "AsyncEngineCount") == 8
    number = import_hip().hipDeviceAttribute_t.hipDeviceAttributeTotalConstantMemory
    assert driver.attribute(0, "TotalConstantMemory") == 0, "what the runtime does not know"
    assert standin.calls()[-1] == f"hipDeviceGetAttribute {int(number)} 0"
    assert driver.attribute(0, "NoSuchThing") == 0, "what hip-python does not know"
    with pytest.raises(UnknownDeviceError, match="no HIP device 7"):
        driver.attribute(7, "L2CacheSize")
    device = Device(driver, 1, 1)
    assert (device.L2_CACHE_SIZE, device.ASYNC_ENGINE_COUNT, device.WARP_SIZE) == (8388608, 8, 32)
    assert device.CLUSTER_LAUNCH == 0


@pytest.mark.skipif(find_spec("hip") is None, reason="needs hip-python")
def test_hip_has_the_attributes_that_cudas_are_taken_for() -> None:
    known = {name.removeprefix("hipDeviceAttribute") for name in import_hip().hipDeviceAttribute_t.__members__}
    unknown = {name for name in HIP_NAMES.values() if name is not None} - known
    assert unknown <= {
        "AccessPolicyMaxWindowSize", "DmaBufSupported", "GPUDirectRDMAWithHipVMMSupported", "HandleTypeFabricSupported",
        "HostNumaId", "MemoryPoolSupportedHandleTypes", "PersistingL2CacheMaxSize", "ReservedSharedMemPerBlock",
    }, "what releases of HIP before 10 may not have yet"  # fmt: skip


@pytest.mark.parametrize("device", [-1, 2])
def test_devices_that_do_not_exist(driver: HipDriver, device: int) -> None:
    for use in (driver.attributes, driver.memory_info, driver.synchronize_device, driver.create_stream):
        with pytest.raises(UnknownDeviceError, match=rf"no HIP device {device}; .* from 0 to 1"):
            use(device)


@pytest.mark.parametrize("choice", ["auto", "hip"])
def test_gpus_are_found_and_used(standin: Standin, monkeypatch: pytest.MonkeyPatch, choice: str) -> None:
    import hip_runtime as rt

    monkeypatch.setattr(devices, "_registry", devices._Registry())
    with rt.config.device.scope(choice):
        found = rt.devices()
    assert [(device.id, device.target, device.is_cpu) for device in found] == [
        (0, "gfx90a:sramecc+:xnack-", False),
        (1, "gfx1100", False),
    ]
    rt.select_device("gfx1100")
    x = rt.to_device(np.arange(10.0))
    assert x.device is found[1]
    module = found[1].load(hip_kernels.code("count", target="gfx1100"))
    counter = rt.to_device(np.zeros(1, np.int64))
    module.function("count").launch(3, 7, struct.pack("<Q", counter.address), owners=counter)
    assert counter.copy_to_host()[0] == 21
    np.testing.assert_array_equal(x[::-3].copy_to_host(), np.arange(10.0)[::-3])
    del x, counter, module
    gc.collect()
    found[1].synchronize()
    found[0].driver.close()  # type: ignore[attr-defined]


def test_peers(driver: HipDriver, standin: Standin) -> None:
    for _ in range(2):  # the second time it is on already
        driver.enable_peer_access(0, 1)
    assert standin.calls()[-3:] == ["hipDeviceCanAccessPeer 0 1", "hipSetDevice 0", "hipDeviceEnablePeerAccess 1 0"]


def test_two_devices_have_their_own_memory_streams_and_code(driver: HipDriver, standin: Standin) -> None:
    host = np.zeros(1, np.int64)
    for device in (0, 1):
        with Loaded(driver, "count", device=device) as code:
            gc.collect()  # what other tests have left would be given back in between
            before = [driver.memory_info(which)[0] for which in (0, 1)]
            place = driver.alloc(device, 8)
            free = [driver.memory_info(which)[0] for which in (0, 1)]
            assert free[device] < before[device]
            assert free[1 - device] == before[1 - device]
            stream = driver.create_stream(device)
            driver.fill(place, 0, 8)
            code.launch("count", place, grid=device + 2, stream=stream)
            code.launch("count", place, grid=1)
            driver.copy(host.ctypes.data, place, 8)
            assert host[0] == device + 3
            assert {launch.device for launch in standin.launches()} == {device}
            other = driver.create_stream(1 - device)
            with pytest.raises(LaunchError, match=f"device {device}; the stream is of device {1 - device}"):
                code.launch("count", place, stream=other)
            event = driver.create_event(1 - device)
            with pytest.raises(InvalidHandleError, match=f"device {1 - device}, the stream of device {device}"):
                driver.record_event(event, stream)
            for handle in (stream, other):
                driver.destroy_stream(handle)
            driver.free(place)


def test_memory_of_one_device_is_copied_to_another(driver: HipDriver) -> None:
    data = np.arange(1000)
    back = np.empty_like(data)
    one, other = (driver.alloc(device, data.nbytes) for device in (0, 1))
    driver.copy(one, data.ctypes.data, data.nbytes)
    driver.copy(other, one, data.nbytes)
    driver.copy(back.ctypes.data, other, data.nbytes)
    np.testing.assert_array_equal(back, data)
    driver.free(one)
    driver.free(other)


@pytest.mark.parametrize("own_stream", [False, True])
@pytest.mark.parametrize("access", ["none", "possible", "enabled"])
def test_arrays_of_one_device_are_copied_to_another(
    driver: HipDriver, standin: Standin, monkeypatch: pytest.MonkeyPatch, own_stream: bool, access: str
) -> None:
    for device in (0, 1):  # whatever tests before this one have enabled
        standin.call("hipSetDevice", device)
        standin.call("hipDeviceDisablePeerAccess", 1 - device)
    if access == "none":
        monkeypatch.setenv("STANDIN_NO_PEERS", "1")
    one, other = (Device(driver, device, device) for device in (0, 1))
    assert one.can_access_peer(other) == (access != "none")
    if access == "enabled":
        for _ in range(2):
            one.enable_peer_access(other)
        other.enable_peer_access(one)
        assert (one.peers, other.peers) == ({other}, {one})
    if access == "none":
        with pytest.raises(UnsupportedError, match="kernels on .*Device 0.* cannot use memory of .*Device 1"):
            one.enable_peer_access(other)
    values = np.arange(1000.0).reshape(20, 50)
    stream = Stream(other) if own_stream else None
    source, target = to_device(values, device=one), to_device(np.zeros((20, 50)), device=other)
    with Loaded(driver, "spin") as code:
        code.launch("spin", source.address, SLOW)  # changes the first element
        one.synchronize() if own_stream else None
        standin.calls()
        target.copy_to_device(source, stream=stream)
        assert "hipMemcpyPeerAsync 8000 from 0 to 1" in standin.calls()
        np.testing.assert_array_equal(target.copy_to_host(stream=stream), source.copy_to_host())
        target[:, ::-2].copy_to_device(source[:, 25:], stream=stream)
        np.testing.assert_array_equal(target[:, ::-2].copy_to_host(stream=stream), values[:, 25:])
        one.synchronize()
    if stream is not None:
        stream.close()
    del source, target


# launches


def test_what_no_gpu_can_launch_is_refused_before_the_runtime_is_asked(driver: HipDriver, standin: Standin) -> None:
    device = Device(driver, 0, 0)
    kernel = Module(device, hip_kernels.code("empty")).function("empty")
    standin.calls()
    for grid, block, shared, says in (
        (0, 1, 0, "grid has extent 0 along x"),
        (1, (32, 33), 0, r"has 1056 threads; .* at most 1024"),
        ((1, 65536), 1, 0, "grid has extent 65536 along y; .* at most 65535"),
        ((1, 1, 65536), 1, 0, "grid has extent 65536 along z; .* at most 65535"),
        (2**23, 512, 0, "grid and block have 8388608 times 512 threads along x; .* at most 4294967295"),
        (1, 1, 65537, "dynamic_shared is 65537 bytes"),
    ):
        with pytest.raises(LaunchError, match=says):
            kernel.launch(grid, block, b"", dynamic_shared=shared)
    assert standin.launches() == []


def test_a_device_without_cooperative_launches_says_so(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_NOT_COOPERATIVE", "1")
    driver = HipDriver()
    with Loaded(driver, "empty") as code:
        standin.calls()
        with pytest.raises(UnsupportedError, match="'empty': device 0 has no cooperative launches"):
            code.launch("empty", cooperative=True)
        assert standin.calls() == []
        code.launch("empty")
    driver.close()


def read_field(kind: str, data: bytes) -> Any:
    if kind == "ptr":
        return struct.unpack("<Q", data)[0]
    return struct.unpack("<" + spmd_kernels._FORMATS[kind], data)[0]


@pytest.mark.parametrize("cooperative", [False, True])
@pytest.mark.parametrize("device", [0, 1])
def test_arguments_lie_where_the_metadata_says(
    driver: HipDriver, standin: Standin, cooperative: bool, device: int
) -> None:
    values = {
        "saxpy": (0x1122334455667788, 0x99AABBCCDDEEFF00, 1.5, 0),
        "mixed": (-5, -300, 0.25, -(2**40), 0xDEADBEEF00, 2.0**-40, 0.5),
        "count": (0,),
        "empty": (),
    }
    with Loaded(driver, *(name for name in values if name != "count"), device=device) as code:
        metadata = {kernel.name: kernel for kernel in read_kernels(code.code.image, hip_kernels.SIGNATURES)}
        for name, function in code.functions.items():
            kernel = metadata[name]
            arguments = spmd_kernels.pack(kernel, *values[name])
            driver.launch(function, (3, 2, 1), (64, 2, 2), 48, DEFAULT_STREAM, arguments, cooperative)
            (launch,) = standin.launches()
            assert (launch.name, launch.grid, launch.block, launch.shared) == (name, (3, 2, 1), (64, 2, 2), 48)
            assert (launch.cooperative, launch.device, launch.stream) == (cooperative, device, 0)
            assert len(launch.arguments) == kernel.argument_bytes
            for parameter, value in zip(kernel.parameters, values[name], strict=True):
                field = launch.arguments[parameter.offset : parameter.offset + parameter.size]
                assert read_field(parameter.type, field) == value
            if not cooperative:
                assert launch.arguments == arguments  # the gaps, too


def test_a_launch_is_one_call(driver: HipDriver, standin: Standin) -> None:
    with Loaded(driver, "mixed") as code:
        stream = driver.create_stream(0)
        standin.calls()
        code.launch("mixed", *range(7), stream=stream, owners=object())
        assert standin.calls() == ["hipSetDevice 0", "hipModuleLaunchKernel mixed"]
        driver.destroy_stream(stream)


def test_arguments_of_another_size_are_refused(driver: HipDriver) -> None:
    with Loaded(driver, "count") as code, pytest.raises(LaunchError, match="arguments are 7 bytes; .*'count' takes 8"):
        driver.launch(code.functions["count"], (1, 1, 1), (1, 1, 1), 0, 0, bytes(7))


def test_kernels_are_not_ended_from_outside(driver: HipDriver) -> None:
    device = Device(driver, 0, 0)
    for end in (device.abort, Stream(device).abort):
        with pytest.raises(UnsupportedError, match="unless with its process"):
            end()


def test_occupancy(driver: HipDriver, standin: Standin) -> None:
    with Loaded(driver, "count") as code:
        assert driver.max_active_blocks(code.functions["count"], 256, 1024) == 8
        assert standin.calls()[-1].endswith("count 256 1024")


# code


def test_globals(driver: HipDriver) -> None:
    with Loaded(driver, "count") as code:
        address, nbytes = driver.get_global(code.module, "table")
        assert nbytes == 24
        back = np.ones(6, np.int32)
        driver.copy(back.ctypes.data, address, nbytes)
        assert not back.any()
        with pytest.raises(SymbolError, match="gfx90a has no global variable 'tables'"):
            driver.get_global(code.module, "tables")
    with pytest.raises(ModuleLoadError, match="count was unloaded"):
        driver.get_global(code.module, "table")


def test_kernel_that_the_code_does_not_hold(driver: HipDriver) -> None:
    with Loaded(driver, "count") as code, pytest.raises(SymbolError, match="gfx90a has no kernel 'saxpy'"):
        driver.get_function(code.module, hip_kernels.code("saxpy").kernels[0])


@pytest.mark.parametrize(
    ("target", "device", "runs"),
    [
        ("gfx90a", "gfx90a:sramecc+:xnack-", True),
        ("gfx90a:xnack-", "gfx90a:sramecc+:xnack-", True),
        ("gfx90a:xnack+", "gfx90a:sramecc+:xnack-", False),
        ("gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-", True),
        ("gfx942", "gfx90a:sramecc+:xnack-", False),
        ("gfx9-4-generic", "gfx942:sramecc+:xnack-", True),
        ("gfx9-4-generic:xnack+", "gfx942:sramecc+:xnack-", False),
        ("gfx11-generic", "gfx1100", True),
        ("gfx11-generic", "gfx1201", False),
        ("gfx9999", "gfx9999", True),  # a device newer than the table
    ],
)
def test_which_code_runs_where(target: str, device: str, runs: bool) -> None:
    assert runs_on(target, device) is runs


def test_code_of_another_processor_is_refused(driver: HipDriver, standin: Standin) -> None:
    code = hip_kernels.code("count", target="gfx1100")
    with pytest.raises(ModuleLoadError, match="is for gfx1100; this device runs code for gfx90a:sramecc"):
        driver.load_module(0, code)
    with pytest.raises(ModuleLoadError, match="the image of this code object for gfx90a is for gfx1100"):
        driver.load_module(0, CodeObject("gfx90a", code.image, code.kernels))
    with pytest.raises(ModuleLoadError, match="is for the CPU device; this device needs code for gfx90a"):
        driver.load_module(0, CodeObject(CPU_TARGET, code.image, code.kernels))
    relocatable = bytearray(hip_kernels.code("count").image)
    relocatable[hip_kernels.ELF_KIND] = 1
    with pytest.raises(ModuleLoadError, match=r"a relocatable object, not linked: give it to hip_devicelib\.link"):
        driver.load_module(0, CodeObject("gfx90a", bytes(relocatable), code.kernels))
    assert "hipModuleLoadData" not in names(standin.calls())


def test_code_is_taken_away_when_the_device_is_idle(driver: HipDriver, standin: Standin) -> None:
    stream = driver.create_stream(0)
    with Loaded(driver, "spin") as code:
        place = driver.alloc(0, 8, MemoryKind.MAPPED)
        code.launch("spin", place, SLOW, stream=stream)
    assert "hipModuleUnload" not in names(standin.calls())
    driver.synchronize_device(0)
    calls = names(standin.calls())
    assert "hipDeviceSynchronize" in calls[: calls.index("hipModuleUnload")]
    driver.destroy_stream(stream)
    driver.free(place)


def test_unloaded_code_does_not_pile_up(driver: HipDriver, standin: Standin) -> None:
    before = standin.live()["modules"]
    for _ in range(3 * UNLOADING_COUNT):
        with Loaded(driver, "fault"):
            pass
        assert standin.live()["modules"] - before <= UNLOADING_COUNT + 1


# memory


def test_freed_memory_goes_back_many_at_a_time(driver: HipDriver, standin: Standin) -> None:
    for _ in range(RETIRED_COUNT):
        driver.free(driver.alloc(0, 8))
    calls = names(standin.calls())
    assert not {"hipFree", "hipDeviceSynchronize"} & set(calls), "finalisers free, in any thread: they must not wait"
    driver.free(driver.alloc(0, 8))
    calls = names(standin.calls())
    assert calls.count("hipFree") == RETIRED_COUNT
    assert calls.index("hipStreamSynchronize") < calls.index("hipFree")
    assert "hipDeviceSynchronize" not in calls, "it would cost the captures of others"


def test_freed_memory_can_be_had_again(driver: HipDriver) -> None:
    for _ in range(5):
        driver.free(driver.alloc(0, hip_standin.MEMORY // 3 * 2))


def test_ipc(driver: HipDriver, standin: Standin) -> None:
    place = driver.alloc(1, 64)
    handle = driver.ipc_handle(place)
    assert (type(handle), len(handle)) == (bytes, 64)
    with pytest.raises(
        InvalidHandleError, match="this process made the IPC handle, .*: use the array that it was made"
    ):
        driver.open_ipc_handle(1, handle)
    handle = hip_standin.of_another_process(handle)
    opened = driver.open_ipc_handle(1, handle)
    assert standin.calls()[-1] == "hipIpcOpenMemHandle flags 1 on 1"
    driver.free(opened)
    driver.free(place)
    driver.memory_info(0)
    assert {"hipIpcCloseMemHandle", "hipFree"} <= set(names(standin.calls()))
    with pytest.raises(InvalidHandleError, match="an IPC handle has 64 bytes, this one 63"):
        driver.open_ipc_handle(1, handle[1:])


def test_kernels_with_recursion_get_the_largest_stack(driver: HipDriver, standin: Standin) -> None:
    limit, place = ctypes.c_size_t(), driver.alloc(1, 8)
    with Loaded(driver, "deep", "count", device=1) as loaded:
        assert [loaded.code.kernel(name).has_dynamic_stack for name in ("deep", "count")] == [True, False]
        standin.call("hipSetDevice", 1)
        standin.call("hipDeviceGetLimit", ctypes.byref(limit), 0)
        assert limit.value == STACK_BYTES
        loaded.launch("deep", place, 100)
        found = np.zeros(1, np.int64)
        driver.copy(found.ctypes.data, place, 8)
        assert found[0] == 5050
        standin.call("hipDeviceSetLimit", 0, 2 * STACK_BYTES)  # as somebody else may
        standin.calls()
        driver.get_function(loaded.module, loaded.code.kernel("count"))
        assert not any("Limit" in call for call in standin.calls()), "it is of no concern"
        driver.get_function(loaded.module, loaded.code.kernel("deep"))
        standin.call("hipDeviceGetLimit", ctypes.byref(limit), 0)
        assert limit.value == 2 * STACK_BYTES
        standin.call("hipDeviceSetLimit", 0, 1024)
        large = replace(loaded.code.kernel("deep"), private_bytes=STACK_BYTES + 16)
        with pytest.raises(
            UnsupportedError, match="'deep': a thread needs 16400 bytes .* gives kernels with recursion 16384"
        ):
            driver.get_function(loaded.module, large)
        driver.get_function(loaded.module, replace(loaded.code.kernel("count"), private_bytes=STACK_BYTES + 16))
    driver.free(place)


# streams and events


def test_streams_that_others_made_can_be_used(driver: HipDriver, standin: Standin) -> None:
    hip = import_hip()
    driver._calls.activate(1)
    error, stream = hip.hipStreamCreateWithPriority(1, 0)
    assert int(error) == 0
    handle = int(stream.as_c_void_p().value) if not isinstance(stream, int) else stream
    with Loaded(driver, "count", device=1) as code:
        place = driver.alloc(1, 8, MemoryKind.MAPPED)
        driver.fill(place, 0, 8, handle)
        code.launch("count", place, grid=9, stream=handle)
        driver.synchronize_stream(handle)
        assert np.ctypeslib.as_array((np.ctypeslib.ctypes.c_int64 * 1).from_address(place))[0] == 9
        driver.free(place)
    driver.synchronize_device(1)
    driver.destroy_stream(handle)
    standin.calls()
    with pytest.raises(InvalidHandleError, match=f"stream {handle} does not exist"):
        driver.query_stream(handle)
    assert "hipStreamGetFlags" not in names(standin.calls()), "not every release checks the handle there"


@pytest.mark.parametrize("owners", [1, OWNERS_PER_POINT, 3 * OWNERS_PER_POINT + 5])
@pytest.mark.sample(1)
def test_owners_go_when_the_work_is_done(driver: HipDriver, owners: int) -> None:
    class Owner:
        pass

    stream = driver.create_stream(0)
    with Loaded(driver, "spin", "empty") as code:
        place = driver.alloc(0, 8, MemoryKind.MAPPED)
        gone: list[int] = []
        code.launch("spin", place, 200 * SLOW, stream=stream)
        for number in range(owners):
            owner = Owner()
            weakref.finalize(owner, gone.append, number)
            code.launch("empty", stream=stream, owners=owner)
            del owner
        assert not gone
        driver.synchronize_stream(stream)
        assert len(gone) == owners
    driver.destroy_stream(stream)
    driver.free(place)


@pytest.mark.parametrize("moment", ["reap", "is_done", "look_for_fault"])
def test_a_stream_that_two_threads_let_go_of_is_destroyed_once(
    driver: HipDriver, standin: Standin, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Another thread comes to it, from ``create_stream``, while this one is about to do what *moment* says."""
    handle, unchanged = driver.create_stream(0), getattr(HipStream, moment)
    streams: list[int] = []
    other = threading.Thread(target=lambda: streams.append(driver.create_stream(0)))

    def meanwhile(stream: HipStream) -> Any:
        if stream.handle == handle and other.ident is None:
            other.start()
            other.join(30)
            stream.wait()
        return unchanged(stream)

    monkeypatch.setattr(HipStream, moment, meanwhile)
    standin.calls()
    driver.destroy_stream(handle)
    assert streams, "the other thread came to no end"
    assert names(standin.calls()).count("hipStreamDestroy") == 1
    monkeypatch.undo()
    driver.destroy_stream(streams[0])


def test_a_stream_that_somebody_asks_about_is_destroyed_later(driver: HipDriver, standin: Standin) -> None:
    handle = driver.create_stream(0)
    standin.calls()
    with driver._streams.find(handle).gate:
        driver.destroy_stream(handle)
        assert "hipStreamDestroy" not in names(standin.calls())
    driver.synchronize_device(0)
    assert names(standin.calls()).count("hipStreamDestroy") == 1


def test_many_launches_let_go_of_owners_without_being_waited_for(driver: HipDriver) -> None:
    class Owner:
        pass

    live: weakref.WeakSet[Owner] = weakref.WeakSet()
    stream = driver.create_stream(0)
    with Loaded(driver, "empty") as code:
        for number in range(20 * OWNERS_PER_POINT):
            owner = Owner()
            live.add(owner)
            code.launch("empty", stream=stream, owners=owner)
            if number % OWNERS_PER_POINT == 0:
                driver._calls.hipStreamSynchronize(stream)  # HIP is done; the driver was not told
        del owner
        assert len(live) <= 3 * OWNERS_PER_POINT
    driver.destroy_stream(stream)


def test_event_recorded_again_while_somebody_waits_for_the_first_record(driver: HipDriver) -> None:
    """Two streams behind callbacks: the second waits for the first record, not for the one that comes after its own."""
    one, two = driver.create_stream(0, blocking=False), driver.create_stream(0, blocking=False)
    event, other = driver.create_event(0), driver.create_event(0)
    gate, order = threading.Event(), list[str]()
    driver.add_callback(one, lambda error: gate.wait(10) and None)
    driver.record_event(event, one)
    driver.wait_event(two, event)
    driver.add_callback(two, lambda error: order.append("two"))
    driver.record_event(other, two)
    driver.wait_event(one, other)  # the first stream goes on behind the second
    driver.record_event(event, one)
    driver.add_callback(one, lambda error: order.append("one"))
    assert not driver.query_event(event)
    gate.set()
    driver.synchronize_event(event)
    for stream in (one, two):
        driver.synchronize_stream(stream)
        driver.destroy_stream(stream)
    assert order == ["two", "one"]


def test_callbacks_that_use_the_default_stream_do_not_wait_for_each_other(driver: HipDriver) -> None:
    streams = [driver.create_stream(0) for _ in range(4)]
    meet = threading.Barrier(len(streams), timeout=10)
    place = driver.alloc(0, 8)

    def work(error: BaseException | None) -> None:
        meet.wait()
        driver.fill(place, 1, 8)

    for stream in streams:
        driver.add_callback(stream, work)
    for stream in streams:
        driver.synchronize_stream(stream)
        driver.destroy_stream(stream)
    driver.free(place)


# faults of kernels


def test_fault_is_raised_by_a_copy_on_the_default_stream(driver: HipDriver) -> None:
    seen = driver.alloc(0, 64)
    host = np.zeros(64, np.uint8)
    driver.fill(seen, 0, 64)
    with Loaded(driver, "fault") as code:
        code.launch("fault", seen, 70, 9, grid=2, block=64 // 2)
        driver.copy(host.ctypes.data, seen, 64)  # nobody stopped
        code.launch("fault", seen, 33, 9, grid=2, block=64 // 2)
        with pytest.raises(KernelFault) as caught:
            driver.copy(host.ctypes.data, seen, 64)
        assert (caught.value.block, caught.value.thread, caught.value.code) == ((1, 0, 0), (1, 0, 0), 9)
        driver.copy(host.ctypes.data, seen, 64)
        code.launch("fault", seen, 3, 8, grid=2, block=64 // 2)
        with pytest.raises(KernelFault, match="error code 8"):
            driver.synchronize_device(0)
    driver.free(seen)


def test_details_of_a_fault(driver: HipDriver) -> None:
    seen = driver.alloc(0, 64)
    found = []
    with Loaded(driver, "fault") as code:
        for number in (100, 9):  # the stand-in's kernel adds details to codes over 99
            code.launch("fault", seen, 35, number, grid=2, block=64 // 2)
            with pytest.raises(KernelFault) as caught:
                driver.synchronize_device(0)
            found.append(caught.value)
    assert [fault.details for fault in found] == [(100, -3, 0, 2**63 - 1), ()], "nothing is left of those before"
    assert pickle.loads(pickle.dumps(found[0])).details == found[0].details
    driver.free(seen)


def test_each_kernel_keeps_the_first_of_its_faults(driver: HipDriver) -> None:
    stream = driver.create_stream(0)
    seen = driver.alloc(0, 64)
    with Loaded(driver, "fault") as code:
        for number in (5, 6, 7):
            code.launch("fault", seen, 0, number, block=8, stream=stream)
        with pytest.raises(KernelFault, match="error code 5"):
            driver.synchronize_stream(stream)
        driver.synchronize_stream(stream)
    driver.destroy_stream(stream)
    driver.free(seen)


# threads and processes


def test_threads_on_both_devices(driver: HipDriver) -> None:
    failures: list[str] = []

    def work(device: int) -> None:
        with Loaded(driver, "count", device=device) as code:
            stream = driver.create_stream(device)
            place = driver.alloc(device, 8)
            driver.fill(place, 0, 8, stream)
            for _ in range(100):
                code.launch("count", place, grid=2, block=3, stream=stream, owners=object())
            host = np.zeros(1, np.int64)
            driver.copy(host.ctypes.data, place, 8, stream, host)
            driver.synchronize_stream(stream)
            if host[0] != 600:
                failures.append(f"{host[0]} on device {device}")
            driver.destroy_stream(stream)
            driver.free(place)

    threads = [threading.Thread(target=work, args=(number % 2,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_is_told(driver: HipDriver) -> None:
    place, stream = driver.alloc(0, 8), driver.create_stream(0)
    driver.add_callback(stream, lambda error: None)
    driver.synchronize_stream(stream)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            driver.free(place)  # as finalisers do
            driver.destroy_stream(stream)
            driver.alloc(0, 8)
        except DeviceUnavailableError as error:
            status = 0 if "forked process" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    driver.free(place)
    driver.destroy_stream(stream)
