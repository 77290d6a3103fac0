"""Which instructions the processor of this machine has, of those that all but older ones of x86 have."""

from __future__ import annotations

import platform

import llvmlite.binding as llvm


def has_fma() -> bool:
    """Whether there is a fused multiply-add."""
    return _has("fma")


def has_rounding() -> bool:
    """Whether there is rounding to integers, as numbers."""
    return _has("sse4.1")


def _has(feature: str) -> bool:
    is_x86 = platform.machine().lower() in ("x86_64", "amd64", "i686", "i386")
    return not is_x86 or bool(llvm.get_host_cpu_features().get(feature))
