"""Settings: one object per environment variable, typed and documented, read when it is used.

Tests replace a value temporarily with ``with config.device.scope("cpu"): ...``. A layer above may `preset` another
default, or let it `follow` a source; the environment itself is never written to.

A setting is registered when it is created, so each layer knows its own and those below. Variables that look like a
misspelt setting are reported when the devices are first used: by then all layers of a program are loaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from hip_runtime.errors import SettingError
from hip_runtime.setting_values import (
    byte_count,
    count,
    devices,
    dumps,
    one_of,
    ratio,
    switch,
    threads,
    vector_width,
    wave_size,
)

T = TypeVar("T")

PREFIX = "NUMBA_HIP_"
"""What the variables of all layers begin with."""

_LIKENESS = 0.6
"""How alike, from 0 to 1 as `difflib` counts, a name has to be to pass for another one that is misspelt."""

_variables: set[str] = set()

_set_variables: Mapping[bytes, bytes] | None = getattr(os.environ, "_data", None)
"""What `os.environ` looks in, if it has that: most settings are not set, and it takes an exception to say so, which is
half of the time that memory for an array takes."""


class Setting(Generic[T]):
    """A setting: the value of the environment variable *variable*, or *default* if that is not set.

    *parse* converts the text and raises `ValueError` with the allowed values; calling the setting returns its current
    value, or raises `SettingError` with the name of the variable.
    """

    def __init__(self, variable: str, documentation: str, parse: Callable[[str], T], default: Callable[[], T]) -> None:
        self.variable = variable
        self.__doc__ = documentation
        self._parse = parse
        self._default = default
        self._name = os.fsencode(variable)
        self._preset: Callable[[], T] | None = None
        self._override: ContextVar[tuple[T] | None] = ContextVar(variable, default=None)
        _variables.add(variable)

    def __call__(self) -> T:
        override = self._override.get()
        if override is not None:
            return override[0]
        if _set_variables is None or self._name in _set_variables:
            text = os.environ.get(self.variable, "").strip()
            if text:
                return self._read(text)
        return self._default() if self._preset is None else self._preset()

    def preset(self, value: T | None) -> None:
        """Set another default for all threads of the process; ``None`` restores the original one."""
        if value is None:
            self._preset = None
        else:
            chosen = self._check(value)
            self._preset = lambda: chosen

    def follow(self, source: Callable[[], T] | None) -> None:
        """Use *source*, called each time, as the default; ``None`` restores the original one."""
        self._preset = source

    @property
    def is_set(self) -> bool:
        """Whether a value was set explicitly."""
        return self._override.get() is not None or bool(os.environ.get(self.variable, "").strip())

    @contextmanager
    def scope(self, value: T | str) -> Iterator[None]:
        """Let the setting have *value* (text is read as if from the environment) in this context, then restore it.

        Raises `SettingError` for a value that is not valid in the environment either.
        """
        token = self._override.set((self._check(value),))
        try:
            yield
        finally:
            self._override.reset(token)

    def _check(self, value: T | str) -> T:
        if value is None and self._default() is None:
            return value
        if isinstance(value, frozenset):
            return self._read(",".join(sorted(value))) if value else self._default()
        return self._read(str(int(value)) if isinstance(value, bool) else str(value))

    def _read(self, text: str) -> T:
        try:
            return self._parse(text)
        except ValueError as error:
            raise SettingError(f"{self.variable}={text!r}: {error}") from None


code_scope: ContextVar[object] = ContextVar("code_scope", default=None)
"""The innermost scope of a `CodeSetting`, by which launches know that they may need other code."""


class CodeSetting(Setting[T]):
    """A setting that the machine code of the CPU device depends on."""

    @contextmanager
    def scope(self, value: T | str) -> Iterator[None]:
        """See `Setting.scope`. Kernels that were launched before have other code in it."""
        token = code_scope.set(object())
        try:
            with super().scope(value):
                yield
        finally:
            code_scope.reset(token)


def misspelt_variables() -> dict[str, str]:
    """Environment variables that are not settings, each with the name that was probably meant.

    A variable that resembles no known setting may belong to a layer that is not loaded, and is ignored.
    """
    others = [name[len(PREFIX) :] for name in sorted(set(os.environ) - _variables) if name.startswith(PREFIX)]
    if not others:
        return {}
    from difflib import get_close_matches

    known = sorted(name[len(PREFIX) :] for name in _variables if name.startswith(PREFIX))
    near = {name: get_close_matches(name, known, n=1, cutoff=_LIKENESS) for name in others}
    return {PREFIX + name: PREFIX + meant[0] for name, meant in near.items() if meant}


def usable_processors() -> int:
    """Processors that this process can keep busy; see `hip_runtime.processors`."""
    from hip_runtime import processors  # only needed when it is used

    return processors.usable_processors()


def physical_memory() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


device = Setting(
    "NUMBA_HIP_DEVICE",
    "Which devices there are: 'auto' (AMD GPUs where there are any, else the CPU device), 'hip' (AMD GPUs or an "
    "error), 'cpu' (the CPU device). Read when the devices are first asked for.",
    one_of("auto", "hip", "cpu"),
    lambda: "auto",
)

cpu_devices = Setting(
    "NUMBA_HIP_CPU_DEVICES",
    "How many CPU devices there are, by default 1: several have equal parts of the threads and of the memory, and "
    "streams of their own, so that programs for several GPUs run without any. Read when the devices are first asked "
    "for.",
    devices,
    lambda: 1,
)

cpu_threads = Setting(
    "NUMBA_HIP_CPU_THREADS",
    "How many threads of the processor the CPU device runs blocks on; by default as many as this process may use: "
    "those that it may run on, and no more than its control groups (a container's limit) give time for. Read when the "
    "first kernel is launched.",
    threads,
    usable_processors,
)

cpu_memory = Setting(
    "NUMBA_HIP_CPU_MEMORY",
    "Bytes of memory that the CPU device has, or several together (512M, 4G, ...); by default the physical memory of "
    "the machine. Read when the devices are first asked for.",
    byte_count,
    physical_memory,
)

cpu_wave_size = Setting(
    "NUMBA_HIP_CPU_WAVE_SIZE",
    "Lanes of a wave on the CPU device: 64, as on AMD's CDNA GPUs, or 32, as on RDNA GPUs and what CUDA calls a warp. "
    "Read when the attributes of the device are asked for, and when a kernel is loaded.",
    wave_size,
    lambda: 64,
)

cpu_form = CodeSetting(
    "NUMBA_HIP_CPU_FORM",
    "The form that kernels take on the CPU device: 'loop' (the threads of a block one after another; an error for "
    "kernels whose threads wait for one another), 'vectors' (several threads at a time, as lanes of vectors; kernels "
    "that cannot be run so fall to another form, with a reason), 'regions' (all threads from one barrier to the next), "
    "'auto' (the best that can run the kernel). Read when a kernel is first launched with a shape of blocks, or "
    "in another scope.",
    one_of("auto", "loop", "regions", "vectors"),
    lambda: "auto",
)

cpu_width: CodeSetting[int | None] = CodeSetting(
    "NUMBA_HIP_CPU_WIDTH",
    "How many threads the form 'vectors' runs at a time on the CPU device: a power of two up to 64, less where blocks "
    "are not as wide; by default 32 with AVX-512, 16 with AVX, else 8, or twice or half as many. Read when a "
    "kernel is first launched with a shape of blocks, or in another scope.",
    vector_width,
    lambda: None,
)

cpu_lanes: CodeSetting[str] = CodeSetting(
    "NUMBA_HIP_CPU_LANES",
    "Along which axis of a block neighbours run together on the CPU device, as lanes of vectors: 'x', 'y', 'z', or "
    "'auto' for the one along which memory is accessed in order. Kernels with operations of waves, and whose threads "
    "wait for one another in loops, are run along x. Read when a kernel is first launched with a shape of blocks, or "
    "in another scope.",
    one_of("auto", "x", "y", "z"),
    lambda: "auto",
)

cpu_async = Setting(
    "NUMBA_HIP_CPU_ASYNC",
    "1 lets launches on the default stream of the CPU device return before the kernel is done, as on a GPU: a missing "
    "synchronization shows. By default they return when it is done, which costs less. Read when the devices are first "
    "asked for.",
    switch,
    lambda: False,
)

cpu_races = Setting(
    "NUMBA_HIP_CPU_RACES",
    "1 makes the CPU device report, in every kernel, accesses of memory that race and reads of memory that nobody "
    "wrote: the launch raises RaceError; 'warn' makes it a warning, and the program goes on; the default is 0. AMD "
    "GPUs report nothing of the kind. Read when the devices are first asked for, and when a kernel is compiled and "
    "launched.",
    one_of("0", "1", "warn"),
    lambda: "0",
)

cpu_lockstep = CodeSetting(
    "NUMBA_HIP_CPU_LOCKSTEP",
    "1 lets the lanes of a wave do each access to memory together on the CPU device, as AMD GPUs do, at the price of "
    "speed; a kernel that cannot be run so is an error. The default is 0. Read when a kernel is first launched with a "
    "shape of blocks, or in another scope.",
    switch,
    lambda: False,
)

cpu_stall_seconds = Setting(
    "NUMBA_HIP_CPU_STALL_SECONDS",
    "After how many seconds without an end of a block the CPU device looks whether the threads of a kernel go round in "
    "circles, and warns if they do; by default 10, and 0 for never. Read when the first kernel is launched.",
    count,
    lambda: 10,
)

compile_notice = Setting(
    "NUMBA_HIP_COMPILE_NOTICE",
    "0 leaves out the line that says, on a terminal or in a notebook, that compiling a kernel takes more than 3 s, and "
    "what it is at. Read when a kernel is compiled.",
    switch,
    lambda: True,
)

dump: Setting[frozenset[str]] = Setting(
    "NUMBA_HIP_DUMP",
    "What to show of each kernel when it is compiled, separated by commas: 'ir' (LLVM IR, as it is handed to the "
    "device and optimised), 'asm' (assembly), and on the CPU device 'graph' (what machine code is written from, with "
    "how each value differs among lanes) and 'passes' (the graph after each pass). Machine code that was kept on disk "
    "is made anew meanwhile. Read when a kernel is compiled.",
    dumps,
    frozenset,
)

dump_directory = Setting(
    "NUMBA_HIP_DUMP_DIR",
    "The folder that NUMBA_HIP_DUMP writes files to, one for each kernel, block shape and kind; by default all is "
    "printed to standard error. Read when a kernel is compiled.",
    str,
    str,
)

verify_passes = Setting(
    "NUMBA_HIP_VERIFY",
    "1 checks the graph of each kernel after every pass of the CPU device's compiler, and raises an error that shows "
    "it where it is malformed: for those who change the compiler. The default is 0. Read when a kernel is compiled.",
    switch,
    lambda: False,
)

pending_releases = Setting(
    "NUMBA_HIP_PENDING_RELEASES",
    "How many allocations of a device may wait to be given back, together with later ones; by default 0: each is given "
    "back at once, which on AMD GPUs makes the driver wait for work now and then. Read when one is given back.",
    count,
    lambda: 0,
)

pending_release_ratio = Setting(
    "NUMBA_HIP_PENDING_RELEASE_RATIO",
    "Which part of a device's memory, 0 to 1, may wait to be given back; by default 0.2. Read when memory is given "
    "back.",
    ratio,
    lambda: 0.2,
)

array_interface_sync = Setting(
    "NUMBA_HIP_ARRAY_INTERFACE_SYNC",
    "0 leaves it to the program to wait for the stream that an array of another library names in its array interface; "
    "the default is 1: it is waited for. Read when such an array is taken over.",
    switch,
    lambda: True,
)

transpose_copies = Setting(
    "NUMBA_HIP_TRANSPOSE_COPIES",
    "1 makes the transpose of a device array of two axes a new array in C's order, as Numba CUDA's is; the default is "
    "0: a view of the same memory. Read when an array is transposed.",
    switch,
    lambda: False,
)

cpu_array_interface = Setting(
    "NUMBA_HIP_CPU_ARRAY_INTERFACE",
    "1 gives arrays of the CPU device a __cuda_array_interface__, which says of memory of the host that it is a GPU's, "
    "as programs for numba.cuda expect of all arrays, and lets NumPy have copies of them alone; the default is 0. Read "
    "when an array is asked for it.",
    switch,
    lambda: False,
)

SETTINGS: tuple[Setting[Any], ...] = (
    device, cpu_devices, cpu_threads, cpu_memory, cpu_wave_size, cpu_form, cpu_width, cpu_lanes, cpu_lockstep,
    cpu_async, cpu_races, cpu_stall_seconds, compile_notice, dump, dump_directory, verify_passes, pending_releases,
    pending_release_ratio, array_interface_sync, transpose_copies, cpu_array_interface,
)  # fmt: skip
"""All settings, for tools that list them."""
