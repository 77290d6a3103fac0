"""Stands for ``gpu_utils`` of numba-cuda-mlir's tests: the capabilities of the device."""

from __future__ import annotations

import sys

Capability = tuple[int, int]


def get_gpu_cc() -> Capability:
    """The compute capability of the current device."""
    import numba_hip

    major, minor = numba_hip.get_current_device().compute_capability
    return major, minor


def check_cc_min(least: Capability, feature: str = "This feature") -> tuple[bool, str | None]:
    """Whether to skip a test that needs *least*, and why."""
    found = get_gpu_cc()
    return (False, None) if found >= least else (True, f"{feature} requires CC {least}+, got {found}")


def check_cc_exact(exact: Capability, feature: str = "This feature") -> tuple[bool, str | None]:
    """Whether to skip a test that needs *exact*, and why."""
    found = get_gpu_cc()
    return (False, None) if found == exact else (True, f"{feature} requires CC {exact}, got {found}")


def require_cc_min(least: Capability, feature: str = "This feature") -> None:
    """End the program, successfully, if the device has a lower compute capability."""
    skipped, why = check_cc_min(least, feature)
    if skipped:
        print(f"SKIP: {why}")
        sys.exit(0)
