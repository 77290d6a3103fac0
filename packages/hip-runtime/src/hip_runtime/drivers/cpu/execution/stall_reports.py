"""Reports of stalled kernels, whose threads repeat the same instructions with the same values.

The watcher samples all threads that have been in one call of a worker for some time. A kernel that computes has
different numbers in the processor's registers each time; one that waits for a write that never comes returns to the
same state.
"""

from __future__ import annotations

import ctypes
import math
import threading
import warnings
import weakref
from collections.abc import Iterator, Sequence

from hip_runtime import config
from hip_runtime.drivers.cpu.abi.launch_frame import FAULT_FIELDS
from hip_runtime.drivers.cpu.abi.thread_states import describe_states, state_bytes
from hip_runtime.drivers.cpu.execution.thread_slots import SAMPLES
from hip_runtime.drivers.cpu.object_code.program import Program
from hip_runtime.errors import StalledKernelWarning
from hip_runtime.said_names import our

FEWEST = SAMPLES // 16
"""Samples that tell something; there are fewer where the thread was elsewhere, or the machine busy."""

REPEATED, LEAST = 0.1, 4
"""Part and number of the samples that must be like earlier ones: threads that take turns go round many states."""

_MOST = 8
"""Blocks that are named."""

_ADVICE_ON_READS = "; a loop that waits for memory reads it once, unless it has an atomic operation or {}() in it"
"""Said where no loop was found in which threads wait for memory."""


class _Sample(ctypes.Structure):
    """A `slots.SAMPLE` in memory."""

    _fields_ = (("counter", ctypes.c_uint64), ("state", ctypes.c_uint64))


class _Record(ctypes.Structure):
    """A `slots.RECORD` in memory."""

    _fields_ = (
        ("place", ctypes.c_uint64 * 64),
        ("frame", ctypes.c_uint64),
        ("outer", ctypes.c_uint64),
        ("chunk", ctypes.c_int64),
        ("memory", ctypes.c_uint64),
        ("states", ctypes.c_uint64),
        ("kept", ctypes.c_uint64),
    )


class _Slot(ctypes.Structure):
    """A `slots.SLOT` in memory."""

    _fields_ = (
        ("record", ctypes.c_uint64),
        ("runs", ctypes.c_uint64),
        ("running", ctypes.c_uint64),
        ("thread_state", ctypes.c_uint64),
        ("launch", ctypes.c_uint64),
        ("thread", ctypes.c_int32),
        ("poked", ctypes.c_int32),
        ("stop", ctypes.c_int32),
        ("late", ctypes.c_int32),
        ("abandoned", ctypes.c_uint64),
        ("seen", ctypes.c_uint64),
        ("ticks", ctypes.c_int32),
        ("due", ctypes.c_int32),
        ("polled", ctypes.c_uint64),
        ("program", ctypes.c_uint64),
        ("sampled", ctypes.c_uint64),
        ("samples", ctypes.c_uint64),
        ("stack", ctypes.c_uint64),
        ("kept", ctypes.c_uint64),
        ("next", ctypes.c_uint64),
    )

    def taken(self) -> Sequence[_Sample]:
        """The samples that were taken of the thread."""
        return (_Sample * min(self.sampled, SAMPLES)).from_address(self.samples) if self.samples else ()

    def stands_still(self) -> bool:
        """Whether the thread returns to a state that it had before."""
        samples = self.taken()
        count = len(samples)
        if count < FEWEST:
            return False
        different = {(sample.counter, sample.state) for sample in samples}
        found: bool = count - len(different) >= max(REPEATED * count, LEAST)
        return found


class _Frame(ctypes.Structure):
    """The start of a `launch_frame.FRAME` in memory."""

    _fields_ = (
        ("next_block", ctypes.c_int64),
        ("fault_taken", ctypes.c_int32),
        ("fault", ctypes.c_int32 * len(FAULT_FIELDS)),
        ("block_count", ctypes.c_int64),
        ("arguments", ctypes.c_uint64),
        ("grid", ctypes.c_int32 * 3),
    )


class Reporter:
    """Called on a thread whose launch may be stalled; warns if it is. *first* is the location of the first slot's
    address."""

    def __init__(self, first: int) -> None:
        self._first = first
        self.seconds = 0
        self.ticks = 0
        """As many as `seconds` have."""
        self.threads = 1
        """On how many threads of the processor a launch runs."""
        self._told: tuple[tuple[int, int], ...] = ()

    def __call__(self) -> None:
        slots = list(self._slots())
        own = next((slot for slot in slots if slot.thread == threading.get_native_id()), None)
        if own is None or not own.launch:
            return
        busy = [slot for slot in slots if slot.running == own.launch and slot.record]
        if own.polled:
            busy.append(own)
        program = programs.get(own.program)
        counters = {sample.counter for slot in busy for sample in slot.taken()}
        if busy and program is not None and all(slot.ticks >= self.ticks and slot.stands_still() for slot in busy):
            calls = tuple((slot.thread, slot.runs) for slot in busy)
            if calls == self._told:
                return
            self._told = calls
            records = {record.chunk: record for record in (_record_of(slot) for slot in busy)}
            threads = next((text for _, record in sorted(records.items()) if (text := _describe(program, record))), "")
            grid = _Frame.from_address(own.launch).grid
            more = "" if program.context_bytes else self._advise_on_blocks(math.prod(grid))
            reads = (
                "" if any(record.states for record in records.values()) else _ADVICE_ON_READS.format(our("threadfence"))
            )
            message = self._describe(program, sorted(records), sorted(counters), threads + reads + more)
            warnings.warn(message, StalledKernelWarning, stacklevel=2)

    def _describe(self, program: Program, blocks: list[int], counters: list[int], threads: str) -> str:
        place = "" if program.describe_place is None else program.describe_place(counters)
        where = f" ({place})" if place else ""
        numbers = ", ".join(map(str, blocks[:_MOST])) + (", ..." if len(blocks) > _MOST else "")
        which = f"block {numbers}" if len(blocks) == 1 else f"blocks {numbers}"
        return (
            f"kernel {program.kernel_name!r}{where}: no block has ended for {self.seconds} s; in {which}, counted "
            "along x first, the same instructions are run with the same values again and again, as by threads that "
            f"wait for what no other thread writes{threads}. Ctrl-C ends a launch on the default stream, "
            f"Stream.abort() one on another; {config.cpu_stall_seconds.variable} says when this is looked for"
        )

    def _advise_on_blocks(self, launched: int) -> str:
        """What is said of a grid of so many blocks, if not all of them run at the same time."""
        if launched <= self.threads:
            return ""
        return (
            f". Of the {launched} blocks that were launched, the CPU device runs {self.threads} at the same time, so a "
            "block that waits for one that has not begun waits for ever, as on a GPU that is too small: wait for the "
            f"grid by {our('cg')}.this_grid().sync(), launch at most {self.threads} blocks, or set "
            f"{config.cpu_threads.variable} to {launched} before the first launch"
        )

    def _slots(self) -> Iterator[_Slot]:
        address = ctypes.c_uint64.from_address(self._first).value
        while address:
            slot = _Slot.from_address(address)
            yield slot
            address = slot.next


def _record_of(slot: _Slot) -> _Record:
    """The record of the worker call that the thread of *slot* is in."""
    return _Record.from_address(slot.record or slot.polled)


def _describe(program: Program, record: _Record) -> str:
    """A description of what the threads of *record*'s block wait for, if that is known and some wait."""
    if not record.states:
        return ""
    kind = ctypes.c_uint8 if state_bytes(len(program.point_kinds)) == 1 else ctypes.c_uint16
    states = (kind * math.prod(program.block)).from_address(record.states)
    text = describe_states(list(states), program.point_kinds, program.locations)
    return f" (block {record.chunk}: {text})" if text else ""


programs: weakref.WeakValueDictionary[int, Program] = weakref.WeakValueDictionary()
"""Programs by the address that launches know."""
