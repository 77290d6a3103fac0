"""Which form the code of a kernel takes on the CPU device, and why."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.callgraph import Reach
from hip_runtime.drivers.cpu.analyses.cost_model import UnprofitableError
from hip_runtime.drivers.cpu.regions.storage import STACK_LIMIT
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

CALLEES_STACK_LIMIT = 1 << 20
"""Bytes of the stack that functions which are not part of the kernel's own code can take."""

LEAST_LANES = 4
"""Threads of a group below which vectors are not worth it."""

_BYTES_PER_LANE = 2
"""A group has twice as many threads as a vector register has numbers of 32 bits: while one half waits for a result, the
other goes on. Half as many are slower in most kernels, twice as many in some."""


def choose_form(reach: Reach, wanted: str, width: int) -> tuple[str, str]:
    """The form for a kernel that reaches *reach*, and why; `UnsupportedError` where it cannot have the one *wanted*.

    *width* is how many lanes a group could have. Where this chooses `VECTORS` by itself, the code of the kernel has
    the last word: see `analyses.cost_model`.
    """
    waiting = reach.waiting
    if reach.observed and wanted == REGIONS:
        return REGIONS, "what its threads do is observed"
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
    if width < LEAST_LANES:
        return LOOP, f"no thread waits for another, and groups of {width} threads are too small for vectors"
    return VECTORS, "no thread waits for another"


def fit_stack(form: str, why: str, wanted: str, nbytes: int, width: int) -> tuple[str, str, str]:
    """The form, the reason and what was *wanted*, changed where threads keep *nbytes* on the stack and *form* would
    take more of it than there may be. `UnsupportedError` where another form is not wanted."""
    if form == VECTORS and nbytes <= STACK_LIMIT < nbytes * width:
        why = f"{width} threads at a time would have {nbytes * width} bytes of private arrays on the stack"
        return LOOP, why, wanted
    if form == REGIONS or nbytes <= STACK_LIMIT:
        return form, why, wanted
    if wanted == LOOP:
        raise UnsupportedError(
            f"the form {LOOP!r} has the private arrays of a thread on the stack, at most {STACK_LIMIT} bytes, and this "
            f"kernel has {nbytes}; set NUMBA_HIP_CPU_FORM to {AUTO!r} or {REGIONS!r}, which have them elsewhere"
        )
    return REGIONS, f"the private arrays of a thread have {nbytes} bytes, too many for the stack", REGIONS


def check_private(kernel: str, nbytes: int) -> None:
    """`UnsupportedError` where a thread of *kernel* keeps more than there can be, *nbytes*."""
    if nbytes > spmd.PRIVATE_BYTES:
        raise UnsupportedError(
            f"kernel {kernel!r} has private arrays of {nbytes} bytes for each thread; the CPU device takes at most "
            f"{spmd.PRIVATE_BYTES}: make them smaller, or pass arrays of the device"
        )


def check_callees(kernel: str, nbytes: int) -> None:
    """`UnsupportedError` where what *kernel* calls, and was not inlined, keeps too much, *nbytes*, on the stack."""
    if nbytes > CALLEES_STACK_LIMIT:
        raise UnsupportedError(
            f"kernel {kernel!r} calls functions whose private arrays have {nbytes} bytes; the stack of the processor "
            f"takes at most {CALLEES_STACK_LIMIT}: make them smaller, or have them in the kernel and pass them on"
        )


def explain_refusal(error: UnsupportedError) -> str:
    """Why a kernel that was to be vectors is not, as the reason for its form."""
    if isinstance(error, UnprofitableError):
        return f"no thread waits for another; the form {VECTORS!r} would be slower: {error}"
    return f"the form {VECTORS!r} cannot run it: {error}"


def choose_width(block_x: int, wanted: int | None) -> int:
    """Lanes of a group for blocks *block_x* threads wide: a power of two, *wanted* (by default `most_lanes`) where the
    block has as many."""
    fitting = min(block_x, wanted or most_lanes())
    return 1 << (fitting.bit_length() - 1)


@cache
def most_lanes() -> int:
    """Threads of a group on this processor, where nothing else is asked for."""
    features = llvm.get_host_cpu_features()
    nbytes = 64 if features.get("avx512f") else 32 if features.get("avx") else 16
    return nbytes // _BYTES_PER_LANE
