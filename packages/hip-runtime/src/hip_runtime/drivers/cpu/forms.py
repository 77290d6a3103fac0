"""Which form the code of a kernel takes on the CPU device, and why."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm

from hip_runtime.drivers.cpu.spmd.callgraph import Reach
from hip_runtime.errors import UnsupportedError

LOOP = "loop"
"""The threads of a block one after another: for kernels whose threads do not wait for one another."""

REGIONS = "regions"
"""The threads of a block region by region, cut at the operations at which they wait."""

VECTORS = "vectors"
"""Several threads at a time, as lanes of vectors: for kernels whose threads do not wait for one another."""

AUTO = "auto"
"""The best form that can run the kernel."""

FORMS = (AUTO, LOOP, REGIONS, VECTORS)

MOST_LANES = 16
"""Threads that one group of the form `VECTORS` has where nothing else is asked for."""


def choose_form(reach: Reach, wanted: str, loops: bool, width: int) -> tuple[str, str]:
    """The form for a kernel that reaches *reach*, and why; `UnsupportedError` where it cannot have the one *wanted*.

    *loops* is whether the kernel may have loops of its own, *width* how many lanes a group could have. LLVM makes
    vectors of the loop over the threads itself where the kernel has no loop of its own.
    """
    waiting = reach.operations
    if wanted == LOOP and waiting:
        raise UnsupportedError(
            f"the form {LOOP!r} cannot run a kernel that calls {', '.join(waiting)}; set NUMBA_HIP_CPU_FORM to "
            f"{AUTO!r} or {REGIONS!r}"
        )
    if wanted == REGIONS:
        return REGIONS, "NUMBA_HIP_CPU_FORM asks for it"
    if waiting:
        return REGIONS, f"the kernel calls {', '.join(waiting)}"
    if wanted != AUTO:
        return wanted, "NUMBA_HIP_CPU_FORM asks for it"
    if not loops:
        return LOOP, "no thread waits for another, and the kernel has no loop"
    if width < LEAST_LANES:
        return LOOP, f"no thread waits for another, and the blocks are {width} threads wide"
    return LOOP, "no thread waits for another, and the kernel has a loop"


LEAST_LANES = 4
"""Threads of a group below which vectors are not worth it."""


def choose_width(block_x: int, wanted: int | None) -> int:
    """Lanes of a group for blocks *block_x* threads wide: a power of two, *wanted* where the block has as many."""
    most = min(block_x, wanted or MOST_LANES)
    return 1 << (most.bit_length() - 1)


def may_loop(module: Any) -> bool:
    """Whether some function of *module* has a branch to a block that does not stand behind it."""
    for function in module.functions:
        seen = set()
        for block in function.blocks:
            seen.add(block)
            *_, last = block.instructions
            if any(operand.value_kind is llvm.ValueKind.basic_block and operand in seen for operand in last.operands):
                return True
    return False
