"""The stand-in for the HIP runtime with the executor attached, in this process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tools.amd_executor.decoding import FAMILIES
from tools.amd_executor.hook import StandinExecutor

if TYPE_CHECKING:
    from hip_standin import Standin  # type: ignore[import-not-found]

MEMORY = 4 << 30
"""The memory of the device in bytes."""

_TESTS = Path(__file__).parents[2] / "packages" / "hip-runtime" / "tests"


class UnknownTargetError(ValueError):
    """The executor does not support code for this target."""


def attach(target: str) -> tuple[Standin, StandinExecutor]:
    """Make two devices of that target the only ones of this process. To be called before `numba_hip` is imported."""
    if target not in FAMILIES:
        raise UnknownTargetError(f"no code for {target!r} is executed: one of {', '.join(FAMILIES)}")
    os.environ.update(NUMBA_HIP_DEVICE="hip", STANDIN_TARGET=target, STANDIN_DEVICES="2", STANDIN_ALIKE="1")
    for name in ("LOW_OCCUPANCY", "IMPLICIT_COPY"):  # launches are small in tests, and use arrays of the host
        os.environ.setdefault(f"NUMBA_HIP_{name}_WARNINGS", "0")
    sys.path.append(str(_TESTS))
    import hip_standin

    hip_standin.MEMORY = MEMORY
    roots = {name: os.environ[name] for name in ("ROCM_PATH", "ROCM_HOME") if name in os.environ}
    standin = hip_standin.standin()
    os.environ.update(roots)  # hip-python must not look there; ROCm's device library is found through these variables
    executor = StandinExecutor(standin.ranges)
    standin.attach(executor)
    return standin, executor
