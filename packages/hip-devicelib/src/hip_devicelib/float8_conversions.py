"""Instructions of AMD GPUs that make a float of 8 bits a float32, and the opposite.

A GPU has them for two formats: gfx942 for those without infinities and negative zero, later ones for those of the Open
Compute Project. They round to the nearest, ties to even, in every mode. What becomes of numbers that are too large is
a matter of the mode, so those have to be cut before.
"""

from __future__ import annotations

from hip_devicelib.target import Target

_WITHOUT_INFINITIES = frozenset({"gfx942"})
_OPEN = frozenset({"gfx950", "gfx1200", "gfx1201", "gfx12-generic"})

_NAMES = {"float8_e4m3": "fp8", "float8_e5m2": "bf8"}
"""LLVM's names, by the beginning of those of ml_dtypes."""


def float8_names(target: Target) -> dict[str, str]:
    """The formats (as ml_dtypes names them) that *target* converts, with LLVM's names for them; empty if there are
    none."""
    if target.name in _WITHOUT_INFINITIES:
        return {f"{name}fnuz": short for name, short in _NAMES.items()}
    if target.name in _OPEN:
        return {"float8_e4m3fn": "fp8", "float8_e5m2": "bf8"}
    return {}


def widening_intrinsic(short: str) -> str:
    """LLVM's intrinsic for the float32 that a float of 8 bits is: of an i32, and the number of the byte in it."""
    return f"llvm.amdgcn.cvt.f32.{short}"


def narrowing_intrinsic(short: str) -> str:
    """LLVM's intrinsic for two floats of 8 bits: of two float32, an i32 that they are put in, and whether into its
    upper half."""
    return f"llvm.amdgcn.cvt.pk.{short}.f32"
