"""Whether there is an AMD GPU, as hip-python reports it: its import works without ROCm, its first call does not.

`probe` never raises: what it finds out is a `Probe`.
"""

from __future__ import annotations

import enum
import os
import re
import warnings
from dataclasses import dataclass
from typing import Any

from hip_runtime.drivers.hip.library import start

HIP_ERROR_NO_DEVICE = 100
"""``hipErrorNoDevice`` of ``hip/hip_runtime_api.h``."""

KFD = "/dev/kfd"
"""The device file of the kernel's driver for computing on AMD GPUs."""

VISIBILITY = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
"""Environment variables that keep GPUs from the runtime."""


class State(enum.Enum):
    """What keeps AMD GPUs from being used, if anything."""

    NOT_INSTALLED = "hip-python is not installed"
    NO_RUNTIME = "the HIP runtime library is not there"
    NO_DEVICE = "there is no AMD GPU"
    BROKEN = "the HIP runtime is there, but does not work"
    FOUND = "there are AMD GPUs"


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found. ``reason`` is a clause for people; ``devices`` is the number of GPUs."""

    state: State
    reason: str
    devices: int = 0


def probe() -> Probe:
    """Ask the HIP runtime for its devices."""
    try:
        hip = import_hip()
    except ModuleNotFoundError as error:
        if error.name not in ("hip", "hip.hip"):
            return Probe(State.BROKEN, f"hip-python cannot be imported: {error}")
        return Probe(
            State.NOT_INSTALLED,
            "hip-python is not installed (install the extra for your ROCm, such as hip-runtime[rocm_7_2_0])",
        )
    except Exception as error:
        return Probe(State.BROKEN, f"hip-python cannot be imported: {type(error).__name__}: {error}")
    try:
        return _count(hip)
    except Exception as error:
        if isinstance(error, RuntimeError) and "failed to dlopen" in str(error):
            # Up to 10.0 hip-python puts names into its text as Python writes bytes.
            reason = re.sub(r"b'([^']*)'", r"\1", str(error))
            return Probe(State.NO_RUNTIME, f"no HIP runtime library was found ({reason})")
        return Probe(State.BROKEN, f"the HIP runtime does not work: {type(error).__name__}: {error}")


def import_hip() -> Any:
    """The module ``hip`` of hip-python; ``import hip.hip`` works up to 7.2 only.

    Some releases are compiled when they are first imported with warnings about their own text, which are nobody's here.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from hip import hip
    return hip


def _count(hip: Any) -> Probe:
    status = _first(start(hip))
    devices = 0
    if int(status) == 0:
        answer = hip.hipGetDeviceCount()
        status = _first(answer)
        devices = int(answer[1]) if int(status) == 0 else 0
    if int(status) not in (0, HIP_ERROR_NO_DEVICE):
        # The status is an enum that knows its own name; hipGetErrorName gives wrong ones.
        return Probe(State.BROKEN, f"the HIP runtime answers {getattr(status, 'name', 'error')} ({int(status)})")
    if devices < 1:
        return _explain_no_device()
    return Probe(State.FOUND, f"the HIP runtime finds {devices} AMD GPU{'s' * (devices > 1)}", devices)


def _explain_no_device() -> Probe:
    """Explain that the runtime found no GPU: it gives the same answer if there is none and if this process may not use
    it."""
    reason = "the HIP runtime finds no AMD GPU"
    if os.path.exists(KFD) and not os.access(KFD, os.R_OK | os.W_OK):
        return Probe(
            State.BROKEN,
            f"{reason}, and this user may not open {KFD}, through which it would: add the user to the groups that own "
            f"{KFD} and /dev/dri/renderD* (render, video)",
        )
    hiding = [f"{name}={os.environ[name]!r}" for name in VISIBILITY if name in os.environ]
    return Probe(State.NO_DEVICE, reason + (f" with {' and '.join(hiding)}" if hiding else ""))


def _first(answer: Any) -> Any:
    return answer[0] if isinstance(answer, tuple) else answer
