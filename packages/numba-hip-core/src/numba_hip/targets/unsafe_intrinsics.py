"""Intrinsics that our own lowering never calls, and that may make LLVM abort."""

from __future__ import annotations

from typing import Any

OWN_MACHINES = ("llvm.amdgcn.",)
"""Starts of intrinsics of a machine that our own lowering calls."""


def is_foreign(function: Any) -> bool:
    """Whether *function* of llvmlite is an intrinsic that only foreign lowering calls: a target-specific one, or one on
    which LLVM may abort."""
    name = function.name
    if not name.startswith("llvm.") or name.startswith(OWN_MACHINES):
        return False
    from hip_runtime.drivers.cpu.backend_limits import is_rare  # its tables are large, and not needed at import

    return is_rare(name, len(function.args))
