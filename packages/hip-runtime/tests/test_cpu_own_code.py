"""Machine code of the driver's own functions, which every process would make in the same way."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import llvmlite
import llvmlite.binding as llvm
import pytest
from llvmlite import ir

import hip_devicelib
import hip_runtime
from hip_devicelib.cache import DIRECTORY_VARIABLE
from hip_runtime.drivers.cpu.execution.block_dispatch import build_dispatch
from hip_runtime.drivers.cpu.object_code import own_code

I32 = ir.IntType(32)
built: list[int] = []


def build(number: int) -> ir.Module:
    """A module with a function ``own`` that returns *number*."""
    built.append(number)
    module = ir.Module("own")
    function = ir.Function(module, ir.FunctionType(I32, []), "own")
    ir.IRBuilder(function.append_basic_block("entry")).ret(I32(number))
    return module


def run(number: int, entries: tuple[str, ...] = ("own",)) -> int:
    """What the function returns that `own_code` has, which is made to return *number* where there is none."""
    program = own_code.load_or_compile(lambda: build(number), entries)
    return int(ctypes.CFUNCTYPE(ctypes.c_int32)(program.entry)())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    built.clear()
    found = tmp_path / "cache"
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(found))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return found


def test_code_is_built_once() -> None:
    assert run(42) == run(7) == 42
    assert built == [42]


Patch = pytest.MonkeyPatch

CHANGES: dict[str, Callable[[Patch], None]] = {
    "release": lambda patch: patch.setattr(hip_devicelib, "__version__", "other"),
    "llvmlite": lambda patch: patch.setattr(llvmlite, "__version__", "other"),
    "LLVM": lambda patch: patch.setattr(llvm, "llvm_version_info", (99, 0, 0)),
    "processor": lambda patch: patch.setattr(llvm, "get_host_cpu_name", lambda: "other"),
    "interpreter": lambda patch: patch.setattr(sys, "version", "other"),
    "C library": lambda patch: patch.setattr(sys.implementation, "_multiarch", "other", raising=False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_code_of_something_else_is_not_used(change: str) -> None:
    assert run(1) == 1
    with pytest.MonkeyPatch.context() as patch:
        CHANGES[change](patch)
        assert run(2) == run(3) == 2
    assert run(4) == 1


def test_code_of_other_sources_or_features_is_not_used(tmp_path: Path, monkeypatch: Patch) -> None:
    source, inner = tmp_path / "one.py", tmp_path / "more"
    inner.mkdir()
    for path in (source, inner / "two.py"):
        path.write_text("first")
    monkeypatch.setattr(own_code, "_SOURCES", (source, inner))
    assert run(1) == 1
    source.write_text("second")
    assert run(2) == 2
    (inner / "two.py").write_text("second")
    assert run(3) == 3
    (inner / "three.py").write_text("second")
    assert run(4) == run(5) == 4
    features = llvm.get_host_cpu_features()
    features["sse2"] = not features.get("sse2")
    with monkeypatch.context() as patch:
        patch.setattr(llvm, "get_host_cpu_features", lambda: features)
        assert run(6) == 6
    assert run(7) == 4
    assert built == [1, 2, 3, 4, 6]


def test_what_the_block_scheduler_is_written_with_is_digested() -> None:
    """Everything of ours that runs while it is built lies among the sources."""
    digested = {
        path for source in own_code._SOURCES for path in ([source] if source.is_file() else source.rglob("*.py"))
    }
    ran: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        ran.add(frame.f_code.co_filename)

    gc.collect()  # what other tests have left is not released by code that counts here
    gc.disable()
    sys.setprofile(note)
    try:
        own_code.jit.compile_quickly(build_dispatch(platform.machine()), "spmd.dispatch")
    finally:
        sys.setprofile(None)
        gc.enable()
    packages = [Path(package.__file__).resolve().parent for package in (hip_devicelib, hip_runtime)]
    files = {Path(name).resolve() for name in ran}
    ours = {path for path in files if any(path.is_relative_to(package) for package in packages)}
    assert len(ours) > 5
    assert ours <= digested


def test_nothing_is_written_where_python_writes_no_bytecode(folder: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert (run(1), run(2)) == (1, 2)
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_a_directory_that_cannot_be_trusted_is_passed_over(folder: Path) -> None:
    assert run(1) == 1
    folder.chmod(0o777)
    assert run(2) == 2
    folder.chmod(0o700)
    (entry,) = (path for path in folder.rglob("*") if path.is_file())
    entry.write_bytes(entry.read_bytes()[:-1])
    assert run(3) == run(4) == 3


def test_another_process_finds_the_block_scheduler(folder: Path) -> None:
    script = """
import numpy as np
from hip_runtime.drivers.cpu.execution import block_scheduler
build = block_scheduler.build_dispatch
calls = []
block_scheduler.build_dispatch = lambda machine: calls.append(machine) or build(machine)
scheduler = block_scheduler.block_scheduler()
print(len(calls), scheduler.helpers)
"""
    variables = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    variables |= {"NUMBA_HIP_CPU_THREADS": "2", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    told = [
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120, env=variables
        ).stdout
        for _ in range(2)
    ]
    assert told == ["1 1\n", "0 1\n"]
