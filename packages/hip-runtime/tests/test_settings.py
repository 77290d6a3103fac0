"""Values that settings do not take, and variables that are no settings."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import warnings
from typing import Any

import pytest

from hip_runtime import SettingError, UnknownSettingWarning, config
from hip_runtime import device as devices

NEVER = [
    "nan",
    "inf",
    "-inf",
    "-1",
    "-0.5",
    "1e400",
    "٣",
    "1_0",
    "+4",
    "0x10",
    "yes",
    "\udcff",
    "9" * 5000,
    "1,5",
    "None",
]


PARTICULAR = [setting for setting in config.SETTINGS if setting is not config.dump_directory]
"""Settings that do not take any text, as the name of a folder may be."""


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(config.PREFIX):
            monkeypatch.delenv(name)


@pytest.mark.parametrize("setting", PARTICULAR, ids=lambda setting: setting.variable)
@pytest.mark.parametrize("text", NEVER, ids=lambda text: ascii(text)[:12])
def test_text_that_no_setting_takes(setting: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if text == "\udcff":  # a byte that is no text
        monkeypatch.setenv(setting.variable, os.fsdecode(b"\xff"))
    else:
        monkeypatch.setenv(setting.variable, text)
    with pytest.raises(SettingError, match=rf"^{setting.variable}="):
        setting()
    with pytest.raises(SettingError, match=rf"^{setting.variable}="), setting.scope(text):
        pass


def _name(value: Any) -> str:
    """What processes that share the tests among them all call *value*."""
    if isinstance(value, config.Setting):
        return value.variable
    return "object" if type(value) is object else str(value)


@pytest.mark.parametrize("setting", PARTICULAR, ids=lambda setting: setting.variable)
@pytest.mark.parametrize("value", [math.nan, math.inf, -1, -0.5, "", b"1", [1], object()], ids=_name)
def test_values_that_no_setting_takes(setting: Any, value: Any) -> None:
    before = setting()
    with pytest.raises(SettingError, match=rf"^{setting.variable}="), setting.scope(value):
        pass
    with pytest.raises(SettingError, match=rf"^{setting.variable}="):
        setting.preset(value)
    assert setting() == before


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        (config.pending_release_ratio, 0), (config.pending_release_ratio, 1.0), (config.pending_release_ratio, 1e-7),
        (config.cpu_threads, 65536), (config.cpu_memory, 2**63 - 1), (config.cpu_width, None), (config.cpu_width, 64),
        (config.array_interface_sync, False), (config.cpu_wave_size, 32), (config.device, "cpu"),
    ],
    ids=_name,
)  # fmt: skip
def test_values_that_settings_take(setting: Any, value: Any) -> None:
    with setting.scope(value):
        assert setting() == value
    setting.preset(value)
    try:
        assert setting() == value
    finally:
        setting.preset(None)


@pytest.mark.parametrize("text", ["65537", "99999999999999999999"])
def test_there_are_never_so_many_threads(text: str) -> None:
    with pytest.raises(SettingError, match="must be 65536 or less"), config.cpu_threads.scope(text):
        pass


def test_memory_that_has_no_addresses() -> None:
    with pytest.raises(SettingError, match=r"2\*\*63 - 1"), config.cpu_memory.scope("8388608T"):
        pass


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NUMBA_HIP_DEVIEC", "NUMBA_HIP_DEVICE"),
        ("NUMBA_HIP_DEVICES", "NUMBA_HIP_DEVICE"),
        ("NUMBA_HIP_THREADS", "NUMBA_HIP_CPU_THREADS"),
        ("NUMBA_HIP_CPU_THREAD", "NUMBA_HIP_CPU_THREADS"),
        ("NUMBA_HIP_WAVE_SIZE", "NUMBA_HIP_CPU_WAVE_SIZE"),
        ("NUMBA_HIP_CPU_FROM", "NUMBA_HIP_CPU_FORM"),
        ("NUMBA_HIP_FORM", "NUMBA_HIP_CPU_FORM"),
        ("NUMBA_HIP_PENDING_RATIO", "NUMBA_HIP_PENDING_RELEASE_RATIO"),
    ],
)
def test_misspelt_variables(name: str, meant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    assert config.misspelt_variables() == {name: meant}
    monkeypatch.setattr(devices._registry, "checked_names", False)
    with pytest.warns(UnknownSettingWarning, match=f"has {name}, which is no setting; {meant} is one") as caught:
        devices._tell_of_misspelt_settings()
    assert len(caught) == 1
    devices._tell_of_misspelt_settings()  # not again


@pytest.mark.parametrize("name", ["NUMBA_HIP_DEVICE", "NUMBA_HIP_XYZZY", "NUMBA_HIP_", "NUMBA_HIPSTER", "NUMBA_DEBUG"])
def test_variables_that_are_left_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "cpu")
    assert config.misspelt_variables() == {}


PROGRAM = """
import warnings
warnings.simplefilter("error")
import hip_runtime as rt
try:
    rt.current_device()
except rt.UnknownSettingWarning as warning:
    print(warning)
print(rt.current_device().is_cpu)
"""


def test_it_is_told_where_devices_are_asked_for_and_not_by_an_import() -> None:
    environment = {**os.environ, "NUMBA_HIP_DEVICE": "cpu", "NUMBA_HIP_CPU_THRAEDS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == [
        "the environment has NUMBA_HIP_CPU_THRAEDS, which is no setting; NUMBA_HIP_CPU_THREADS is one",
        "True",
    ]


def test_without_a_misspelt_variable_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices._registry, "checked_names", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        devices._tell_of_misspelt_settings()
