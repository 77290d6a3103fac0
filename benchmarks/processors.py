"""Another processor than this one, for all code that is compiled for it: the kernels' and that of their peers in Numba.

``BENCHMARKS_PROCESSOR=haswell python -m benchmarks.user_kernels`` measures code for processors with AVX2 and without
AVX-512 on one that has both. Times are those of this processor.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

NAME = "BENCHMARKS_PROCESSOR"
"""The environment variable that names the processor; each process of a benchmark looks at it."""

_V2 = ("cx16", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2")

FEATURES = {
    "x86-64": (),
    "x86-64-v2": _V2,
    "haswell": (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
}
"""Names of LLVM, with the features that are asked for by name."""


class _Features(dict[str, bool]):
    """What LLVM tells of a processor: nothing beyond its name."""

    def flatten(self) -> str:
        """The features as LLVM takes them: those of the processor that is named."""
        return ""


def pretend_processor(name: str | None = None) -> None:
    """Have LLVM take this processor for the one with this *name*, or that the environment names, if it names one."""
    name = name or os.environ.get(NAME)
    if not name or find_spec("llvmlite") is None:  # as for a peer that is no Python
        return
    if name not in FEATURES:
        raise ValueError(f"{NAME} is {name!r}; it can be {', '.join(FEATURES)}")
    import llvmlite.binding as llvm

    features = _Features(dict.fromkeys(FEATURES[name], True))
    llvm.get_host_cpu_name = lambda: name
    llvm.get_host_cpu_features = lambda: features
