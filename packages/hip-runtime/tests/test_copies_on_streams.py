"""When the host may use its memory again after a copy on a stream, and what can stand for a stream."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import hip_standin
import numpy as np
import pytest

import hip_runtime as rt
from hip_runtime import Device, Event, Stream, config
from hip_runtime.copying import STAGED_BYTES, bytes_to_device, bytes_to_host
from hip_runtime.drivers.cpu.driver import CpuDriver
from hip_runtime.drivers.hip.driver import HipDriver
from hip_runtime.errors import CaptureError, InvalidHandleError, KernelFault, LaunchError, StreamError
from hip_runtime.stream import find_stream
from hip_runtime.stream_handle import stream_handle

SMALL = 16
LARGE = STAGED_BYTES // 8 + 1
HOST_MAKERS: dict[str, Callable[[], Any]] = {"cpu": lambda: CpuDriver(64 << 20), "hip": hip_standin.driver}
MAKERS = {"gpu": HipDriver} if config.device() == "hip" else HOST_MAKERS


@pytest.fixture(params=list(MAKERS))
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Device:
    from hip_runtime import device as devices

    found = Device(MAKERS[request.param](), 0, 0)
    monkeypatch.setattr(devices._registry, "devices", (found,))
    monkeypatch.setattr(devices._registry.current, "device", found, raising=False)
    return found


@contextmanager
def held(stream: Stream) -> Iterator[threading.Event]:
    """A block in which *stream* does nothing until the event is set, which happens at the end of the block."""
    gate = threading.Event()
    stream.add_callback(lambda fault: gate.wait(20) and None)
    try:
        yield gate
    finally:
        gate.set()
        stream.synchronize()


@contextmanager
def held_for_a_while(stream: Stream) -> Iterator[threading.Event]:
    """The same, but the stream goes on by itself after a moment."""
    with held(stream) as gate:
        timer = threading.Timer(0.05, gate.set)
        timer.start()
        yield gate
        timer.join()


def in_layout(layout: str, size: int) -> np.ndarray[Any, Any]:
    if layout == "strided":
        return np.zeros(2 * size)[::2]
    return np.zeros(size)


@pytest.mark.parametrize("layout", ["dense", "strided"])
@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.sample(3)
def test_pageable_memory_is_filled_when_the_call_returns(device: Device, size: int, layout: str) -> None:
    stream = Stream()
    array = rt.to_device(np.arange(float(size)))
    target = in_layout(layout, size)
    with held_for_a_while(stream) as gate:
        assert array.copy_to_host(target, stream=stream) is target
        assert gate.is_set()
        assert (target == np.arange(size)).all()


@pytest.mark.parametrize("layout", ["dense", "strided"])
@pytest.mark.parametrize("size", [1, SMALL, LARGE])
def test_pageable_memory_can_change_after_it_was_copied_from(device: Device, size: int, layout: str) -> None:
    stream = Stream()
    array = rt.device_array(size, np.float64)
    source = in_layout(layout, size)
    source[:] = np.arange(size)
    with held_for_a_while(stream):
        array.copy_to_device(source, stream=stream)
        source[:] = -1
    assert (array.copy_to_host() == np.arange(size)).all()


def test_little_pageable_memory_does_not_wait_for_the_stream(device: Device) -> None:
    stream = Stream()
    with held(stream) as gate:
        array = rt.to_device(np.arange(float(SMALL)), stream=stream)
        array[3:5] = np.array([7.0, 8.0])
        assert not gate.is_set()
    assert array.copy_to_host()[:6].tolist() == [0, 1, 2, 7, 8, 5]


@pytest.mark.parametrize("kind", ["pinned", "mapped", "managed"])
def test_other_host_memory_is_copied_when_the_stream_comes_to_it(device: Device, kind: str) -> None:
    host = rt.pinned_array(LARGE) if kind == "pinned" else getattr(rt, f"{kind}_array")(LARGE)[0]
    back = rt.pinned_array(LARGE)
    host[:], back[:] = 1, -1
    stream = Stream()
    array = rt.device_array(LARGE)
    with held(stream) as gate:
        array.copy_to_device(host, stream=stream)
        array.copy_to_host(back, stream=stream)
        host[:] = 2
        assert (back == -1).all()
        assert not gate.is_set()
    assert (back == 2).all()


def test_copies_without_a_stream_are_over_at_the_return(device: Device) -> None:
    stream, back = Stream(), rt.pinned_array(LARGE)
    array = rt.to_device(np.arange(float(LARGE))).bind(stream)
    back[:] = -1
    with held_for_a_while(stream) as gate:
        array.copy_to_host(back)
        assert gate.is_set()
        assert (back == np.arange(LARGE)).all()


def test_elements_and_records_are_copied_on_the_stream_that_is_given(device: Device) -> None:
    stream, other, kind = Stream(), Stream(), np.dtype([("a", np.int64), ("b", np.float64)])
    array, source = rt.to_device(np.zeros((), kind)), rt.to_device(np.array((1, 2.0), kind))
    element, record, done = rt.to_device(np.zeros(2)), np.zeros((), kind)[()], Event()
    with held(other):
        done.record(other)
        element.setitem(0, 5.0, stream=stream)
        element.setitem(slice(1, 2), element[:1], stream=stream)
        assert [element.getitem(number, stream=stream) for number in range(2)] == [5, 5]
        array.setitem((), source, stream=stream)
        assert array.copy_to_host(record, stream=stream) is record
        assert record.tolist() == (1, 2.0)
        assert not done.query(), "the default stream waits for the others"


def test_what_is_asked_for_while_a_stream_is_recorded_is_an_error(device: Device) -> None:
    kind = np.dtype([("a", np.int64)])
    array, element = rt.to_device(np.zeros((), kind)), rt.to_device(np.zeros(2))
    for ask in (
        lambda stream: element.getitem(0, stream=stream),
        lambda stream: array.copy_to_host(np.zeros((), kind)[()], stream=stream),
    ):
        stream = Stream()
        with pytest.raises(CaptureError), stream.capture():
            ask(stream)


def test_what_lies_in_pinned_memory_is_pinned(device: Device) -> None:
    pinned = rt.pinned_array(SMALL)
    pageable = np.zeros(SMALL)
    driver = device.driver
    assert driver.is_pageable(pageable.ctypes.data)
    assert not driver.is_pageable(pinned.ctypes.data)
    assert not driver.is_pageable(pinned[5:].ctypes.data)
    assert driver.is_pageable(pinned.copy().ctypes.data)


def test_empty_arrays_do_not_wait(device: Device) -> None:
    stream = Stream()
    array = rt.device_array((0, 3))
    with held(stream) as gate:
        array.copy_to_device(np.empty((0, 3)), stream=stream)
        assert array.copy_to_host(stream=stream).shape == (0, 3)
        assert not gate.is_set()


def test_bytes_follow_the_same_rules(device: Device) -> None:
    stream, data = Stream(), np.arange(LARGE, dtype=np.int64)
    target = np.zeros_like(data)
    address = device.driver.alloc(0, data.nbytes)
    with held_for_a_while(stream):
        bytes_to_device(device, address, data.ctypes.data, data.nbytes, stream.handle, data)
        data[:] = -1
    with held_for_a_while(stream):
        bytes_to_host(device, target.ctypes.data, address, target.nbytes, stream.handle, target)
        assert (target == np.arange(LARGE)).all()
    device.driver.free(address)


def test_a_copy_behind_a_fault_reports_it(device: Device) -> None:
    stream = Stream()
    array = rt.to_device(np.arange(4.0))

    def fail(fault: BaseException | None) -> None:
        raise KernelFault("kernel", 5, (0, 0, 0), (1, 0, 0))

    if not device.is_cpu:
        pytest.skip("HIP does what comes behind a fault")
    stream.add_callback(fail)
    with pytest.raises(KernelFault, match="error code 5"):
        array.copy_to_host(stream=stream)
    assert array.copy_to_host(stream=stream).tolist() == [0, 1, 2, 3], "reported once, the stream works again"


def test_copies_of_a_graph_are_not_waited_for(device: Device) -> None:
    stream = Stream()
    host, back = np.arange(LARGE, dtype=np.float64), np.zeros(LARGE)
    array = rt.device_array(LARGE)
    with stream.capture() as graph:
        array.copy_to_device(host, stream=stream)
        array.copy_to_host(back, stream=stream)
    assert not back.any()
    executable = graph.instantiate()
    host += 1
    executable.launch(stream)
    stream.synchronize()
    assert (back == np.arange(LARGE) + 1).all()


class Protocol:
    """A stream of another library, after cuda.core."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __cuda_stream__(self) -> Any:
        return self.answer


FOREIGN: dict[str, Callable[[int], Any]] = {
    "cuda.core": lambda handle: Protocol((0, handle)),
    "protocol as a property": lambda handle: SimpleNamespace(__cuda_stream__=(0, handle)),
    "torch": lambda handle: SimpleNamespace(cuda_stream=handle, device="cuda:0"),
    "cupy": lambda handle: SimpleNamespace(ptr=handle, null=False),
    "handle": lambda handle: handle,
    "number of NumPy": np.uint64,
    "ours": lambda handle: Stream(handle=handle),
}


@pytest.mark.parametrize("library", list(FOREIGN))
def test_streams_of_other_libraries(device: Device, library: str) -> None:
    own = Stream()
    foreign = FOREIGN[library](own.handle)
    assert stream_handle(foreign) == own.handle
    found = find_stream(foreign)
    assert found is not None
    assert found.handle == own.handle
    event, array = Event(), rt.device_array(SMALL)
    with held(own):
        array.copy_to_device(np.ones(SMALL), stream=foreign)
        event.record(foreign)
        assert not event.query()
    event.wait(foreign)
    assert event.query()
    assert (array.copy_to_host(stream=foreign) == 1).all()
    rt.to_device(np.ones(SMALL), stream=foreign)
    assert own.__cuda_stream__() == (0, own.handle)


@pytest.mark.parametrize("default", [None, 0, Protocol((0, 0)), SimpleNamespace(cuda_stream=0)])
def test_what_stands_for_the_default_stream(default: Any) -> None:
    assert stream_handle(default) == 0
    assert find_stream(default) is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("stream", "'stream', of type str; it must be a stream of hip.stream"),
        (True, "of type bool"),
        (1.5, "of type float"),
        (-1, "of type int"),
        (1 << 64, "of type int"),
        (3, "3, which is too small for the handle of a stream"),
        (65536, "memory, give it as the fourth: kernel\\[grid, block, stream, bytes\\]"),
        (np.zeros(2), "of type ndarray"),
        (SimpleNamespace(cuda_stream="0x0"), "of type SimpleNamespace"),
        (SimpleNamespace(ptr=ctypes.c_void_p(1)), "of type SimpleNamespace"),
        (Protocol((1, 5)), "gives \\(1, 5\\); it must give \\(0, handle\\)"),
        (Protocol(5), "gives 5"),
        (Protocol((0, None)), "of type Protocol"),
    ],
)
def test_what_is_no_stream(device: Device, wrong: Any, message: str) -> None:
    array, event = rt.device_array(SMALL), Event()
    for use in (
        lambda: array.copy_to_host(stream=wrong),
        lambda: array.copy_to_device(np.zeros(SMALL), stream=wrong),
        lambda: event.record(wrong),
        lambda: event.wait(wrong),
        lambda: find_stream(wrong),
    ):
        with pytest.raises(StreamError, match=message) as caught:
            use()
        assert isinstance(caught.value, LaunchError)
        assert isinstance(caught.value, InvalidHandleError)
