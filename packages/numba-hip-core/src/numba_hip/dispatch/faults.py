"""Exceptions that kernels raise, as the host sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hip_devicelib.codeobject import CodeObject
from hip_runtime.errors import KernelFault, MemoryFaultError, TrapError
from numba_hip import config
from numba_hip.abi.fault import Fault
from numba_hip.abi.index_record import MESSAGE
from numba_hip.dispatch.index_faults import IndexRecord, describe_index
from numba_hip.errors import FAULT_ATTRIBUTE


def exception_describer(
    faults: Mapping[int, Fault],
    record: IndexRecord | None = None,
    function: Callable[..., object] | None = None,
    compile_again: Callable[[], CodeObject] | None = None,
) -> Callable[[KernelFault], BaseException]:
    """A function that turns what a device reports into the exception that the kernel raised.

    *record* is where a kernel with bounds checks notes indices on the CPU device; an AMD GPU reports them itself.
    *function* is the kernel, and *compile_again* compiles it with line tables.

    The message starts with the thread and the block that raised first, as Numba CUDA's does:
    ``tid=[x, y, z] ctaid=[x, y, z]: message``.
    """

    def describe(reported: KernelFault) -> BaseException:
        if isinstance(reported, TrapError):
            return _place_trap(reported, record, function, compile_again)
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
        raised = fault.exception(message, *others)
        raised.__dict__[FAULT_ATTRIBUTE] = reported  # classes may not allow attributes to be set
        return raised

    return describe


def place_of(function: Callable[..., object]) -> str:
    """Where *function* begins, ``file:line in name``, as the places of errors in it are written."""
    code = getattr(function, "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno} in {code.co_name}"


def _place_trap(
    reported: TrapError,
    record: IndexRecord | None,
    function: Callable[..., object] | None,
    compile_again: Callable[[], CodeObject] | None,
) -> TrapError:
    """*reported* with what is known of the kernel, and with what to do."""
    if reported.find_line is not None and function is not None:
        line = "" if compile_again is None else _find_line(reported.find_line, compile_again)
        reported.place = f"{line} in {function.__name__}" if line else place_of(function)
        reported.find_line = None  # it may be described again
    if isinstance(reported, MemoryFaultError) and record is None:
        reported.advice = (
            f": jit(boundscheck=True), or {config.boundscheck.variable}=1 for all kernels, names array, index and line"
        )
    return reported


def _find_line(find: Callable[[Callable[[], CodeObject]], str], compile_again: Callable[[], CodeObject]) -> str:
    """The result of *find*. It may fail for any reason that compiling can fail for, and must not hide the fault
    itself."""
    try:
        return find(compile_again)
    except Exception:
        return ""


def _find_index(reported: KernelFault, record: IndexRecord | None) -> str | None:
    """Which index was out of range, in words, if that is known."""
    if reported.details:
        return describe_index(*reported.details[:3])
    if record is None:
        return None
    known = reported.__dict__  # the record is for one fault at a time, and a fault may be described again
    if known.get("found_index") is None:
        known["found_index"] = record.find(reported)
    found: str | None = known["found_index"]
    return found
