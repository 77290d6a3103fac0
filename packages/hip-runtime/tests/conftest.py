"""Fixtures: a device of its own for each test, and a check that the test gave all memory back."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from hip_devicelib.codeobject import CodeObject, Kernel
from hip_runtime import config
from hip_runtime.device import Device
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu import modules
from hip_runtime.drivers.cpu.driver import CpuDriver
from hip_runtime.drivers.cpu.object_code.program import Program
from hip_runtime.drivers.cpu.vectorize import gang_function

MEMORY = 64 << 20

config.verify_passes.preset(True)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """The CPU device with 64 MiB of memory, current for this thread; what a test allocates must be given back."""
    from hip_runtime import device as devices

    found = Device(CpuDriver(MEMORY), 0, 0)
    monkeypatch.setattr(devices._registry, "devices", (found,))
    monkeypatch.setattr(devices._registry.current, "device", found, raising=False)
    yield found
    found.synchronize()
    if found.memory_info() != (MEMORY, MEMORY):
        gc.collect()  # arrays in cycles; looking for them after each of thousands of tests would take a minute
        found.synchronize()
    assert found.memory_info() == (MEMORY, MEMORY)


@pytest.fixture
def kept_programs() -> Iterator[None]:
    """Programs are kept as long as the test runs, so that a kernel that it loads again, for the same form and block, is
    a copy, as for another device, and not compiled anew. For tests that launch one kernel with many values."""
    kept: list[Program] = []
    note = modules.note_loaded

    def keep(code: CodeObject, kernel: Kernel, block: Dim3, program: Program) -> None:
        kept.append(program)
        note(code, kernel, block, program)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modules, "note_loaded", keep)
        yield


@pytest.fixture
def coherent_versions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often code behind coherent divisions and clamps was versioned, for each gang function."""
    counts: list[int] = []

    class Spy(gang_function.CoherentValues):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            counts.append(0)

        def version_next(self, *arguments: Any) -> bool:
            found = super().version_next(*arguments)
            counts[-1] += found
            return found

    monkeypatch.setattr(gang_function, "CoherentValues", Spy)
    return counts
