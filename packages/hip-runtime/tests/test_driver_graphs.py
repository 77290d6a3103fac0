"""What every driver must do with graphs: the rest of the suite in ``test_driver_contract.py``."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import spmd_kernels
from test_driver_contract import CASES, Bench

from hip_runtime.driver import DEFAULT_STREAM, Strided
from hip_runtime.errors import CaptureError, InvalidHandleError, KernelFault


class GraphBench(Bench):
    """With kernels that are loaded before anything is captured."""

    def __init__(self, case: Any) -> None:
        super().__init__(case)
        self._functions: dict[str, Any] = {}

    def ready(self, *names: str) -> None:
        """Load kernels: that cannot be done within a capture."""
        for name in names:
            self._functions[name] = self.function(name)

    def put_on(self, stream: int, name: str, grid: int, block: int, *values: Any, **more: Any) -> None:
        """Launch a kernel that is `ready`."""
        arguments = spmd_kernels.pack(self.code(name).kernels[0], *values)
        self.driver.launch(self._functions[name], (grid, 1, 1), (block, 1, 1), 0, stream, arguments, **more)

    def capture(self, stream: int, *work: Callable[[], object]) -> Any:
        """An executable of *work*."""
        self.driver.begin_capture(stream)
        for piece in work:
            piece()
        graph = self.driver.end_capture(stream)
        executable = self.driver.instantiate(graph)
        self.driver.destroy_graph(graph)
        return executable


@pytest.fixture(params=list(CASES))
def bench(request: pytest.FixtureRequest) -> Iterator[GraphBench]:
    bench = GraphBench(CASES[request.param])
    yield bench
    bench._functions.clear()
    gc.collect()
    bench.driver.synchronize_device(0)
    bench.check_free(bench.free_at_start)


def test_what_is_captured_is_done_by_each_launch_and_not_before(bench: GraphBench) -> None:
    bench.ready("saxpy")
    n = 256
    stream = bench.driver.create_stream(0)
    x, out, rows = np.arange(n, dtype=np.float32), np.zeros(n, np.float32), np.zeros((4, 8), np.int32)
    dx, dy, filled = bench.put(np.zeros_like(x)), bench.put(np.zeros_like(x)), bench.put(rows)
    source = np.arange(64, dtype=np.int32).reshape(4, 16)[:, :8]
    executable = bench.capture(
        stream,
        lambda: bench.driver.copy(dx, x.ctypes.data, x.nbytes, stream, x),
        lambda: bench.put_on(stream, "saxpy", 1, n, dy, dx, 2.0, n),
        lambda: bench.driver.copy(out.ctypes.data, dy, out.nbytes, stream, out),
        lambda: bench.driver.fill(filled, 0xFF, rows.nbytes, stream),
        lambda: bench.driver.copy_strided(
            Strided(filled, (32, 4)), Strided(source.ctypes.data, source.strides), (2, 8), 4, stream, source
        ),
    )
    bench.driver.synchronize_stream(stream)
    assert not out.any()
    assert not bench.get(dx, x).any()
    for turn in range(1, 4):
        bench.driver.launch_graph(executable, stream)
        bench.driver.synchronize_stream(stream)
        np.testing.assert_array_equal(out, 2 * turn * np.arange(n))
    x[:] = 1  # copies read what is there when the graph is launched
    bench.driver.launch_graph(executable, DEFAULT_STREAM)
    bench.driver.synchronize_stream(DEFAULT_STREAM)
    np.testing.assert_array_equal(out, 6 * np.arange(n) + 2)
    found = bench.get(filled, rows)
    np.testing.assert_array_equal(found[:2], source[:2])
    assert (found[2:] == -1).all()
    bench.driver.destroy_executable(executable)
    bench.driver.destroy_stream(stream)
    for place in (dx, dy, filled):
        bench.driver.free(place)


def test_launches_are_in_order_with_the_work_of_the_stream(bench: GraphBench) -> None:
    bench.ready("spin", "count")
    stream, other = bench.driver.create_stream(0), bench.driver.create_stream(0, blocking=False)
    place, copied = bench.put(np.zeros(1, np.int64)), bench.put(np.zeros(1, np.int64))
    event = bench.driver.create_event(0)
    executable = bench.capture(
        stream,
        lambda: bench.put_on(stream, "spin", 1, 1, place, bench.slow),
        lambda: bench.put_on(stream, "count", 1, 1, place),
    )
    bench.driver.fill(place, 0, 8, other)
    bench.driver.launch_graph(executable, other)
    bench.driver.record_event(event, other)
    bench.driver.wait_event(stream, event)
    bench.driver.copy(copied, place, 8, stream)
    assert bench.get(copied, np.zeros(1, np.int64))[0] == bench.slow + 1
    bench.driver.synchronize_stream(other)
    bench.driver.destroy_executable(executable)
    for handle in (stream, other):
        bench.driver.destroy_stream(handle)
    for address in (place, copied):
        bench.driver.free(address)


def test_an_empty_graph(bench: GraphBench) -> None:
    stream = bench.driver.create_stream(0)
    executable = bench.capture(stream)
    for where in (stream, DEFAULT_STREAM):
        bench.driver.launch_graph(executable, where)
        bench.driver.synchronize_stream(where)
        assert bench.driver.query_stream(where)
    bench.driver.destroy_executable(executable)
    bench.driver.destroy_stream(stream)


def test_events_within_a_capture_are_of_it_alone(bench: GraphBench) -> None:
    bench.ready("count")
    stream, other = bench.driver.create_stream(0), bench.driver.create_stream(0)
    inner, before = bench.driver.create_event(0), bench.driver.create_event(0)
    bench.driver.record_event(before, other)
    place = bench.put(np.zeros(1, np.int64))

    def use_events() -> None:
        bench.driver.record_event(inner, stream)
        bench.driver.wait_event(stream, inner)
        bench.put_on(stream, "count", 1, 1, place)
        with pytest.raises(CaptureError, match="only the captured stream"):
            bench.driver.wait_event(other, inner)
        with pytest.raises(CaptureError, match="from outside of the capture"):
            bench.driver.wait_event(stream, before)

    executable = bench.capture(stream, use_events)
    for use in (
        bench.driver.query_event,
        bench.driver.synchronize_event,
        lambda event: bench.driver.wait_event(stream, event),
        lambda event: bench.driver.elapsed_time(event, before),
    ):
        with pytest.raises(CaptureError, match="record it again"):
            use(inner)
    bench.driver.launch_graph(executable, stream)
    bench.driver.record_event(inner, stream)
    bench.driver.synchronize_event(inner)
    assert bench.get(place, np.zeros(1, np.int64))[0] == 1
    for event in (inner, before):
        bench.driver.destroy_event(event)
    bench.driver.destroy_executable(executable)
    for handle in (stream, other):
        bench.driver.destroy_stream(handle)
    bench.driver.free(place)


def test_what_cannot_be_done_while_a_stream_is_captured(bench: GraphBench) -> None:
    bench.ready("count")
    driver = bench.driver
    stream, other = driver.create_stream(0), driver.create_stream(0)
    place = bench.put(np.zeros(1, np.int64))
    event = driver.create_event(0)
    driver.record_event(event, other)
    empty = bench.capture(stream)
    refused: dict[str, Callable[[], object]] = {
        "captured already|capture another": lambda: driver.begin_capture(stream),
        "capture another stream": lambda: driver.begin_capture(other),
        "wait for stream": lambda: driver.synchronize_stream(stream),
        "wait for a stream": lambda: driver.synchronize_stream(other),
        "ask about stream": lambda: driver.query_stream(stream),
        "call back from stream": lambda: driver.add_callback(stream, lambda error: None),
        "wait for the device": lambda: driver.synchronize_device(0),
        "wait for an event": lambda: driver.synchronize_event(event),
        "ask about an event": lambda: driver.query_event(event),
        "use the default stream": lambda: bench.put_on(DEFAULT_STREAM, "count", 1, 1, place),
        "the default stream while": lambda: driver.fill(place, 1, 8),
        "cannot use the default": lambda: driver.wait_event(DEFAULT_STREAM, event),
        "allocate memory": lambda: driver.alloc(0, 8),
        "the free memory": lambda: driver.memory_info(0),
        "share memory": lambda: driver.ipc_handle(place),
        "open shared memory": lambda: driver.open_ipc_handle(0, bytes(64)),
        "load code": lambda: bench.function("count"),
        "launch a graph": lambda: driver.launch_graph(empty, stream),
    }
    driver.begin_capture(stream)
    assert driver.is_capturing(stream)
    assert not driver.is_capturing(other)
    bench.put_on(stream, "count", 1, 1, place)
    for message, use in refused.items():
        with pytest.raises(CaptureError, match=message):
            use()
    bench.put_on(stream, "count", 2, 1, place)
    graph = driver.end_capture(stream)
    assert not driver.is_capturing(stream)
    executable = driver.instantiate(graph)
    driver.launch_graph(executable, stream)
    assert bench.get(place, np.zeros(1, np.int64))[0] == 3  # none of the refusals spoiled the capture
    driver.destroy_graph(graph)
    with pytest.raises(InvalidHandleError, match="graph was destroyed"):
        driver.instantiate(graph)
    driver.destroy_executable(executable)
    driver.destroy_executable(empty)
    with pytest.raises(InvalidHandleError, match="graph was destroyed"):
        driver.launch_graph(executable, stream)
    driver.destroy_event(event)
    for handle in (stream, other):
        driver.destroy_stream(handle)
    driver.free(place)


def test_captures_that_cannot_begin_or_end(bench: GraphBench) -> None:
    stream = bench.driver.create_stream(0)
    with pytest.raises(CaptureError, match="default stream cannot be captured"):
        bench.driver.begin_capture(DEFAULT_STREAM)
    with pytest.raises(CaptureError, match="is not being captured"):
        bench.driver.end_capture(stream)
    bench.driver.begin_capture(stream)
    told: list[BaseException] = []

    def end() -> None:
        try:
            bench.driver.end_capture(stream)
        except CaptureError as error:
            told.append(error)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert "begun by another thread" in str(told[0])
    bench.driver.destroy_graph(bench.driver.end_capture(stream))
    bench.driver.begin_capture(stream)
    bench.driver.destroy_stream(stream)  # which ends the capture
    with pytest.raises(InvalidHandleError, match=str(stream)):
        bench.driver.end_capture(stream)
    bench.driver.synchronize_device(0)


def test_another_thread_works_meanwhile(bench: GraphBench) -> None:
    bench.ready("count")
    stream, other = bench.driver.create_stream(0, blocking=False), bench.driver.create_stream(0, blocking=False)
    place = bench.put(np.zeros(1, np.int64))

    def work() -> None:
        bench.put_on(other, "count", 5, 1, place)
        bench.driver.synchronize_stream(other)

    def start() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    executable = bench.capture(stream, lambda: bench.put_on(stream, "count", 1, 1, place), start)
    assert bench.get(place, np.zeros(1, np.int64))[0] == 5
    bench.driver.launch_graph(executable, stream)
    bench.driver.synchronize_stream(stream)
    assert bench.get(place, np.zeros(1, np.int64))[0] == 6
    bench.driver.destroy_executable(executable)
    for handle in (stream, other):
        bench.driver.destroy_stream(handle)
    bench.driver.free(place)


@pytest.mark.parametrize("own_stream", [False, True])
def test_faults_are_raised_at_each_launch(bench: GraphBench, own_stream: bool) -> None:
    bench.ready("fault", "count")
    stream = bench.driver.create_stream(0)
    where = stream if own_stream else DEFAULT_STREAM
    seen, counter = bench.put(np.zeros(64, np.uint8)), bench.put(np.zeros(1, np.int64))
    executable = bench.capture(
        stream,
        lambda: bench.put_on(stream, "count", 1, 1, counter),
        lambda: bench.put_on(stream, "fault", 1, 64, seen, 63, -7, describe=lambda fault: IndexError(str(fault))),
        lambda: bench.put_on(stream, "count", 1, 1, counter),
    )

    def launch() -> None:
        bench.driver.launch_graph(executable, where)
        bench.driver.synchronize_stream(where)

    bench.driver.synchronize_stream(stream)
    for _ in range(2):
        with pytest.raises(IndexError, match=r"'fault' raised error code -7 in block \(0, 0, 0\), thread \(63, 0, 0\)"):
            launch()
    done = 2 if bench.drops_work_after_fault else 4
    assert bench.get(counter, np.zeros(1, np.int64))[0] == done
    bench.driver.destroy_executable(executable)
    bench.driver.destroy_stream(stream)
    for place in (seen, counter):
        bench.driver.free(place)


def test_a_fault_without_a_description(bench: GraphBench) -> None:
    bench.ready("fault")
    stream = bench.driver.create_stream(0)
    seen = bench.put(np.zeros(64, np.uint8))
    executable = bench.capture(stream, lambda: bench.put_on(stream, "fault", 1, 64, seen, 5, 9))
    bench.driver.launch_graph(executable, stream)
    with pytest.raises(KernelFault, match="error code 9"):
        bench.driver.synchronize_stream(stream)
    bench.driver.destroy_executable(executable)
    bench.driver.destroy_stream(stream)
    bench.driver.free(seen)


def test_owners_and_code_live_as_long_as_the_graph_and_its_launches(bench: GraphBench) -> None:
    class Owner:
        pass

    stream = bench.driver.create_stream(0)
    place = bench.put(np.zeros(1, np.int64))
    gone = threading.Event()
    owner = Owner()
    weakref.finalize(owner, gone.set)
    code = bench.code("spin")
    module = bench.driver.load_module(0, code)
    function = bench.driver.get_function(module, code.kernels[0])
    arguments = spmd_kernels.pack(code.kernels[0], place, bench.slow)
    bench.driver.begin_capture(stream)
    bench.driver.launch(function, (1, 1, 1), (1, 1, 1), 0, stream, arguments, owners=owner)
    graph = bench.driver.end_capture(stream)
    bench.driver.unload_module(module)
    del owner, function, module, arguments
    bench.driver.synchronize_device(0)
    executable = bench.driver.instantiate(graph)
    bench.driver.destroy_graph(graph)
    del graph
    for _ in range(2):
        bench.driver.synchronize_device(0)
        bench.driver.launch_graph(executable, stream)
    bench.driver.destroy_executable(executable)
    del executable
    assert not gone.is_set()
    bench.driver.synchronize_device(0)
    gc.collect()
    assert gone.wait(10)
    assert bench.get(place, np.zeros(1, np.int64))[0] == 2 * bench.slow
    bench.driver.destroy_stream(stream)
    bench.driver.free(place)
