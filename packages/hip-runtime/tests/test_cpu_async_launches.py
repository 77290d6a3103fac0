"""Launches on the default stream of the CPU device that return before the kernel is done (`NUMBA_HIP_CPU_ASYNC`)."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from test_driver_contract import HOST_CASES, Bench

from hip_runtime.driver import DEFAULT_STREAM
from hip_runtime.drivers.cpu.driver import CpuDriver
from hip_runtime.errors import KernelFault

ONE = (1, 1, 1)


@pytest.fixture
def bench() -> Bench:
    return Bench(HOST_CASES["cpu, asynchronous"])


@contextmanager
def held(bench: Bench, stream: int = DEFAULT_STREAM) -> Iterator[threading.Event]:
    """A block in which *stream* does nothing until the event is set, at the latest at the end of the block."""
    gate = threading.Event()
    bench.driver.add_callback(stream, lambda fault: gate.wait(20) and None)
    try:
        yield gate
    finally:
        gate.set()


def count_at(bench: Bench, place: int) -> int:
    return int(bench.get(place, np.zeros(1, np.int64))[0])


def test_a_launch_returns_before_the_kernel_is_done(bench: Bench) -> None:
    seen = np.zeros(1, np.int64)
    with held(bench):
        bench.launch("count", ONE, ONE, seen.ctypes.data)
        bench.launch("count", ONE, ONE, seen.ctypes.data)
        assert seen[0] == 0
        assert not bench.driver.query_stream(DEFAULT_STREAM)
    bench.driver.synchronize_stream(DEFAULT_STREAM)
    assert seen[0] == 2


def test_copies_wait_for_launches(bench: Bench) -> None:
    place = bench.put(np.zeros(1, np.int64))
    with held(bench) as gate:
        threading.Timer(0.05, gate.set).start()
        bench.launch("count", ONE, ONE, place)
        assert count_at(bench, place) == 1
    bench.driver.free(place)


@pytest.mark.parametrize("blocking", [True, False])
def test_blocking_streams_and_the_default_one_wait_for_each_other(bench: Bench, blocking: bool) -> None:
    stream = bench.driver.create_stream(0, blocking=blocking)
    seen = np.zeros(1, np.int64)
    with held(bench):
        bench.launch("count", ONE, ONE, seen.ctypes.data, stream=stream)
        if blocking:
            assert not bench.driver.query_stream(stream)
        else:
            bench.driver.synchronize_stream(stream)
        assert seen[0] == (0 if blocking else 1)
    bench.driver.synchronize_stream(stream)
    with held(bench, stream):
        bench.launch("count", ONE, ONE, seen.ctypes.data)
        if not blocking:
            bench.driver.synchronize_stream(DEFAULT_STREAM)
        assert seen[0] == (1 if blocking else 2)
    bench.driver.synchronize_device(0)
    assert seen[0] == 2
    bench.driver.destroy_stream(stream)


def test_a_fault_is_raised_where_the_host_waits(bench: Bench) -> None:
    seen = np.zeros(64, np.int64)
    for wait in (
        lambda: bench.driver.synchronize_stream(DEFAULT_STREAM),
        lambda: bench.driver.synchronize_device(0),
        lambda: bench.get(bench.driver.alloc(0, 8), np.zeros(1, np.int64)),
    ):
        bench.launch("fault", ONE, (64, 1, 1), seen.ctypes.data, 5, 9)
        with pytest.raises(KernelFault, match="error code 9"):
            wait()
        bench.driver.synchronize_device(0)


def test_events_are_reached_with_the_work_before_them(bench: Bench) -> None:
    event = bench.driver.create_event(0)
    seen = np.zeros(1, np.int64)
    with held(bench):
        bench.launch("count", ONE, ONE, seen.ctypes.data)
        bench.driver.record_event(event, DEFAULT_STREAM)
        assert not bench.driver.query_event(event)
    bench.driver.synchronize_event(event)
    assert seen[0] == 1
    bench.driver.destroy_event(event)


class Busy:
    """A stream with work, which keeps what is to be done behind it."""

    idle = False

    def __init__(self) -> None:
        self.kept: list[Callable[[], None]] = []

    def keep(self, release: Callable[[], None]) -> None:
        self.kept.append(release)


def step_by_step(work: Callable[[], None]) -> None:
    """Do *work* with a turn for the other threads before each of its lines."""

    def trace(frame: object, event: str, argument: object) -> object:
        time.sleep(0.002)
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)


def test_memory_that_several_streams_used_is_given_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all of them come to the end of their work at the same moment."""
    driver, streams, rounds = CpuDriver(), [Busy() for _ in range(3)], 10
    given_back: list[int] = []
    monkeypatch.setattr(driver._streams, "all", lambda: streams)
    driver._streams.by_handle[1 << 30] = driver._streams.default  # so that there seem to be several
    monkeypatch.setattr(driver, "_heap", SimpleNamespace(take=int, release=given_back.append))
    for address in range(rounds):
        driver.free(address)
        with ThreadPoolExecutor(len(streams)) as pool:
            list(pool.map(step_by_step, [stream.kept.pop() for stream in streams]))
    assert given_back == list(range(rounds))
