"""Exceptions that kernels raise, as the host sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hip_runtime.errors import KernelFault
from numba_hip.dispatch.index_faults import MESSAGE, IndexRecord, describe_index
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
        if isinstance(first, str) and first.startswith(MESSAGE):
            found = _find_index(reported, record)
            first = first if found is None else found + first.removeprefix(MESSAGE)
        message = f"{place}: {first}" if first != "" else place
        if fault.location is not None:
            message += f" ({fault.location})"
        return fault.exception(message, *others)

    return describe


def _find_index(reported: KernelFault, record: IndexRecord | None) -> str | None:
    """Which index was out of range, in words, where that is known."""
    if reported.details:
        return describe_index(*reported.details[:3])
    if record is None:
        return None
    known = reported.__dict__  # the record is for one fault at a time, and a fault may be described again
    if known.get("found_index") is None:
        known["found_index"] = record.find(reported)
    found: str | None = known["found_index"]
    return found
