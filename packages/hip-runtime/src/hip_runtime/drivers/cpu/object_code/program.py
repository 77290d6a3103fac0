"""Loaded machine code, and what is known of it."""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from hip_devicelib.llvm_context import make_context
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.abi.block_lengths import Lengths
from hip_runtime.drivers.cpu.abi.launch_frame import TIMED_ALONE, UNKNOWN_COST
from hip_runtime.drivers.cpu.abi.narrow_grids import NarrowGrids
from hip_runtime.drivers.cpu.abi.worker import PROGRAM_SYMBOL, WORKER_SYMBOL
from hip_runtime.drivers.cpu.object_code.host_machine import target_machine
from hip_runtime.drivers.cpu.object_code.line_table import LineTable
from hip_runtime.drivers.cpu.object_code.object_file import read_object


class Program:
    """Machine code that was loaded.

    ``image`` is the object file, ``entries`` the addresses of what it was compiled for, ``entry`` the first of them.
    The code is freed when the last reference goes.
    """

    __slots__ = (
        "__weakref__",
        "_engine",
        "_name",
        "_words",
        "block",
        "code_end",
        "code_start",
        "context_bytes",
        "describe_place",
        "entries",
        "entry",
        "form",
        "has_short_indices",
        "image",
        "kernel_name",
        "lengths",
        "lines",
        "locations",
        "made_for",
        "narrow",
        "point_kinds",
        "reason",
        "takes_dynamic_shared",
    )

    def __init__(self, image: bytes, entries: Sequence[str]) -> None:
        self.image = image
        self._engine = _load(image)
        self.entries = [int(self._engine.get_global_value_address(entry)) for entry in entries]
        self.entry = self.entries[0]
        self.code_start = self.code_end = 0
        if PROGRAM_SYMBOL in entries:
            self._note_code()
        self.form = self.reason = ""
        self.locations: tuple[str, ...] = ()
        self.point_kinds: tuple[int, ...] = ()
        """Where the points stand at which threads wait, and what they do there, see `thread_states`."""
        self.takes_dynamic_shared = False
        self.context_bytes = 0
        self._words: ProgramWords | None = None
        self.kernel_name = ""
        self.block: Dim3 = (1, 1, 1)
        """The shape of the blocks that it runs."""
        self.made_for: Dim3 = (1, 1, 1)
        """The shape of the blocks that it was compiled for: another one where it was resized."""
        self.lengths: Lengths | None = None
        """The lengths of blocks that `resize` can make it run."""
        self.narrow: NarrowGrids | None = None
        """Grids for which code with other gangs is better."""
        self.has_short_indices = False
        """Whether it may be launched over grids only whose indices have fewer than 32 bits, see `grid_rules`."""
        self.describe_place: Callable[[Sequence[int]], str] | None = None
        """Where in the source code at some addresses stands, as the layer above knows it."""
        self.lines: LineTable | None = None
        """See `source_lines`; made when first asked for."""

    def _note_code(self) -> None:
        """Find out where the machine code lies, and tell those who come across it in a signal handler."""
        words = ProgramWords.from_address(self.entry)
        image = read_object(self.image)
        worker = image.symbol(WORKER_SYMBOL)
        self.code_start = words.worker - worker.value
        self.code_end = self.code_start + image.sections[worker.section].size
        words.code_start, words.code_end = self.code_start, self.code_end

    def resize(self, block: Dim3) -> Program:
        """The same machine code for blocks of the shape *block*, one of `lengths`."""
        resized = copy.copy(self)
        words = ProgramWords.from_buffer_copy(ProgramWords.from_address(self.entry))
        words.cost, words.length = UNKNOWN_COST, block[0]
        words.helped_blocks, words.seen, words.untimed, words.pause = 0, 0, TIMED_ALONE, 0
        resized._words, resized.entry = words, ctypes.addressof(words)
        resized.entries = [resized.entry]
        resized.block, resized.describe_place = block, None
        return resized

    def name_kernel(self, name: str) -> None:
        """Say which kernel this is, for reports."""
        self.kernel_name = name
        self._name = ctypes.create_string_buffer(name.encode())
        ProgramWords.from_address(self.entry).name = ctypes.addressof(self._name)


class ProgramWords(ctypes.Structure):
    """A `launch_frame.PROGRAM` in memory."""

    _fields_ = (
        ("worker", ctypes.c_uint64),
        ("cost", ctypes.c_double),
        ("code_start", ctypes.c_uint64),
        ("code_end", ctypes.c_uint64),
        ("name", ctypes.c_void_p),
        ("limit", ctypes.c_uint64),
        ("serial", ctypes.c_int32),
        ("length", ctypes.c_int32),
        ("parts", ctypes.c_int32),
        ("words", ctypes.c_int32),
        ("together", ctypes.c_int32),
        ("axis", ctypes.c_int32),
        ("alone", ctypes.c_double),
        ("helped", ctypes.c_double),
        ("helped_blocks", ctypes.c_int64),
        ("seen", ctypes.c_int32),
        ("untimed", ctypes.c_int32),
        ("pause", ctypes.c_int32),
        ("patience", ctypes.c_int32),
    )


@cache
def _engine_context() -> Any:
    """The LLVM context of the empty modules that engines are made with. It outlives every engine: the garbage collector
    may dispose an engine after a context that went with it, and LLVM would then read freed memory."""
    return make_context()


def _load(image: bytes) -> Any:
    machine = target_machine.__wrapped__()  # an engine owns the target machine that it is given
    empty = llvm.parse_assembly("", _engine_context())
    empty.triple = machine.triple
    engine = llvm.create_mcjit_compiler(empty, machine)
    engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(image))
    engine.finalize_object()
    return engine


def function_at(address: int, result: Any, *arguments: Any) -> Any:
    """A function at *address* as something to call; the call lets other Python threads run."""
    return ctypes.CFUNCTYPE(result, *arguments)(address)
