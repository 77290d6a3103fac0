"""`Stream.capture`, `Graph` and `ExecutableGraph`."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from spmd_kernels import pack, sample

from hip_runtime import (
    CaptureError,
    Device,
    ExecutableGraph,
    Function,
    Graph,
    InvalidHandleError,
    KernelFault,
    LaunchError,
    Stream,
    device_array,
    to_device,
)
from hip_runtime.drivers.cpu.driver import CpuDriver


@pytest.fixture
def count(device: Device) -> Function:
    return device.load(sample("count")).function("count")


def counting_graph(count: Function, stream: Stream) -> tuple[Graph, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """A graph that counts 6 threads, in memory of the host."""
    counter, host = to_device(np.zeros(1, np.int64)), np.zeros(1, np.int64)
    with stream.capture() as graph:
        count.launch(2, 3, pack(count.kernel, counter.address), stream=stream, owners=counter)
        counter.copy_to_host(host, stream=stream)
    return graph, host


def test_a_graph_keeps_what_it_uses_and_no_longer(device: Device, count: Function) -> None:
    free = device.memory_info()[0]
    stream = Stream()
    graph, host = counting_graph(count, stream)
    count.module.unload()
    executable = graph.instantiate()
    graph.close()
    for turn in range(1, 4):
        executable.launch(stream)
        stream.synchronize()
        assert host[0] == 6 * turn
    executable.launch(int(stream))
    executable.close()
    stream.synchronize()
    assert host[0] == 24
    gc.collect()
    assert device.memory_info()[0] == free


def test_what_is_closed_or_not_complete_cannot_be_used(device: Device) -> None:
    stream = Stream()
    with stream.capture() as graph:
        assert stream.capturing
        with pytest.raises(CaptureError, match="the graph is not complete"):
            graph.instantiate()
        graph.close()  # nothing yet
    assert not stream.capturing
    assert repr(graph) == "<Graph on device 0>"
    executable = graph.instantiate()
    assert type(executable) is ExecutableGraph
    assert repr(executable) == "<ExecutableGraph on device 0>"
    for _ in range(2):
        graph.close()
        executable.close()
    with pytest.raises(InvalidHandleError, match="graph was closed; instantiate it before"):
        graph.instantiate()
    with pytest.raises(InvalidHandleError, match="graph was closed; instantiate it again"):
        executable.launch(stream)
    assert repr(graph) == "<Graph on device 0, which cannot be instantiated>"
    assert repr(executable) == "<ExecutableGraph on device 0, closed>"


def test_a_block_that_raises_gives_the_capture_up(device: Device, count: Function) -> None:
    stream = Stream()
    counter = to_device(np.zeros(1, np.int64))
    arguments = pack(count.kernel, counter.address)

    def fail() -> None:
        count.launch(1, 1, arguments, stream=stream)
        raise KeyError("in the block")

    with pytest.raises(KeyError, match="in the block"), stream.capture() as graph:
        fail()
    with pytest.raises(CaptureError, match="the graph is not complete"):
        graph.instantiate()
    assert not stream.capturing
    count.launch(1, 4, arguments, stream=stream)
    stream.synchronize()
    assert counter[0] == 4
    with pytest.raises(InvalidHandleError, match="does not exist"), stream.capture():
        stream.close()


def test_nested_captures_and_default_streams(device: Device) -> None:
    stream, other = Stream(), Stream()
    with stream.capture() as outer:
        for inner, message in ((stream, "captured already"), (other, "capture another stream")):
            with pytest.raises(CaptureError, match=message), inner.capture():
                pass
        with pytest.raises(CaptureError, match="cannot allocate memory while this thread captures"):
            device_array(3)
    outer.instantiate().launch()
    with pytest.raises(CaptureError, match="the default stream cannot be captured"), Stream(handle=0).capture():
        pass


def test_events_are_part_of_the_recording(device: Device, count: Function) -> None:
    stream = Stream()
    counter = to_device(np.zeros(1, np.int64))
    with stream.capture() as graph:
        event = stream.record()
        stream.wait(event)
        count.launch(1, 1, pack(count.kernel, counter.address), stream=stream, owners=counter)
    with pytest.raises(CaptureError, match="record it again"):
        event.synchronize()
    start = stream.record()
    graph.instantiate().launch(stream)
    event.record(stream)
    event.synchronize()
    assert start.elapsed_time(event) >= 0
    assert counter[0] == 1


def test_a_stream_of_another_device(device: Device) -> None:
    stream, other = Stream(), Device(CpuDriver(1 << 20), 0, 1)
    with stream.capture() as graph:
        pass
    with pytest.raises(LaunchError, match=r"captured on device 0; the stream is of device 1"):
        graph.instantiate().launch(Stream(other))


def test_faults_are_described_by_the_layer_above(device: Device) -> None:
    function = device.load(sample("fault")).function("fault")
    seen = to_device(np.zeros(64, np.uint8))
    function.describe_fault = lambda fault: IndexError(f"code {fault.code} of thread {fault.thread[0]}")
    stream = Stream()
    with stream.capture() as graph:
        function.launch(1, 64, pack(function.kernel, seen.address, 7, 3), stream=stream, owners=seen)
    function.describe_fault = None
    executable = graph.instantiate()
    executable.launch(stream)
    with pytest.raises(IndexError, match="code 3 of thread 7"):
        stream.synchronize()
    with pytest.raises(IndexError, match="code 3 of thread 7"):
        executable.launch()
    with stream.capture() as graph:
        function.launch(1, 64, pack(function.kernel, seen.address, 7, 4), stream=stream, owners=seen)
    with pytest.raises(KernelFault, match="code 4"):
        graph.instantiate().launch()
