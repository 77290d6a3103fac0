"""Which form the code of a kernel takes on the CPU device, and why."""

from __future__ import annotations

from hip_runtime.drivers.cpu.spmd.callgraph import Reach
from hip_runtime.errors import UnsupportedError

LOOP = "loop"
"""The threads of a block one after another: for kernels whose threads do not wait for one another."""

REGIONS = "regions"
"""The threads of a block region by region, cut at the operations at which they wait."""

AUTO = "auto"
"""The best form that can run the kernel."""

FORMS = (AUTO, LOOP, REGIONS)


def choose_form(reach: Reach, wanted: str) -> tuple[str, str]:
    """The form for a kernel that reaches *reach*, and why; `UnsupportedError` where it cannot have the one *wanted*."""
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
    return LOOP, "no thread waits for another" if wanted == AUTO else "NUMBA_HIP_CPU_FORM asks for it"
