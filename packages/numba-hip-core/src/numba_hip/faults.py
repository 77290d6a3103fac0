"""Exceptions that kernels raise, as the host sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hip_runtime.errors import KernelFault
from numba_hip.index_faults import MESSAGE, IndexRecord, describe_index
from numba_hip.targets.callconv import Fault


def exception_describer(
    faults: Mapping[int, Fault], record: IndexRecord | None = None
) -> Callable[[KernelFault], BaseException]:
    """A function that turns what a device reports into the exception that the kernel raised.

    *record* is where a kernel with bounds checks notes indices on the CPU device; an AMD GPU reports them itself.

    The message starts with the thread and the block that raised first, as Numba CUDA's does:
    ``tid=[x, y, z] ctaid=[x, y, z]: message``.
    """

    def describe(reported: KernelFault) -> BaseException:
        fault = faults.get(reported.code)
        if fault is None:
            return reported
        place = f"tid={list(reported.thread)} ctaid={list(reported.block)}"
        first, *others = fault.arguments or ("",)
        if first == MESSAGE and reported.details:
            first = describe_index(*reported.details[:3])
        elif first == MESSAGE and record is not None:
            # The record is for one fault at a time, and a fault may be described again.
            known = reported.__dict__
            first = known["found_index"] = known.get("found_index") or record.find(reported) or MESSAGE
        message = f"{place}: {first}" if first != "" else place
        if fault.location is not None:
            message += f" ({fault.location})"
        return fault.exception(message, *others)

    return describe
