"""How far a caller gets ahead of a stream of the CPU device, and what becomes of errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from hip_runtime.drivers.cpu.streams import PACE, CpuStream

PATIENCE = 60.0


@pytest.fixture
def stream() -> Iterator[CpuStream]:
    stream = CpuStream(blocking=True)
    yield stream
    stream.wait()
    stream.close()


def test_a_caller_waits_for_a_stream_that_is_far_behind(stream: CpuStream) -> None:
    gate, done = threading.Event(), list[int]()
    stream.submit(gate.wait)
    for number in range(PACE - 2):
        stream.submit(lambda number=number: done.append(number))  # type: ignore[misc]
    assert not gate.is_set()  # so far the caller need not wait
    threading.Timer(0.2, gate.set).start()
    for number in range(PACE - 2, 5 * PACE):
        stream.submit(lambda number=number: done.append(number))  # type: ignore[misc]
        assert number < len(done) + 2 * PACE + 2
    assert gate.is_set()
    stream.wait()
    assert done == list(range(5 * PACE))


def test_a_stream_does_not_wait_for_itself(stream: CpuStream) -> None:
    done, over = list[int](), threading.Event()

    def submit_many() -> None:
        for number in range(5 * PACE):
            stream.submit(lambda number=number: done.append(number))  # type: ignore[misc]
        over.set()

    stream.submit(submit_many)
    assert over.wait(PATIENCE)
    stream.wait()
    assert done == list(range(5 * PACE))


def test_work_behind_an_error_is_dropped_at_the_same_pace(stream: CpuStream) -> None:
    stream.submit(lambda: [][0])  # type: ignore[misc, arg-type, return-value]
    done: list[int] = []
    for number in range(5 * PACE):
        stream.submit(lambda number=number: done.append(number))  # type: ignore[misc]
    stream.wait()
    assert isinstance(stream.take_fault(), IndexError)
    assert not done


def test_a_release_that_fails_leaves_the_stream(stream: CpuStream, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: told.append(args.exc_value))
    done = threading.Event()
    error = ValueError("a memory manager's")

    def release() -> None:
        raise error

    stream.submit(lambda: None)
    stream.keep(release)
    stream.submit(done.set)
    assert done.wait(PATIENCE)
    assert told == [error]
    assert stream.take_fault() is None


def test_the_first_error_is_kept(stream: CpuStream) -> None:
    first, second = ValueError("first"), ValueError("second")
    stream.fail(first)
    stream.fail(second)
    assert stream.take_fault() is first
    assert stream.take_fault() is None
