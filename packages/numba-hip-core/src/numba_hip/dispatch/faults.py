"""Exceptions that kernels raise, as the host sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hip_runtime.errors import KernelFault, MemoryFaultError, TrapError
from numba_hip import config
from numba_hip.dispatch.index_faults import MESSAGE, IndexRecord, describe_index
from numba_hip.targets.callconv import Fault


def exception_describer(
    faults: Mapping[int, Fault], record: IndexRecord | None = None, place: str = ""
) -> Callable[[KernelFault], BaseException]:
    """A function that turns what a device reports into the exception that the kernel raised.

    *record* is where a kernel with bounds checks notes indices on the CPU device; an AMD GPU reports them itself.
    *place* is where the kernel stands.

    The message starts with the thread and the block that raised first, as Numba CUDA's does:
    ``tid=[x, y, z] ctaid=[x, y, z]: message``.
    """

    def describe(reported: KernelFault) -> BaseException:
        if isinstance(reported, TrapError):
            return _place_trap(reported, place, record)
        fault = faults.get(reported.code)
        if fault is None:
            return reported
        thread = f"tid={list(reported.thread)} ctaid={list(reported.block)}"
        first, *others = fault.arguments or ("",)
        if isinstance(first, str) and first.startswith(MESSAGE):
            found = _find_index(reported, record)
            first = first if found is None else found + first.removeprefix(MESSAGE)
        message = f"{thread}: {first}" if first != "" else thread
        if fault.location is not None:
            message += f" ({fault.location})"
        return fault.exception(message, *others)

    return describe


def place_of(function: Callable[..., object]) -> str:
    """Where *function* begins, ``file:line in name``, as the places of errors in it are written."""
    code = getattr(function, "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno} in {code.co_name}"


def _place_trap(reported: TrapError, place: str, record: IndexRecord | None) -> TrapError:
    """*reported* with what is known of the kernel, and with what to do."""
    reported.place = place
    if isinstance(reported, MemoryFaultError) and record is None:
        reported.advice = (
            f": jit(boundscheck=True), or {config.boundscheck.variable}=1 for all kernels, names array, index and line"
        )
    return reported


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
