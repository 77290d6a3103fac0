"""``hip.libdevice``: HIP's functions by the names and in the manner of CUDA's libdevice.

``libdevice.sinf`` is HIP's ``sinf``, ``libdevice.popc`` its ``__popc``, ``libdevice.fast_sinf`` its ``__sinf``. Each
name has one function, not several overloads, and what it would write through pointers it returns: ``sincosf(x)`` is a
pair, ``modf(x)`` too. The names are those that NVIDIA's libdevice has; for arithmetic that rounds in a direction HIP
has no functions, it is that of `numba_hip.language.directed_rounding`, and a few are those of
`numba_hip.language.libdevice_numbers`:
https://docs.nvidia.com/cuda/libdevice-users-guide/function-desc.html
"""

from __future__ import annotations

from typing import Any

from hip_devicelib.declarations import FunctionDeclaration
from hip_devicelib.manifest import load_reference
from numba_hip.language.directed_rounding import find as find_directed
from numba_hip.language.hip_functions import HipFunction
from numba_hip.language.libdevice_numbers import find as find_number

RENAMED = {
    "isfinited": "__ocml_isfinite_f64",
    "isinfd": "__ocml_isinf_f64",
    "isnand": "__ocml_isnan_f64",
    "signbitd": "__ocml_signbit_f64",
}
"""Names that follow no rule."""


def __getattr__(name: str) -> Any:
    value: Any = find_directed(name) or find_number(name)
    if value is None:
        function = _find(name)
        if function is None:
            raise AttributeError(
                f"HIP has no counterpart of libdevice.{name}; 'hip-devicelib list' prints HIP's functions, which are "
                "hip.NAME in kernels"
            )
        value = HipFunction(name, (function,), __name__, returns_outputs=True)
    return globals().setdefault(name, value)


def _find(name: str) -> FunctionDeclaration | None:
    """HIP's function for libdevice's *name*: of overloads the first, which is that of the C library."""
    fast = name.startswith("fast_")
    candidates = (f"__{name[len('fast_') :]}",) if fast else (RENAMED.get(name, name), f"__{name}")
    by_name = load_reference().by_name
    return next((by_name[candidate][0] for candidate in candidates if candidate in by_name), None)
