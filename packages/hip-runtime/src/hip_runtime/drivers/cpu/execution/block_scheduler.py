"""The block scheduler of this process: it runs the blocks of launches, on the calling threads and the pool's helpers.

Its native code, see `block_dispatch`, is built and its threads are started by the first launch.
"""

from __future__ import annotations

import ctypes
import platform
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from hip_runtime import config
from hip_runtime.drivers.cpu.execution.block_dispatch import FAULT_RECORD, PYTHON_FUNCTIONS, build_dispatch
from hip_runtime.drivers.cpu.execution.previous_handlers import SIGNALS
from hip_runtime.drivers.cpu.execution.python_entry import CALL_SYMBOL, ENTRY_FUNCTIONS, callable_at
from hip_runtime.drivers.cpu.execution.python_signals import REPORT_SYMBOL
from hip_runtime.drivers.cpu.execution.signal_frames import this_machine
from hip_runtime.drivers.cpu.execution.signal_handlers import Handlers, note_libraries, observing
from hip_runtime.drivers.cpu.execution.stall_reports import Reporter
from hip_runtime.drivers.cpu.execution.thread_slots import FIRST_SYMBOL
from hip_runtime.drivers.cpu.execution.watcher import TICK
from hip_runtime.drivers.cpu.object_code import program
from hip_runtime.drivers.cpu.object_code.own_code import load_or_compile

_OWN_SIGNALS = {*SIGNALS, signal.SIGABRT}
"""What a helper brings upon itself, for a debugger or `faulthandler` to see, and what our threads send each other."""

_SYMBOLS = (
    CALL_SYMBOL, "spmd.start", "spmd.reset", "spmd.slots.prepare", "spmd.slots.renew", "spmd.traps.prepare",
    "spmd.watch", "spmd.abort", "spmd.trap", "spmd.poked", "spmd.chains", "spmd.libraries", FIRST_SYMBOL, REPORT_SYMBOL,
)  # fmt: skip


class BlockScheduler:
    """The native functions. ``call(program, arguments, x, y, z)`` returns 0, or the address of a fault for
    `take_fault`."""

    def __init__(self) -> None:
        for name in (*PYTHON_FUNCTIONS, *ENTRY_FUNCTIONS):
            llvm.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
        self._program = load_or_compile(lambda: build_dispatch(platform.machine()), _SYMBOLS)
        at = dict(zip(_SYMBOLS, self._program.entries, strict=True))
        # Called with Python's lock, which it lets go of itself.
        self.call = callable_at(at[CALL_SYMBOL])
        self._start = program.function_at(at["spmd.start"], ctypes.c_int, ctypes.c_int, ctypes.c_int)
        self._watch = program.function_at(at["spmd.watch"], ctypes.c_int, ctypes.c_int, ctypes.c_int)
        self._forgets = [program.function_at(at[name], None) for name in ("spmd.reset", "spmd.slots.renew")]
        self.abort = program.function_at(at["spmd.abort"], None, ctypes.c_int)
        for name in ("spmd.slots.prepare", "spmd.traps.prepare"):
            program.function_at(at[name], None)()
        self._reporter = Reporter(at[FIRST_SYMBOL])
        ctypes.c_void_p.from_address(at[REPORT_SYMBOL]).value = id(self._reporter)
        self.handlers: Handlers | None = None
        self._libraries = at["spmd.libraries"]
        if this_machine() is not None:
            note_libraries(self._libraries)
            self.handlers = Handlers(at["spmd.trap"], at["spmd.poked"], at["spmd.chains"])
            self.handlers.install()
        self.start()

    @contextmanager
    def observing(self, *functions: int) -> Iterator[None]:
        """Allow kernels to be interrupted also in their observers, *functions*, as in their own code."""
        if self.handlers is None:
            yield
            return
        with observing(self._libraries, functions):
            yield

    def reset(self) -> None:
        """In a forked child: forget all threads but this one."""
        for forget in self._forgets:
            forget()

    def start(self) -> None:
        """Start the helpers: one thread less than the setting says, the launching thread being one too. Each launch
        has the part of them that is its device's.

        Signals are for Python's own threads; helpers inherit that they get none from outside.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - _OWN_SIGNALS)
        try:
            threads = config.cpu_threads()
            wanted = threads - 1
            each = max(threads // config.cpu_devices(), 1)
            self.helpers = self._start(wanted, each - 1)
            self.stopped = False
            if self.handlers is not None:
                self._reporter.threads = min(each, self.helpers + 1)
                self._reporter.seconds = config.cpu_stall_seconds()
                self._reporter.ticks = self._reporter.seconds * 1_000_000_000 // TICK
                self._watch(threading.main_thread().native_id, self._reporter.ticks)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if self.helpers < wanted:
            warnings.warn(
                f"the system gave the CPU device {self.helpers + 1} threads instead of {wanted + 1}; "
                f"{config.cpu_threads.variable} sets how many are asked for",
                RuntimeWarning,
                stacklevel=2,
            )


@cache
def _free() -> Any:
    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = [ctypes.c_void_p], None
    return free


def take_fault(address: int) -> tuple[int, ...]:
    """The seven numbers of a fault, named in `FAULT_FIELDS`; the record at *address* is freed."""
    try:
        return FAULT_RECORD.unpack(ctypes.string_at(address, FAULT_RECORD.size))
    finally:
        _free()(address)


_lock = threading.Lock()
_dispatcher: BlockScheduler | None = None


def block_scheduler() -> BlockScheduler:
    """The block scheduler of this process, built and started by the first call; it is never freed, as its threads never
    end."""
    global _dispatcher
    with _lock:
        if _dispatcher is None:
            _dispatcher = BlockScheduler()
        elif _dispatcher.stopped:
            _dispatcher.start()
        return _dispatcher


def abort(thread: int) -> None:
    """End the current launch, if any, of the thread with the system's number *thread*, within its blocks."""
    if _dispatcher is not None:
        _dispatcher.abort(thread)


def renew_handlers() -> None:
    """See `Handlers.install`; called when compiling has taken long anyway."""
    if _dispatcher is not None and _dispatcher.handlers is not None:
        _dispatcher.handlers.install()


def restart() -> None:
    """In a forked child, which has none of the helpers: forget them; the next launch starts new ones."""
    global _lock
    _lock = threading.Lock()
    if _dispatcher is not None:
        _dispatcher.reset()
        _dispatcher.stopped = True
