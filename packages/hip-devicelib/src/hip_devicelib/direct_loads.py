"""Loads from global memory into shared memory (LDS) that take no registers, of AMD's gfx9 GPUs.

The intrinsic is ``llvm.amdgcn.global.load.lds``. Each active lane *l* of a wave loads the bytes at an address of its
own. They are written behind an address of shared memory that is the same for the wave, at *l* times their number.
"""

from __future__ import annotations

import llvmlite.binding as llvm

from hip_devicelib.target import Target

INTRINSIC = "llvm.amdgcn.global.load.lds"
"""Of an address in global memory, one in shared memory, the bytes, and two constants, which are 0 here."""

_LLVM_THAT_WAITS = 22
"""The first release of LLVM whose barriers are known to wait for these loads: with LLVM 20 a release fence of a
work-group waits for stores to shared memory alone."""

_WAIT_FOR_LOADS = 0x0F70
"""The operand of ``s_waitcnt vmcnt(0)`` on gfx9, with no limit for the other counters."""


def direct_load_widths(target: Target) -> tuple[int, ...]:
    """The bytes that a lane of *target* can load at once, most first; none if it has no such loads."""
    if target.name == "gfx950":
        return (16, 4)
    return (4,) if target.name in ("gfx90a", "gfx942") else ()


def wait_operand() -> int | None:
    """The operand of ``llvm.amdgcn.s.waitcnt`` that has to follow the loads; None where LLVM's barriers wait."""
    return None if llvm.llvm_version_info[0] >= _LLVM_THAT_WAITS else _WAIT_FOR_LOADS
