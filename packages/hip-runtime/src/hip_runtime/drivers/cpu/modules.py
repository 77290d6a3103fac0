"""Loaded code objects of the CPU device: modules, and functions with their machine code for block shapes."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hip_devicelib.codeobject import CodeObject, Kernel
from hip_devicelib.collector import collector_paused
from hip_devicelib.errors import CacheError
from hip_devicelib.forking import compiling
from hip_devicelib.interrupts import interrupts_held
from hip_runtime import config
from hip_runtime.compile_notice import announced
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.abi.narrow_grids import Gangs
from hip_runtime.drivers.cpu.abi.thread_order import AXES
from hip_runtime.drivers.cpu.code_cache import CodeCache, settings_of_code
from hip_runtime.drivers.cpu.isolation import finalise_isolated, validate_code
from hip_runtime.drivers.cpu.loaded_programs import copy_loaded, note_loaded
from hip_runtime.drivers.cpu.object_code import program
from hip_runtime.errors import ModuleLoadError

_lock = threading.RLock()

_FARTHEST = 4
"""Times a likely argument that others have code for them, too."""


def renew_lock() -> None:
    """Replace the lock in a forked child, where the thread that held it does not exist."""
    global _lock
    _lock = threading.RLock()


class CpuModule:
    """A validated code object. Machine code is generated for each function when a block shape is first launched."""

    def __init__(self, code: CodeObject) -> None:
        validate_code(code)
        self.code = code
        self.unloaded = False
        self.functions: weakref.WeakSet[CpuFunction] = weakref.WeakSet()

    def unload(self) -> None:
        """Release the machine code. A launch that has begun holds its own program."""
        self.unloaded = True
        for function in list(self.functions):
            function.workers, function._made, function._resizable = {}, {}, {}


class CpuFunction:
    """One kernel, and its program for each block shape that it was launched with. Those of a *likely* one are for
    launches that pass its likely arguments only."""

    def __init__(self, module: CpuModule, kernel: Kernel, *, likely: bool = False) -> None:
        self.module = module
        self.kernel = kernel if likely else replace(kernel, likely_arguments=())
        self.likely = CpuFunction(module, kernel, likely=True) if kernel.likely_arguments and not likely else None
        """The same kernel for its likely arguments, if it has any."""
        self._others: CpuFunction | None = None
        self._by_gangs: dict[Gangs, CpuFunction] = {}
        self._gangs: Gangs | None = None
        """The gangs of its code, if they are not left to the compiler."""
        self.workers: dict[Dim3, program.Program] = {}
        """The last program for each block shape; another dictionary once the module was unloaded."""
        self._made: dict[tuple[object, ...], program.Program] = {}
        """Programs by the settings that they were made with, and block shapes."""
        self._kept: CodeCache | None = None
        self._resizable: dict[object, list[program.Program]] = {}
        """Programs for blocks of several lengths, by the settings that they were made with."""
        module.functions.add(self)

    @property
    def forms(self) -> dict[Dim3, tuple[str, str]]:
        """The form of its code (see `strategies.form_choice`) for each block shape it was compiled for, and why."""
        found = {block: (program.form, program.reason) for block, program in self.workers.items()}
        for other in filter(None, (self.likely, self._others)):
            found = {**found, **other.forms}
        return found

    def for_arguments(self, numbers: tuple[int, ...]) -> CpuFunction:
        """The function for launches that pass *numbers* where the likely arguments are: one for these; one for the
        first others, if none is far from what is likely, as of every second element; and this for any."""
        assert self.likely is not None
        likely = self.likely.kernel.likely_arguments
        if numbers == tuple(number for _, number in likely):
            return self.likely
        passed = tuple((position, number) for (position, _), number in zip(likely, numbers, strict=True))
        with _lock:
            if self._others is None and all(
                abs(number) <= _FARTHEST * usual for number, (_, usual) in zip(numbers, likely, strict=True)
            ):
                self._others = CpuFunction(
                    self.module, replace(self.likely.kernel, likely_arguments=passed), likely=True
                )
                if self._kept is not None:
                    self._others._kept = self._kept
        others = self._others
        return others if others is not None and others.kernel.likely_arguments == passed else self

    def with_gangs(self, gangs: Gangs) -> CpuFunction:
        """The same kernel with *gangs*."""
        with _lock:
            made = self._by_gangs.get(gangs)
            if made is None:
                made = self._by_gangs[gangs] = CpuFunction(self.module, self.kernel, likely=True)
                made._kept, made._gangs = self._kept, gangs
            return made

    def keep_code(self, directory: Path, variable: str) -> None:
        """Keep programs in *directory* from one process to the next, see `code_cache`."""
        if self.likely is not None:
            self.likely.keep_code(directory, variable)
        try:
            self._kept = CodeCache(directory, variable)
        except CacheError as error:
            warnings.warn(f"machine code is neither looked up nor kept: {error}", RuntimeWarning, stacklevel=2)

    def find(self, block: Dim3) -> program.Program | None:
        """The program for blocks of the shape *block* with the settings of this scope, if it was compiled."""
        return self._made.get((block, *settings_of_code()))

    def worker(self, block: Dim3) -> program.Program:
        """The same program, compiled at the first call."""
        with compiling, _lock, interrupts_held():
            if self.module.unloaded:
                raise ModuleLoadError(f"kernel {self.kernel.name!r}: its module was unloaded")
            made = self.find(block)
            if made is None:
                with collector_paused(), self._settings():
                    made = self._resize(block) or self._make(block)
                made.name_kernel(self.kernel.name)
                made.block = block
                key = (block, *settings_of_code())
                self._made[key] = self.workers[block] = made
            return made

    @contextmanager
    def _settings(self) -> Iterator[None]:
        """The settings that its code is made with."""
        if self._gangs is None:
            yield
            return
        width = self._gangs.width or config.cpu_width()
        with config.cpu_lanes.scope(AXES[self._gangs.axis]), config.cpu_width.scope(width):
            yield

    def _resize(self, block: Dim3) -> program.Program | None:
        """A program for blocks of another length that can run those of the shape *block*."""
        if config.dump():  # dumps and remarks need it compiled
            return None
        made = self._resizable.get(settings_of_code(), ())
        return next((one.resize(block) for one in made if one.lengths and one.lengths.fit(block)), None)

    def _make(self, block: Dim3) -> program.Program:
        made = copy_loaded(self.module.code, self.kernel, block)
        if made is None:
            make = finalise_isolated if self._kept is None else self._kept.finalise
            with announced(self.kernel.name, f"machine code for blocks of {block}"):
                made = make(self.module.code, self.kernel, block)
        note_loaded(self.module.code, self.kernel, block, made)
        if made.lengths is not None:
            self._resizable.setdefault(settings_of_code(), []).append(made)
            made = made.resize(block)
        return made
