"""What machine code refers to that Numba compiled for the processor."""

from __future__ import annotations

from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

__all__ = ["provide_runtime"]


def provide_runtime() -> None:
    """Let LLVM find Numba's helpers and its memory management, as Numba's first compilation for the processor does."""
    rtsys.initialize(cpu_target.target_context)
