"""``hip.bf16``: `bfloat16` numbers in kernels, with operations under the names of CUDA and HIP.

``bfloat16(x)`` makes one; operators and Python's functions of a number work on them. `math` functions take one as a
float32; the functions here give a bfloat16. Arrays have dtype ``ml_dtypes.bfloat16`` on the host.
"""

from __future__ import annotations

from numba_hip.bfloat import bfloat16
from numba_hip.language.bf16 import numbers as _numbers  # noqa: F401 - enters operators and conversions
from numba_hip.language.bf16.conversions import CONVERSIONS
from numba_hip.language.bf16.functions import (
    COMPARISONS,
    FUNCTIONS,
    habs,
    hadd,
    hadd_rn,
    hadd_sat,
    hdiv,
    hexp10,
    hfma,
    hfma_relu,
    hfma_sat,
    hisinf,
    hisnan,
    hmax,
    hmax_nan,
    hmin,
    hmin_nan,
    hmul,
    hmul_rn,
    hmul_sat,
    hneg,
    hrcp,
    hrsqrt,
    hsub,
    hsub_rn,
    hsub_sat,
)
from numba_hip.language.stub import Stub

_TABLES = COMPARISONS | FUNCTIONS | CONVERSIONS


def __getattr__(name: str) -> Stub:
    try:
        return _TABLES[name]
    except KeyError:
        raise AttributeError(f"module 'hip.bf16' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *_TABLES})


__all__ = [
    "bfloat16", "habs", "hadd", "hadd_rn", "hadd_sat", "hdiv", "hexp10", "hfma", "hfma_relu", "hfma_sat", "hisinf",
    "hisnan", "hmax", "hmax_nan", "hmin", "hmin_nan", "hmul", "hmul_rn", "hmul_sat", "hneg", "hrcp", "hrsqrt", "hsub",
    "hsub_rn", "hsub_sat", *_TABLES,
]  # fmt: skip
