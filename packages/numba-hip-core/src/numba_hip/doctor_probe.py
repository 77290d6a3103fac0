"""The doctor's other process: imports what is installed, finds the devices and runs a kernel.

It is run by its path, as `numba_hip` itself may be what cannot be imported. Each line that it prints is JSON: a check,
or the name of the stage that begins, which is to blame if the process ends in it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

MODULES = ("numpy", "llvmlite.binding", "numba", "hip_devicelib", "hip_runtime", "numba_hip", "numba.hip")
"""What is imported, each after those that it needs."""


def tell(**what: str) -> None:
    """Print one line of JSON."""
    print(json.dumps(what), flush=True)


def tell_check(name: str, verdict: str, detail: str) -> None:
    """Print a check."""
    tell(name=name, verdict=verdict, detail=detail)


def import_all() -> bool:
    """Import everything that kernels need; stops at the first module that fails."""
    for name in MODULES:
        tell(stage=f"import {name}")
        try:
            module = import_module(name)
        except Exception as error:
            tell_check(f"import {name}", "problem", f"{type(error).__name__}: {_one_line(error)}")
            return False
        if name == "numba.hip" and module.__name__ != "numba_hip":
            where = getattr(module, "__file__", None)
            tell_check("import numba.hip", "problem", f"is another package, in {where}: uninstall that one")
            return False
    tell_check("imports", "ok", ", ".join(MODULES))
    return True


def check_settings() -> None:
    """Settings whose values cannot be read, and variables that are none."""
    from hip_runtime import config as runtime_config
    from hip_runtime.errors import SettingError
    from numba_hip import config

    for setting in {setting.variable: setting for setting in (*runtime_config.SETTINGS, *config.SETTINGS)}.values():
        try:
            setting()
        except SettingError as error:
            tell_check(setting.variable, "problem", _one_line(error))
    for name, meant in runtime_config.misspelt_variables().items():
        tell_check(name, "note", f"no setting; {meant} is one")


def check_rocm() -> None:
    """ROCm, the tools for AMD GPUs, and whether the HIP runtime finds any."""
    from hip_devicelib.doctor import examine
    from hip_runtime.drivers.hip.probe import State, probe

    for part in examine():
        if part.name != "llvmlite":  # it is listed as a package
            tell_check(part.name, part.verdict, part.detail)
    found = probe()
    verdicts = {State.FOUND: "ok", State.BROKEN: "problem"}
    tell_check("AMD GPUs", verdicts.get(found.state, "missing"), found.reason)


def check_devices() -> bool:
    """The devices that kernels run on; returns whether there are any."""
    from hip_runtime.errors import HipRuntimeError
    from numba_hip.host.api import list_devices

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            devices = list_devices()
        except HipRuntimeError as error:
            tell_check("devices", "problem", _one_line(error))
            return False
    for warning in caught:
        tell_check("devices", "note", _one_line(warning.message))
    for device in devices:
        facts = device.attributes
        tell_check(
            f"device {device.id}", "ok",
            f"{device.name} [{device.target}], {facts.compute_units} compute units, waves of {facts.wave_size}, "
            f"{facts.total_memory / 2**30:.1f} GiB",
        )  # fmt: skip
    return bool(devices)


def check_kernel() -> None:
    """Compile a kernel, run it on the current device and look at its results."""
    import numpy as np

    from hip_runtime import current_device
    from numba_hip.decorators import jit
    from numba_hip.language.thread_index import grid

    @jit
    def double(values: Any) -> None:
        i = grid(1)
        if i < values.size:
            values[i] *= 2

    values = np.arange(1000, dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a device that was not found, which the check before told of
        double[4, 256](values)
    if not np.array_equal(values, 2 * np.arange(1000, dtype=np.float32)):
        raise ArithmeticError(f"the results of a kernel are wrong: {values[:4].tolist()}... should be [0, 2, 4, 6]...")
    tell_check("a kernel", "ok", f"was compiled for {current_device().name}, ran, and its results are right")


def stages() -> Iterator[tuple[str, Callable[[], bool | None]]]:
    """What is done, one after the other, until something returns False or fails."""
    yield "imports", import_all
    yield "settings", check_settings
    yield "ROCm", check_rocm
    yield "devices", check_devices
    yield "a kernel", check_kernel


def main() -> None:
    """Run all stages."""
    for stage, check in stages():
        tell(stage=stage)
        try:
            if check() is False:
                return
        except Exception as error:
            tell_check(stage, "problem", f"{type(error).__name__}: {_one_line(error)}")


def _one_line(error: object) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    main()
