"""Advice: warnings of launches that leave the device idle, of copies that nobody asked for, of options that clash."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numba import hip
from numba.core.errors import NumbaError, NumbaInvalidConfigWarning, NumbaPerformanceWarning, NumbaWarning

from hip_runtime.errors import LaunchError, SettingError
from numba_hip import config
from numba_hip.compilation.options import CompileOptions
from numba_hip.errors import OptionError


def add_one(values: Any) -> None:
    i = hip.grid(1)
    if i < values.size:
        values[i] += 1


def units() -> int:
    return hip.get_current_device().attributes.compute_units


@pytest.mark.skipif(units() < 2, reason="one block is enough for a device with one compute unit")
def test_a_grid_that_leaves_the_device_idle() -> None:
    values = hip.to_device(np.zeros(3))
    with config.low_occupancy_warnings.scope(True):
        configured = hip.jit(add_one)[1, 32]
        with pytest.warns(
            NumbaPerformanceWarning, match=f"Grid size 1 leaves {units() - 1} of the {units()} .* low occupancy"
        ) as told:
            configured(values)
        assert told[0].filename == __file__
        configured(values)
        with pytest.warns(NumbaPerformanceWarning, match="Grid size 1 leaves"):
            hip.jit(add_one).forall(3)(values)
        hip.jit(add_one)[units(), 32](values)
        hip.jit(add_one)[(1, units()), 32]
        with config.simulator.scope(True):
            hip.jit(add_one)[1, 32](values)
        with pytest.warns(NumbaPerformanceWarning, match="Grid size 1 leaves"):
            hip.jit(add_one)[1, 32, hip.stream()](values)
    assert values.copy_to_host().tolist() == [6, 6, 6]


@pytest.mark.skipif(units() < 2, reason="one block is enough for a device with one compute unit")
def test_advice_where_launches_are_configured() -> None:
    kernel, values = hip.jit(add_one), hip.to_device(np.zeros(3))
    with config.low_occupancy_warnings.scope(True), config.early_warnings.scope(True):
        with pytest.warns(NumbaPerformanceWarning, match="Grid size 1 leaves") as told:
            configured = kernel[1, 32]
        assert [one.filename for one in told] == [__file__]
        configured(values)
        kernel[1, 32, hip.stream()](values)
        with pytest.warns(NumbaPerformanceWarning, match="Grid size 1 leaves") as told:
            hip.jit(add_one).forall(3)(values)
        assert [one.filename for one in told] == [__file__]


def test_a_launch_that_does_not_take_place_is_not_advised_on() -> None:
    kernel = hip.jit(add_one)
    with (
        config.low_occupancy_warnings.scope(True),
        config.implicit_copy_warnings.scope(True),
        warnings.catch_warnings(record=True) as told,
    ):
        warnings.simplefilter("always")
        configured = kernel[1, 32]
        for wrong in ((np.zeros(3), 1), (np.zeros(3, np.complex128)[0],), ([1, 2],), (object(),), (np.zeros(3, "S3"),)):
            with pytest.raises((TypeError, NumbaError)):
                configured(*wrong)
        with pytest.raises(LaunchError):
            kernel[1, 2**11](np.zeros(3))
        assert [str(one.message) for one in told] == []
        configured(np.zeros(3))
        assert len(told) == (2 if units() > 1 else 1)
        configured(hip.to_device(np.zeros(3)))
        assert len(told) == (2 if units() > 1 else 1)


def test_grids_that_callers_do_not_choose_are_not_their_concern() -> None:
    with config.low_occupancy_warnings.scope(True), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert hip.algorithms.reduce(hip.to_device(np.arange(9)[::-1].astype(np.uint16))) == 36
    assert not told


def test_a_host_array_that_is_copied_both_ways() -> None:
    kernel, host = hip.jit(add_one), np.zeros(3)
    with config.implicit_copy_warnings.scope(True):
        with pytest.warns(
            NumbaPerformanceWarning, match="Host array used in HIP kernel will incur copy overhead"
        ) as told:
            kernel[1, 32](host)
        assert told[0].filename == __file__
        for quiet in (hip.InOut(host), hip.to_device(host), hip.mapped_array_like(host), hip.managed_array(3)):
            kernel[1, 32](quiet)
    assert host.tolist() == [2, 2, 2]


def test_the_cpu_device_is_quiet_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NUMBA_HIP_LOW_OCCUPANCY_WARNINGS", "NUMBA_HIP_IMPLICIT_COPY_WARNINGS"):
        monkeypatch.delenv(name, raising=False)
    quiet = hip.get_current_device().is_cpu
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        hip.jit(add_one)[1, 32](np.zeros(3))
        hip.jit(add_one, debug=True, lineinfo=True)
    assert len(told) == (0 if quiet else 2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"debug": True}, ["opt=True"]),
        ({"debug": True, "opt": True}, ["opt=True"]),
        ({"debug": True, "opt": False}, []),
        ({"debug": True, "opt": False, "lineinfo": True}, ["mutually exclusive"]),
        ({"lineinfo": True}, []),
        ({}, []),
    ],
)
def test_options_that_clash(options: dict[str, Any], says: list[str]) -> None:
    with config.option_warnings.scope(True), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        hip.jit(**options)
    assert [warning.category for warning in told] == [NumbaInvalidConfigWarning] * len(says)
    for warning, word in zip(told, says, strict=True):
        assert word in str(warning.message)
        assert warning.filename == __file__


def test_settings_are_the_defaults_of_options(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (CompileOptions.of_jit({}).debug, CompileOptions.of_jit({}).opt) == (False, True)
    with config.debug.scope(True), config.opt.scope(False):
        made = CompileOptions.of_jit({"debug": None})
        assert (made.debug, made.opt) == (True, False)
        made = CompileOptions.of_jit({"debug": False, "opt": True})
        assert (made.debug, made.opt) == (False, True)
    for setting in (config.debug, config.opt, config.low_occupancy_warnings, config.implicit_copy_warnings):
        with monkeypatch.context() as patch:
            patch.setenv(setting.variable, "yes")
            with pytest.raises(SettingError, match=f"{setting.variable}='yes': must be 0 or 1"):
                setting()
    monkeypatch.setenv(config.debug.variable, "race")
    with pytest.raises(SettingError, match="NUMBA_HIP_DEBUG='race': must be 0 or 1; NUMBA_HIP_CPU_RACES=1 finds races"):
        config.debug()


def test_options_that_hold_for_every_kernel_are_ignored_with_a_warning() -> None:
    with config.option_warnings.scope(True):
        with pytest.warns(NumbaWarning, match="jit ignores parallel=True: a kernel runs in parallel over its grid"):
            twice = hip.jit(device=True, parallel=True)(lambda x: 2 * x)
        with pytest.warns(NumbaWarning, match="jit ignores nopython=True"):

            @hip.jit(nopython=True)
            def kernel(values: Any) -> None:
                values[0] = twice(values[0])

        with pytest.raises(OptionError, match=r"no option locals \(variables have the types"):
            hip.jit(locals={})
    values = np.array([3])
    kernel[1, 1](values)
    assert values[0] == 6
    with pytest.raises(OptionError, match=r"no option nopython \(kernels are always compiled so\)"):
        hip.jit(nopython=True)
