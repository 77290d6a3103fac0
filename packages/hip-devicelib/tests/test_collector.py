"""Python's garbage collector pauses while kernels are compiled."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator

import pytest

from hip_devicelib.collector import collector_paused


@pytest.fixture(autouse=True)
def _leave_collector_as_it_was() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if enabled else gc.disable)()


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
