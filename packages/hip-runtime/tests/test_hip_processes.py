"""What a program sees that finds GPUs, none, or a HIP runtime that does not work: each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import hip_standin
import pytest

from hip_runtime.drivers.hip import probe as probing
from hip_runtime.drivers.hip.probe import State, probe

START = """
import ctypes, sys, warnings
ctypes.CDLL({library!r}, mode=ctypes.RTLD_GLOBAL)
import hip_runtime as rt
"""

DEVICES = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        print([device.target for device in rt.devices()])
        rt.devices()
    except rt.DeviceUnavailableError as error:
        print("error:", error)
for warning in caught:
    print("warning:", warning.message)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hip_standin.standin()  # or skip
    return hip_standin.build(tmp_path_factory.mktemp("standin"))


def run(library: Path, code: str, **environment: str) -> list[str]:
    """Lines that the program prints with that runtime; it must end well."""
    return execute(START.format(library=str(library)) + code, environment)


def execute(program: str, environment: Mapping[str, str]) -> list[str]:
    """Lines that the program prints; it must end well."""
    hidden = ("ROCM_PATH", "ROCM_HOME", "NUMBA_HIP_DEVICE", *probing.VISIBILITY)
    clean = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env={**clean, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.sample(1)
@pytest.mark.parametrize("choice", ["auto", "hip"])
def test_gpus(library: Path, choice: str) -> None:
    assert run(library, DEVICES, NUMBA_HIP_DEVICE=choice, STANDIN_DEVICES="3") == [
        "['gfx90a:sramecc+:xnack-', 'gfx1100', 'gfx942:sramecc+:xnack-']"
    ]


VERSIONED = (
    """
import warnings
import hip_runtime as rt
"""
    + DEVICES
)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("variable", "name"), [("LD_LIBRARY_PATH", "libamdhip64.so.6"), ("ROCM_PATH", "libamdhip64.so.7")]
)
def test_a_library_that_is_there_under_a_versioned_name_alone(tmp_path: Path, variable: str, name: str) -> None:
    hip_standin.standin()  # or skip
    folder = tmp_path / "lib"
    folder.mkdir()
    hip_standin.build(folder, f"-Wl,-soname,{name}").rename(folder / f"{name}.4.1")
    (folder / name).symlink_to(f"{name}.4.1")
    where = {variable: str(tmp_path if variable == "ROCM_PATH" else folder), "NUMBA_HIP_DEVICE": "hip"}
    assert execute(VERSIONED, where) == ["['gfx90a:sramecc+:xnack-', 'gfx1100']"]


def test_a_library_under_a_versioned_name_that_cannot_be_loaded(tmp_path: Path) -> None:
    hip_standin.standin()  # or skip
    (tmp_path / "libamdhip64.so.6").write_text("what is no library")
    (line,) = execute(VERSIONED, {"LD_LIBRARY_PATH": str(tmp_path), "NUMBA_HIP_DEVICE": "hip"})
    assert "no HIP runtime library was found (failed to dlopen" in line
    assert f"{tmp_path}/libamdhip64.so.6: " in line


def test_no_gpu_is_one_warning(library: Path) -> None:
    devices, warning = run(library, DEVICES, STANDIN_DEVICES="0")
    assert devices == "['cpu']"
    assert warning == (
        "warning: kernels run on the CPU device: the HIP runtime finds no AMD GPU. Set NUMBA_HIP_DEVICE=cpu to run "
        "kernels on this machine's processor without this warning"
    )


def test_no_gpu_is_one_sentence_where_one_is_asked_for(library: Path) -> None:
    assert run(library, DEVICES, STANDIN_DEVICES="0", NUMBA_HIP_DEVICE="hip", HIP_VISIBLE_DEVICES="") == [
        "error: NUMBA_HIP_DEVICE=hip asks for an AMD GPU: the HIP runtime finds no AMD GPU with "
        "HIP_VISIBLE_DEVICES=''. Set NUMBA_HIP_DEVICE=cpu to run kernels on this machine's processor"
    ]


@pytest.mark.sample(1)
@pytest.mark.parametrize("choice", ["auto", "hip"])
@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("hipInit", "the HIP runtime answers hipErrorUnknown (999)"),
        ("hipGetDeviceCount", "the HIP runtime answers hipErrorUnknown (999)"),
        (
            "hipGetDevicePropertiesR0600",
            "the HIP runtime finds 2 AMD GPUs, but cannot use them: hipGetDeviceProperties: hipErrorUnknown (999): "
            "unknown error",
        ),
    ],
)
def test_a_runtime_that_does_not_work_is_shown(library: Path, choice: str, function: str, reason: str) -> None:
    code = f"ctypes.CDLL({str(library)!r}).standin_fail({function.encode()!r}, 999, 0)\n" + DEVICES
    (line,) = run(library, code, NUMBA_HIP_DEVICE=choice)
    assert line.startswith("error: ")
    assert reason in line
    assert "NUMBA_HIP_DEVICE=cpu" in line


@pytest.mark.long
def test_a_function_that_the_runtime_does_not_have(tmp_path: Path) -> None:
    hip_standin.standin()  # or skip
    old = hip_standin.build(tmp_path, "-DhipMemcpy2DAsync=standin_absent")
    code = """
driver = rt.devices()[0].driver
stream, place = driver.create_stream(0), driver.alloc(0, 64)
rows = rt.driver.Strided(place, (16, 4)), rt.driver.Strided(place + 8, (16, 4)), (2, 2), 4
for _ in range(2):
    try:
        driver.copy_strided(*rows, stream)
    except rt.UnsupportedError as error:
        print(error)
driver.fill(place, 0, 8)
print("goes on")
"""
    *errors, last = run(old, code)
    assert last == "goes on"
    assert len(errors) == 2
    assert all("the HIP runtime of this machine has no hipMemcpy2DAsync: failed to dlsym" in error for error in errors)


def test_a_gpu_that_the_user_may_not_open(library: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device = tmp_path / "kfd"
    device.touch()
    monkeypatch.setattr(probing, "KFD", str(device))
    monkeypatch.setenv("STANDIN_DEVICES", "0")
    assert probe().state is State.NO_DEVICE
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    found = probe()
    assert found.state is State.BROKEN
    assert f"may not open {device}" in found.reason


@pytest.mark.filterwarnings("error")
def test_programs_end_while_streams_are_busy(library: Path) -> None:
    """Threads of callbacks, work that is still queued and buffers that nobody freed do not disturb the end."""
    code = """
import numpy as np
driver = rt.devices()[0].driver
stream = rt.Stream()
place = rt.to_device(np.arange(1000))
for _ in range(10):
    stream.add_callback(lambda error: __import__("time").sleep(0.01))
    driver.fill(place.address, 0, 8, stream.handle)
print("end")
"""
    assert run(library, code) == ["end"]
