"""The GPU's properties, the installed libraries, and its speed: ``python -m tools.gpu_report.device FILE``.

The result is written to that file as JSON, as libraries may write to standard output, even at exit.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

PACKAGES = (
    "hip-devicelib", "hip-runtime", "numba-hip-core", "numba-hip-cuda-compat", "hip-python", "numba", "llvmlite",
    "numpy",
)  # fmt: skip
VARIABLES = re.compile("NUMBA_|HIP_|HSA_|ROCR_|ROCM_|AMD_|GPU_|EMULATED_|LD_PRELOAD")
"""The prefixes of environment variables that may affect the results."""

LAUNCHES = 10
ELEMENTS = 1 << 16


def describe() -> dict[str, Any]:
    """All of this; ``missing`` says why there is no GPU otherwise."""
    from hip_runtime.drivers.hip.probe import State, import_hip, probe

    found = probe()
    if found.state is not State.FOUND:
        return {"missing": found.reason}
    hip = import_hip()
    from hip_runtime import current_device
    from hip_runtime.drivers.hip.driver import HipDriver

    device = current_device()
    assert isinstance(device.driver, HipDriver)
    attributes = device.attributes
    return {
        "versions": {
            "HIP runtime": _ask(hip, "hipRuntimeGetVersion"),
            "HIP driver": _ask(hip, "hipDriverGetVersion"),
            "libamdhip64": _library("libamdhip64"),
            "libhsa-runtime64": _library("libhsa-runtime64"),
            "ROCm": _rocm(),
            "amdgpu (kernel)": _read(Path("/sys/module/amdgpu/version")) or "not loaded, or without a version",
            "system": f"{platform.system()} {platform.release()}, {_system()}",
            "Python": platform.python_version(),
            **{name: _version(name) for name in PACKAGES},
        },
        "device": {
            "name": attributes.name,
            "target": attributes.target,
            "devices": found.devices,
            "wave size": attributes.wave_size,
            "compute units": attributes.compute_units,
            "memory": attributes.total_memory,
            "shared memory of a block": attributes.shared_bytes_per_block,
            "clock rate in kHz": attributes.clock_rate,
            "shares the host's memory": attributes.integrated,
            "managed memory": attributes.managed_memory,
            "cooperative launches": attributes.cooperative_launch,
        },
        "environment": {name: os.environ[name] for name in sorted(os.environ) if VARIABLES.match(name)},
        "speed": measure(),
    }


def measure() -> dict[str, float]:
    """The seconds of an empty launch, and the elements per second of a simple kernel, both including the wait."""
    import numpy as np
    from numba import hip

    @hip.jit
    def nothing():
        pass

    @hip.jit
    def add(x, y):
        i = hip.grid(1)
        if i < y.size:
            y[i] += x[i]

    x, y = hip.to_device(np.ones(ELEMENTS, np.float32)), hip.to_device(np.zeros(ELEMENTS, np.float32))
    launch = _time(lambda: nothing[1, 64]())
    whole = _time(lambda: add[ELEMENTS // 256, 256](x, y))
    counted = y.copy_to_host()
    assert (counted == counted[0]).all(), "a kernel that adds computes wrong sums"
    return {"launch": launch, "elements": ELEMENTS / whole}


def _time(launch: Callable[[], None]) -> float:
    from numba import hip

    launch()  # compiles
    hip.synchronize()
    seconds = []
    for _ in range(LAUNCHES):
        start = time.perf_counter()
        launch()
        hip.synchronize()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def _ask(hip: Any, name: str) -> str:
    """The result of a function of hip-python that returns one number."""
    try:
        answer = getattr(hip, name)()
    except Exception as error:  # whatever a library raises that lacks the function
        return f"unknown: {type(error).__name__}: {error}"
    return str(answer[1]) if isinstance(answer, tuple) and int(answer[0]) == 0 else f"unknown: {answer}"


def _library(name: str) -> str:
    """The path of the library that this process has loaded."""
    for line in _read(Path("/proc/self/maps")).splitlines():
        path = line.partition("/")[2]
        if name in path:
            return f"/{path}"
    return "not loaded"


def _rocm() -> str:
    from hip_devicelib import find_rocm
    from hip_devicelib.errors import NotFoundError

    try:
        root = find_rocm().root
    except NotFoundError as error:
        return f"none: {error}"
    told = _read(Path(root) / ".info" / "version")
    return f"{told or 'no version told'}, {root}"


def _system() -> str:
    names = [
        line.partition("=")[2].strip('"')
        for line in _read(Path("/etc/os-release")).splitlines()
        if line.startswith("PRETTY_NAME=")
    ]
    return names[0] if names else "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(describe()))
