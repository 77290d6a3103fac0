"""What the CPU device's math has to know of the processor."""

from __future__ import annotations

import platform

import llvmlite.binding as llvm


def has_fma() -> bool:
    """Whether this processor has an instruction for a fused multiply-add: all but older ones of x86."""
    if platform.machine().lower() not in ("x86_64", "amd64", "i686", "i386"):
        return True
    return bool(llvm.get_host_cpu_features().get("fma"))
