"""Modules and functions: code objects on a device, and launches of their kernels."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from hip_devicelib.codeobject import CodeObject, Kernel
from hip_devicelib.errors import CodeObjectError
from hip_runtime.device import Device, current_device
from hip_runtime.driver import block_threads
from hip_runtime.errors import KernelFault, SymbolError
from hip_runtime.launch_limits import dim3
from hip_runtime.launches import Launch
from hip_runtime.stream import Stream


class Module:
    """A code object that is loaded on *device*; it is unloaded with the last reference to it and its functions."""

    def __init__(self, device: Device | None, code: CodeObject) -> None:
        self.device = current_device() if device is None else device
        self.code = code
        driver = self.device.driver
        self.handle = driver.load_module(self.device.ordinal, code)
        self._functions: dict[str, Function] = {}
        self._finalizer = weakref.finalize(self, driver.unload_module, self.handle)
        self._finalizer.atexit = False
        self._last_calls: list[Callable[[Module], object]] = []
        self._teardown: weakref.finalize[Any, Any] | None = None

    def function(self, name: str) -> Function:
        """A new `Function` for the kernel called *name*; `SymbolError` lists those that there are."""
        try:
            kernel = self.code.kernel(name)
        except CodeObjectError as error:
            raise SymbolError(str(error)) from None
        return Function(self, kernel)

    def global_variable(self, name: str) -> tuple[int, int]:
        """Address and bytes of a global variable; `SymbolError`."""
        return self.device.driver.get_global(self.handle, name)

    def before_unload(self, callback: Callable[[Module], object]) -> None:
        """Call *callback* with this module just before it is unloaded, at the latest when the process ends.

        The last of several is called first.
        """
        self._last_calls.append(callback)
        if self._teardown is None:
            # Finalizers are called when their object is gone; another one of the same handle stands for it. The last
            # one that was made is called first.
            self._teardown = weakref.finalize(self, _call_each, copy.copy(self), self._last_calls)

    def unload(self) -> None:
        """Unload the code now, once launches that have begun are done with it."""
        if self._teardown is not None:
            self._teardown()
        self._finalizer()


def _call_each(module: Module, callbacks: Sequence[Callable[[Module], object]]) -> None:
    """Call each of *callbacks*, the last first, whichever fails."""
    with ExitStack() as stack:
        for callback in callbacks:
            stack.callback(callback, module)


class FunctionAttributes(NamedTuple):
    """A kernel's resource usage, as far as its code shows it: vector registers and bytes of local memory of a thread,
    bytes of static shared memory of a block, and the largest number of threads of a block."""

    regs: int
    shared: int
    local: int
    const: int
    """0: constants lie with other global variables."""
    maxthreads: int


class Function:
    """One kernel of a module, to launch.

    ``describe_fault`` may be set by a layer above: it makes the exception to raise from a `KernelFault` of this
    function.
    """

    def __init__(self, module: Module, kernel: Kernel) -> None:
        self.module = module
        self.device = module.device
        self.kernel = kernel
        self.handle = self.device.driver.get_function(module.handle, kernel)
        self.describe_fault: Callable[[KernelFault], BaseException] | None = None

    @property
    def name(self) -> str:
        """The name of the kernel in its code object."""
        return self.kernel.name

    @property
    def attrs(self) -> FunctionAttributes:
        """The kernel's resource usage."""
        kernel = self.kernel
        most = min(kernel.max_block_threads, self.device.attributes.max_threads_per_block)
        return FunctionAttributes(kernel.vector_registers or 0, kernel.shared_bytes, kernel.private_bytes, 0, most)

    @property
    def form(self) -> str:
        """How the device runs the kernel, and why, for each block shape that was launched: one line each.

        Empty before the first launch and on devices that run a kernel in one way only.
        """
        forms = getattr(self.handle, "forms", {})
        return "\n".join(f"{block}: {form} ({reason})" for block, (form, reason) in forms.items())

    def keep_code(self, directory: Path, variable: str) -> None:
        """Cache in *directory* the machine code that is generated when the kernel is launched, for other processes.

        Devices that generate no code cache nothing. *variable* is the setting that warnings mention. If the directory
        cannot be used, or others can write to it, nothing is cached, and a `RuntimeWarning` says so.
        """
        keep = getattr(self.handle, "keep_code", None)
        if keep is not None:
            keep(directory, variable)

    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        arguments: bytes,
        *,
        stream: Stream | int | None = None,
        dynamic_shared: int = 0,
        cooperative: bool = False,
        owners: object = None,
    ) -> None:
        """Launch over *grid* blocks of *block* threads (1 to 3 extents each, x first).

        *arguments* are the packed parameters, as `Kernel.parameters` lays them out; *owners* is kept alive until the
        kernel is done. On the default stream the kernel has finished when this returns, and a fault of it is raised
        here. Raises `LaunchError` for an impossible configuration.
        """
        self.configure(grid, block, stream=stream, dynamic_shared=dynamic_shared, cooperative=cooperative)(
            arguments, owners
        )

    def configure(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *,
        stream: Stream | int | None = None,
        dynamic_shared: int = 0,
        cooperative: bool = False,
    ) -> Launch:
        """Check a configuration once, to launch with it many times."""
        return Launch(self, grid, block, stream, dynamic_shared, cooperative)

    def max_active_blocks(self, block: int | Sequence[int], dynamic_shared: int = 0) -> int:
        """How many blocks of the shape *block* a compute unit runs at a time."""
        threads = block_threads(dim3("block", block))
        return self.device.driver.max_active_blocks(self.handle, threads, dynamic_shared)
