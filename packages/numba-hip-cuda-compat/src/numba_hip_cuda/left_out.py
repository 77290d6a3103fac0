"""Which names of `numba.cuda` are left out, and why: data, which is read when somebody asks for one of them.

Names are those of numba-cuda 0.30. A test walks all that it has: each exists while posing, or is here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from numba_hip_cuda.catalog import CUDA


class Reason(NamedTuple):
    """Why there are not: whole *modules*, and *names* of others; without the beginning ``numba.cuda``."""

    why: str
    modules: str = ""
    names: str = ""


LEFT_OUT = (
    Reason(
        "NVVM is NVIDIA's compiler; kernels are compiled by LLVM here",
        modules="cudadrv.nvvm nvvm simulator.cudadrv.nvvm",
    ),
    Reason(
        "NVRTC is NVIDIA's compiler for C++; hip_devicelib compiles HIP C++",
        modules="cudadrv.nvrtc simulator.cudadrv.nvrtc",
    ),
    Reason("there are no CUDA libraries to look for", modules="cudadrv.libs simulator.cudadrv.libs"),
    Reason(
        "there is no CUDA runtime beneath; numba_hip.get_current_device() tells what there is",
        modules="cudadrv.runtime runtime",
    ),
    Reason("the conversions of this module are those of NVIDIA's header cuda_fp8.h", names="api.is_fp8_supported"),
)


@lru_cache(1)
def left_out() -> dict[str, str]:
    """The reason of each module and name that is left out, by its full name; that of a class's is ``Class.name``."""
    found = {}
    for reason in LEFT_OUT:
        for name in (*reason.modules.split(), *reason.names.split()):
            found[f"{CUDA}.{name}"] = reason.why
    return found


def reason(name: str) -> str | None:
    """Why *name*, or the module that it is in, is left out; ``None`` where it is not."""
    table = left_out()
    while name not in table:
        name, _, _ = name.rpartition(".")
        if len(name) <= len(CUDA):
            return None
    return table[name]
