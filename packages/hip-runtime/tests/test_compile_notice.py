"""The line that says that compiling takes long: who is told, once, and of which stage."""

from __future__ import annotations

import io
import threading
import time
from types import SimpleNamespace

import pytest

from hip_runtime import compile_notice, config
from hip_runtime.compile_notice import announced, enter_stage


class Terminal(io.StringIO):
    """Standard error that a person looks at."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        count = super().write(text)
        self.written.set()
        return count


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    terminal = Terminal()
    monkeypatch.setattr(compile_notice, "sys", SimpleNamespace(stderr=terminal, modules={}))  # pytest has the real one
    monkeypatch.setattr(compile_notice, "PATIENCE", 0.02)
    return terminal


def test_a_line_tells_the_kernel_and_the_stage_once(terminal: Terminal) -> None:
    with announced("saxpy", "type inference"):
        enter_stage("linking and optimising")
        with announced("inner", "lowering inner to LLVM IR"):
            assert terminal.written.wait(20)
        time.sleep(0.1)
    assert terminal.getvalue() == (
        "numba.hip: compiling kernel 'saxpy' takes more than 0.02 s; now: lowering inner to LLVM IR "
        "(NUMBA_HIP_COMPILE_NOTICE=0 leaves this line out)\n"
    )


def test_a_stage_ends_with_its_block(terminal: Terminal) -> None:
    with announced("saxpy", "type inference"):
        with pytest.raises(ValueError, match="no"), announced("inner", "lowering"):
            raise ValueError("no")
        assert terminal.written.wait(20)
    assert "now: type inference" in terminal.getvalue()


def test_what_is_quick_says_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_notice, "PATIENCE", 0.2)
    for _ in range(3):
        with announced("saxpy", "type inference"):
            pass
    enter_stage("nothing is compiled")
    assert not terminal.written.wait(0.4)


def test_nobody_is_told_where_nobody_looks(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "isatty", lambda: False)
    with announced("saxpy", "type inference"):
        assert not terminal.written.wait(0.1)
    monkeypatch.setattr(compile_notice.sys, "stderr", None)
    with announced("saxpy", "type inference"):
        assert not terminal.written.wait(0.1)


def test_in_a_notebook(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "isatty", lambda: False)
    monkeypatch.setitem(compile_notice.sys.modules, "ipykernel", None)
    with announced("saxpy", "type inference"):
        assert terminal.written.wait(20)


def test_the_setting(terminal: Terminal) -> None:
    with config.compile_notice.scope(False), announced("saxpy", "type inference"):
        assert not terminal.written.wait(0.1)
