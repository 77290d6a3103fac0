"""The forms that a kernel's code can take on the CPU device, which one it should take and why, and their limits."""

from __future__ import annotations

import llvmlite.binding as llvm

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.callgraph import Reach
from hip_runtime.drivers.cpu.analyses.cost_model import UnprofitableError
from hip_runtime.drivers.cpu.object_code.host_machine import vector_bytes
from hip_runtime.drivers.cpu.regions.storage import STACK_LIMIT
from hip_runtime.errors import UnsupportedError

LOOP = "loop"
"""The threads of a block one after another, for kernels whose threads do not wait for each other."""

REGIONS = "regions"
"""The threads of a block region by region, from one sync point to the next."""

VECTORS = "vectors"
"""A gang of threads at a time, as lanes of vectors, for kernels whose threads do not wait for each other."""

AUTO = "auto"
"""The fastest form that can run the kernel."""

CALLEES_STACK_LIMIT = 1 << 20
"""Bytes of stack that functions which are not inlined into the kernel may take."""

MIN_LANES = 4
"""The smallest gang that is worth it."""

_BYTES_PER_LANE = 2
"""By default a gang has twice as many threads as a vector register has 32-bit elements, so that one half can execute
while the other waits for a result. Half as many are slower in most kernels, twice as many in some."""


def choose_form(reach: Reach, requested_form: str, width: int) -> tuple[str, str]:
    """The form for a kernel with *reach*, and the reason; `UnsupportedError` if it cannot have *requested_form*.

    *width* is the number of lanes that a gang could have. If this chooses `VECTORS` by itself, `analyses.cost_model`
    decides in the end.
    """
    waiting = reach.waiting
    if reach.observed and requested_form == REGIONS:
        return REGIONS, "what its threads do is observed"
    if requested_form == LOOP and waiting:
        raise UnsupportedError(
            f"the form {LOOP!r} cannot run a kernel that calls {', '.join(waiting)}; set NUMBA_HIP_CPU_FORM to "
            f"{AUTO!r} or {REGIONS!r}"
        )
    if requested_form == REGIONS:
        return REGIONS, "NUMBA_HIP_CPU_FORM asks for it"
    if waiting:
        return REGIONS, f"the kernel calls {', '.join(waiting)}"
    if requested_form != AUTO:
        return requested_form, "NUMBA_HIP_CPU_FORM asks for it"
    if width < MIN_LANES:
        return LOOP, f"no thread waits for another, and gangs of {width} threads are too small for vectors"
    return VECTORS, "no thread waits for another"


def fit_stack(form: str, why: str, requested_form: str, nbytes: int, width: int) -> tuple[str, str, str]:
    """The form, its reason and *requested_form*, changed if *form* would exceed the stack, of which a thread needs
    *nbytes*. `UnsupportedError` if the request rules out a form that fits."""
    if form == VECTORS and nbytes <= STACK_LIMIT < nbytes * width:
        why = f"a gang of {width} threads would have {nbytes * width} bytes of private arrays on the stack"
        return LOOP, why, requested_form
    if form == REGIONS or nbytes <= STACK_LIMIT:
        return form, why, requested_form
    if requested_form == LOOP:
        raise UnsupportedError(
            f"the form {LOOP!r} keeps a thread's private arrays on the stack, at most {STACK_LIMIT} bytes, and this "
            f"kernel has {nbytes}; set NUMBA_HIP_CPU_FORM to {AUTO!r} or {REGIONS!r}, which keep them on the heap"
        )
    return REGIONS, f"the private arrays of a thread take {nbytes} bytes, too many for the stack", REGIONS


def check_private(kernel: str, nbytes: int) -> None:
    """`UnsupportedError` if *nbytes*, the private memory of a thread of *kernel*, exceeds the limit."""
    if nbytes > spmd.PRIVATE_BYTES:
        raise UnsupportedError(
            f"kernel {kernel!r} has private arrays of {nbytes} bytes for each thread; the CPU device takes at most "
            f"{spmd.PRIVATE_BYTES}: make them smaller, or pass arrays of the device"
        )


def check_callees(kernel: str, nbytes: int) -> None:
    """`UnsupportedError` if *nbytes*, the stack of the functions that *kernel* calls, exceeds the limit."""
    if nbytes > CALLEES_STACK_LIMIT:
        raise UnsupportedError(
            f"kernel {kernel!r} calls functions whose private arrays have {nbytes} bytes; the stack of the processor "
            f"takes at most {CALLEES_STACK_LIMIT}: make them smaller, or have them in the kernel and pass them on"
        )


def explain_refusal(error: UnsupportedError) -> str:
    """The reason for the form of a kernel that was to become vectors and did not."""
    if isinstance(error, UnprofitableError):
        return f"no thread waits for another; the form {VECTORS!r} would be slower: {error}"
    return f"the form {VECTORS!r} cannot run it: {error}"


def choose_width(block_x: int, requested: int | None) -> int:
    """Lanes of a gang for blocks of *block_x* threads along x: a power of two, at most *requested* or
    `default_lanes`."""
    fitting = min(block_x, requested or default_lanes())
    return 1 << (fitting.bit_length() - 1)


def has_vector_masks() -> bool:
    """Whether this processor's instructions on vectors take masks, so that LLVM makes vectors of branches."""
    features = llvm.get_host_cpu_features()
    return bool(features.get("avx512f") or features.get("sve"))


def default_lanes() -> int:
    """The default width of gangs on this processor."""
    return vector_bytes() // _BYTES_PER_LANE
