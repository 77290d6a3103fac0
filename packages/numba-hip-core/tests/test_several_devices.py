"""Programs for several devices: kernels, arrays, streams, events and memory of each, and copies between them."""

import threading

import numpy as np
import pytest

import numba_hip as hip
from hip_runtime import Device, config
from hip_runtime import device as registry
from hip_runtime.drivers.cpu.driver import CpuDriver
from hip_runtime.errors import HipRuntimeError, LaunchError
from numba_hip.errors import KernelArgumentError

N = 1000


@hip.jit
def scale(values, factor):
    i = hip.grid(1)
    if i < values.size:
        values[i] *= factor


@hip.jit
def add_first(values, others):
    i = hip.grid(1)
    if i < values.size:
        values[i] += others[0][i]


@hip.jit
def gather(total, other):
    i = hip.grid(1)
    if i < other.size:
        hip.atomic.add(total, 0, other[i])


@pytest.fixture(autouse=True)
def two_devices(monkeypatch):
    """Two CPU devices, each with a half of the machine; or the GPUs that there are."""
    if not hip.get_current_device().is_cpu:
        if len(hip.gpus) < 2:
            pytest.skip("needs two devices")
        return
    with config.cpu_devices.scope(2):
        made = tuple(Device(CpuDriver(number=number, count=2), 0, number) for number in range(2))
    monkeypatch.setattr(registry._registry, "devices", made)
    monkeypatch.setattr(registry._registry, "current", threading.local())


def on_each(values):
    """*values* on each of two devices."""
    made = []
    for number in range(2):
        with hip.gpus[number]:
            made.append(hip.to_device(values))
    return made


def test_each_device_runs_its_own():
    arrays = on_each(np.arange(N, dtype=np.float64))
    assert [array.device.id for array in arrays] == [0, 1]
    for number, array in enumerate(arrays):
        with hip.gpus[number] as context:
            scale[8, 128](array, number + 2.0)
            context.synchronize()
    for number, array in enumerate(arrays):
        np.testing.assert_array_equal(array.copy_to_host(), np.arange(N) * (number + 2.0))
    assert hip.get_current_device().id == 0


def test_a_device_that_does_not_exist():
    numbers = len(hip.gpus)
    with pytest.raises(IndexError, match=rf"there is no device {numbers}; the devices are: <Device 0.*, <Device 1"):
        hip.gpus[numbers]
    assert hip.gpus[-1].id == numbers - 1


def test_a_thread_for_each_device():
    values, done = np.ones(N), []

    def work(number):
        hip.select_device(number)
        array = hip.to_device(values)
        for _ in range(20):
            scale[8, 128](array, number + 1.0)
        done.append((number, array.device.id, array.copy_to_host()))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, device, found in done:
        assert device == number
        np.testing.assert_array_equal(found, (number + 1.0) ** 20)
    assert len(done) == 2


@pytest.mark.parametrize("own_stream", [False, True])
@pytest.mark.parametrize("layout", ["dense", "strided", "fortran"])
def test_copies_between_devices(own_stream, layout):
    values = np.arange(600.0).reshape(20, 30)
    one, other = on_each(np.asfortranarray(values) if layout == "fortran" else values)
    with hip.gpus[1]:
        stream = hip.stream() if own_stream else 0
        other.copy_to_device(np.zeros_like(values))
    if layout == "strided":
        one, other, values = one[::2, ::-3], other[::2, ::-3], values[::2, ::-3]
    scale.forall(0)(one)
    hip.synchronize()
    other.copy_to_device(one, stream=stream)
    with hip.gpus[1]:
        hip.synchronize()
    np.testing.assert_array_equal(other.copy_to_host(), values)


def test_a_copy_comes_after_the_work_on_both_default_streams():
    one, other = on_each(np.ones(N))
    stream = hip.stream()
    for _ in range(50):
        scale[8, 128, stream](one, 1.01)
    other.copy_to_device(one)
    np.testing.assert_allclose(other.copy_to_host(), 1.01**50)


def test_an_event_of_one_device_is_waited_for_on_another():
    one, other = on_each(np.ones(N))
    first, event = hip.stream(), hip.event()
    for _ in range(20):
        scale[8, 128, first](one, 2.0)
    event.record(first)
    with hip.gpus[1]:
        second = hip.stream()
        event.wait(second)
        other.copy_to_device(one, stream=second)
        scale[8, 128, second](other, 0.5)
        second.synchronize()
    np.testing.assert_array_equal(other.copy_to_host(), 2.0**19)
    with pytest.raises(HipRuntimeError, match="device"):
        event.record(second)


def test_a_stream_of_another_device():
    with hip.gpus[1]:
        stream = hip.stream()
    values = hip.to_device(np.ones(N))
    with pytest.raises(LaunchError, match="of another|device 1"):
        scale[8, 128, stream](values, 2.0)
    values.copy_to_device(np.full(N, 3.0), stream=stream)
    stream.synchronize()
    assert set(values.copy_to_host()) == {3.0}


def test_an_array_of_another_device_is_refused_until_it_is_a_peer():
    one, other = on_each(np.ones(N))
    hip.to_device(np.ones(N))
    scale[8, 128](one, 1.0)
    for _ in range(2):
        with pytest.raises(KernelArgumentError, match=r"'values' is an array of <Device 1.*runs on <Device 0.*copy it"):
            scale[8, 128](other, 2.0)
        with pytest.raises(KernelArgumentError, match=r"'others\[0\]' is an array of <Device 1"):
            add_first[8, 128](one, (other,))
    with hip.gpus[1], pytest.raises(KernelArgumentError, match=r"'total' is an array of <Device 0"):
        gather[8, 128](one, other)
    context, peer = (device.get_primary_context() for device in hip.list_devices()[:2])
    if not context.can_access_peer(1):
        pytest.skip("needs devices that are peers")
    context.enable_peer_access(peer)
    scale[8, 128](other, 2.0)
    add_first[8, 128](one, (other,))
    hip.synchronize()
    assert set(one.copy_to_host()) == {3.0}
    with hip.gpus[1], pytest.raises(KernelArgumentError, match="'values' is an array of <Device 0"):
        scale[8, 128](one, 2.0)


def test_memory_of_the_host_is_within_reach_of_all():
    shared = hip.mapped_array(N)
    shared[:] = 1
    for number in range(2):
        with hip.gpus[number]:
            scale[8, 128](shared, 2.0)
            hip.synchronize()
    assert set(shared) == {4.0}


def test_each_device_has_its_own_memory():
    first, second = (device.get_primary_context() for device in hip.list_devices()[:2])
    before = [context.get_memory_info().free for context in (first, second)]
    kept = second.memalloc(8 << 20)
    after = [context.get_memory_info().free for context in (first, second)]
    assert after[0] == before[0]
    assert after[1] <= before[1] - (8 << 20)
    kept.free()


@pytest.mark.cpu_device("GPUs are what they are")
def test_cpu_devices_have_parts_of_the_machine():
    with config.cpu_threads.scope(6), config.cpu_memory.scope(100 << 20), config.cpu_devices.scope(4):
        registry._registry.devices = ()
        found = hip.list_devices()
    assert [device.id for device in found] == [0, 1, 2, 3]
    assert [device.compute_units for device in found] == [1] * 4
    assert [device.memory_info()[1] for device in found] == [25 << 20] * 4
    assert len({device.uuid for device in found}) == len({device.PCI_DEVICE_ID for device in found}) == 4
    assert len({device.name for device in found}) == 1
    registry._registry.devices = ()
    with config.cpu_devices.scope(1):
        assert len(hip.gpus) == 1


@pytest.mark.cpu_device("graphs of GPUs are tested with one device")
def test_a_graph_belongs_to_its_device():
    with hip.gpus[1]:
        values, stream = hip.to_device(np.ones(N)), hip.stream()
        scale[8, 128, stream](values, 1.0)
        stream.synchronize()
        with stream.capture() as graph:
            scale[8, 128, stream](values, 2.0)
        run = graph.instantiate()
        run.launch(stream)
        stream.synchronize()
    with pytest.raises(LaunchError, match="device"):
        run.launch(hip.stream())
    assert set(values.copy_to_host()) == {2.0}
