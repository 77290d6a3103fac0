"""Ctrl-C waits for places where no object of LLVM is being freed."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hip_devicelib.cache import Cache
from hip_devicelib.interrupts import interrupts_held, let_interrupts_in


@pytest.fixture(autouse=True)
def ctrl_c_raises() -> Iterator[None]:
    """As in a program, whatever pytest has done."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press() -> None:
    """Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


class Freed:
    """An object during whose deletion Ctrl-C is pressed."""

    def __del__(self) -> None:
        press()


def test_ctrl_c_is_raised_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ignored, steps = [], []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)

    def work() -> None:
        with interrupts_held():
            Freed()
            steps.append("deleted")
            press()
            steps.append("goes on")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["deleted", "goes on"]
    assert not ignored
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_is_let_in_between_two_steps() -> None:
    steps = []

    def work() -> None:
        with interrupts_held():
            let_interrupts_in()  # there is none yet
            press()
            try:
                let_interrupts_in()
            finally:
                press()  # which is held up while the first one ends the work
                steps.append("cleaned up")
            steps.append("goes on")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["cleaned up"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_within_itself_the_outermost_raises() -> None:
    steps = []

    def work() -> None:
        with interrupts_held():
            with interrupts_held():
                press()
            steps.append("goes on")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["goes on"]


def test_a_handler_of_the_program_is_run_with_its_arguments() -> None:
    seen = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append((number, frame is not None)))
    with interrupts_held():
        press()
        assert not seen
        let_interrupts_in()
        assert seen == [(signal.SIGINT, True)]
    assert seen == [(signal.SIGINT, True)]


def test_an_error_that_is_raised_meanwhile_is_its_context() -> None:
    def work() -> None:
        with interrupts_held():
            press()
            raise ValueError("another")

    with pytest.raises(KeyboardInterrupt) as raised:
        work()
    assert isinstance(raised.value.__context__, ValueError)


def test_errors_pass() -> None:
    with pytest.raises(ValueError, match="mine"), interrupts_held():
        raise ValueError("mine")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_that_somebody_sets_meanwhile_stays() -> None:
    def own(number: int, frame: object) -> None:
        """Another one."""

    with interrupts_held():
        signal.signal(signal.SIGINT, own)
    assert signal.getsignal(signal.SIGINT) is own


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_what_is_no_function_is_left_alone(handler: signal.Handlers) -> None:
    signal.signal(signal.SIGINT, handler)
    with interrupts_held():
        assert signal.getsignal(signal.SIGINT) is handler


def test_other_threads_change_nothing() -> None:
    seen = []

    def work() -> None:
        with interrupts_held():
            let_interrupts_in()
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_who_waits_for_another_process_can_be_interrupted(tmp_path: Path) -> None:
    one, another = (Cache(tmp_path / "cache") for _ in range(2))

    def wait() -> None:
        with interrupts_held(), another.making("0" * 64):
            pytest.fail("it did not wait")

    with one.making("0" * 64):
        timer = threading.Timer(0.1, signal.raise_signal, (signal.SIGINT,))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            wait()
        timer.join()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_of_another_thread_has_the_handler_again() -> None:
    """Whose main thread is the one that forked: nobody is left to give the place back."""
    statuses: list[int] = []

    def fork() -> None:
        child = os.fork()
        if not child:
            os._exit(0 if signal.getsignal(signal.SIGINT) is signal.default_int_handler else 1)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    with interrupts_held():
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
    assert statuses == [0]
