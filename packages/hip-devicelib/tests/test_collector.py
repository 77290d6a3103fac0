"""Python's garbage collector pauses while kernels are compiled."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Iterator

import pytest

from hip_devicelib import collector
from hip_devicelib.collector import collector_paused


class Garbage:
    """Refers to itself."""

    itself: Garbage


@pytest.fixture(autouse=True)
def _leave_collector_as_it_was() -> Iterator[None]:
    enabled, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.enable()
    gc.unfreeze()  # a run of tests may have frozen what it starts with
    yield
    (gc.enable if enabled else gc.disable)()
    if frozen:
        gc.freeze()


def test_the_collector_goes_on_behind_the_block_also_after_an_error() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyboardInterrupt), collector_paused():
        raise KeyboardInterrupt
    assert gc.isenabled()


def test_a_collector_that_the_program_has_disabled_stays_so() -> None:
    gc.disable()
    with collector_paused():
        assert not gc.isenabled()
    assert not gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("by", ["another thread", "this thread"])
def test_only_the_thread_that_paused_it_leaves_it_paused_in_a_child(by: str) -> None:
    paused, done = threading.Event(), threading.Event()

    def pause() -> None:
        with collector_paused():
            paused.set()
            done.wait(60)

    def child_collects() -> bool:
        pid = os.fork()
        if pid == 0:
            os._exit(int(gc.isenabled()))
        return bool(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    if by == "this thread":
        with collector_paused():
            assert not child_collects()
        return
    other = threading.Thread(target=pause)
    other.start()
    try:
        assert paused.wait(60)
        assert child_collects()
        assert not gc.isenabled()
    finally:
        done.set()
        other.join()
    assert gc.isenabled()


def make_in_pause() -> tuple[list[list[int]], bool]:
    """Objects that are made in a pause, and whether they are old when it has ended."""
    with collector_paused():
        made: list[list[int]] = [[] for _ in range(1000)]
    old = {id(one) for one in gc.get_objects(generation=2)}
    return made, all(id(one) in old for one in made)


def test_what_the_first_pauses_leave_is_old_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_left", [1])
    assert make_in_pause()[1]
    assert not make_in_pause()[1]
    assert gc.get_freeze_count() < collector.MOST_IMMORTAL


def test_what_the_first_pauses_leave_as_garbage_goes_with_a_full_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_left", [1])
    with collector_paused():
        made = Garbage()
        made.itself = made
        gone = weakref.ref(made)
        del made
    assert gone() is not None
    gc.collect()
    assert gone() is None


def test_objects_that_the_program_froze_stay_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_left", [1])
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        assert not make_in_pause()[1]
        assert gc.get_freeze_count() == frozen > 0
    finally:
        gc.unfreeze()
