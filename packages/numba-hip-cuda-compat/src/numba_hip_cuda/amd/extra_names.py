"""Names of `numba.hip` that a posed `numba.cuda` also has, as in AMD's numba-hip one can stand for the other."""

from __future__ import annotations

import numba_hip
from numba_hip.language import hip_extensions
from numba_hip.language.hip_functions import find
from numba_hip_cuda.amd.catalog import HIP, MODULES


def __getattr__(name: str) -> object:
    known = name in vars(numba_hip) or name in numba_hip.LATE_NAMES or name in MODULES[HIP].names
    if not name.startswith("_") and (known or hip_extensions.find(name) or find(name)):
        return getattr(numba_hip, name)
    raise AttributeError(name)  # the caller adds what may have been meant
