"""Code objects on HIP devices."""

from __future__ import annotations

import threading
import weakref
from contextlib import ExitStack
from ctypes import byref, c_char_p, c_size_t, c_void_p, cast, pointer
from typing import Any

import numpy as np

from hip_devicelib.codeobject import CPU_TARGET, CodeObject, Kernel
from hip_devicelib.elf import read_elf
from hip_devicelib.errors import DevicelibError
from hip_devicelib.kernel_metadata import read_target
from hip_devicelib.target import STACK_BYTES, TARGETS, parse_target
from hip_runtime.drivers.hip.calls import Calls
from hip_runtime.drivers.hip.errors import NOT_FOUND
from hip_runtime.drivers.hip.faults import FaultRecord, Write, find_record
from hip_runtime.errors import ModuleLoadError, SymbolError, UnsupportedError

_STACK_SIZE = 0
"""``hipLimitStackSize``"""


class HipModule:
    """A code object that is loaded on *device*, which is the current one and runs *target*."""

    def __init__(self, calls: Calls, write: Write, device: int, target: str, code: CodeObject) -> None:
        check_code(code, target)
        self.device = device
        self.code = code
        """Kept: the runtime may still read the image."""
        self.unloaded = False
        self.users: weakref.WeakSet[Any] = weakref.WeakSet()
        """What still runs its kernels: graphs."""
        self._calls = calls
        self._write = write
        self._lock = threading.Lock()
        self._records: dict[str, FaultRecord | None] = {}
        place = c_void_p()
        calls.call("hipModuleLoadData", byref(place), code.image)
        self.handle = place.value or 0

    def fault_record(self, kernel: str) -> FaultRecord | None:
        """Where *kernel* leaves its faults; ``None`` if it has none."""
        with self._lock:
            if kernel not in self._records:
                self._records[kernel] = find_record(self._calls, self._write, self.handle, kernel)
            return self._records[kernel]

    def global_variable(self, name: str) -> tuple[int, int]:
        """Address and bytes of a global variable; `SymbolError`."""
        self.check_loaded()
        place, size = c_void_p(), c_size_t()
        code = self._calls.hipModuleGetGlobal(byref(place), byref(size), self.handle, name.encode())
        if code == NOT_FOUND:
            self._calls.hipGetLastError()
            raise SymbolError(f"the code object for {self.code.target} has no global variable {name!r}")
        if code:
            raise self._calls.error("hipModuleGetGlobal", code)
        return place.value or 0, size.value

    def check_loaded(self) -> None:
        """Raise `ModuleLoadError` if the module was unloaded."""
        if self.unloaded:
            names = ", ".join(kernel.name for kernel in self.code.kernels)
            raise ModuleLoadError(f"the module with {names} was unloaded; load its code object again")

    def release(self) -> None:
        """Unload now: all work of the device is done."""
        handle, self.handle = self.handle, 0
        with ExitStack() as stack:  # all of it, even if something fails
            stack.callback(self._calls.call, "hipModuleUnload", handle)
            for record in filter(None, self._records.values()):
                stack.callback(record.release)
            self._records.clear()


class HipKernel:
    """A kernel of a module."""

    __slots__ = ("_offsets", "_size", "device", "handle", "kernel", "module", "nbytes", "record", "size_place")

    def __init__(self, calls: Calls, module: HipModule, kernel: Kernel) -> None:
        module.check_loaded()
        self.module = module
        self.device = module.device
        self.kernel = kernel
        place = c_void_p()
        code = calls.hipModuleGetFunction(byref(place), module.handle, kernel.name.encode())
        if code == NOT_FOUND:
            calls.hipGetLastError()
            raise SymbolError(f"the code object for {module.code.target} has no kernel {kernel.name!r}")
        if code:
            raise calls.error("hipModuleGetFunction", code)
        self.handle = place.value or 0
        self.nbytes = kernel.argument_bytes
        self._size = c_size_t(kernel.argument_bytes)
        self.size_place = pointer(self._size)
        """What the runtime is told of the size of packed arguments: where it is."""
        self._offsets = np.array([parameter.offset for parameter in kernel.parameters], np.uintp)
        if kernel.has_dynamic_stack:
            provide_stack(calls, kernel)
        self.record = module.fault_record(kernel.name)

    def addresses(self, arguments: bytes) -> np.ndarray[Any, Any]:
        """Where each argument is in the buffer *arguments*, which must live as long as this is used."""
        start = cast(c_char_p(arguments), c_void_p).value or 0
        places: np.ndarray[Any, Any] = self._offsets + np.uintp(start)
        return places


def provide_stack(calls: Calls, kernel: Kernel) -> None:
    """Let threads of *kernel*, which the code cannot say the need of, have `STACK_BYTES` on the current device.

    The limit is one of the device and of this process. It concerns such kernels alone, and is not lowered.
    """
    if kernel.private_bytes > STACK_BYTES:
        raise UnsupportedError(
            f"kernel {kernel.name!r}: a thread needs {kernel.private_bytes} bytes for private arrays and calls even "
            f"without its recursion; the HIP runtime gives kernels with recursion {STACK_BYTES} in all: use smaller "
            "private arrays, or a loop"
        )
    limit = c_size_t()
    calls.call("hipDeviceGetLimit", byref(limit), _STACK_SIZE)
    if limit.value < STACK_BYTES:
        calls.call("hipDeviceSetLimit", _STACK_SIZE, STACK_BYTES)


def check_code(code: CodeObject, target: str) -> None:
    """Raise `ModuleLoadError` unless *code* is whole and runs on a device with the target ID *target*.

    The runtime is handed an address without a size, so nothing that is damaged may reach it.
    """
    if code.target == CPU_TARGET:
        raise ModuleLoadError(f"this code object is for the CPU device; this device needs code for {target}")
    try:
        if not read_elf(code.image).is_linked:
            raise ModuleLoadError(
                f"the image of this code object for {code.target} is a relocatable object, not linked: give it to "
                "hip_devicelib.link first"
            )
        if read_target(code.image) != parse_target(code.target).id:
            raise ModuleLoadError(f"the image of this code object for {code.target} is for {read_target(code.image)}")
    except DevicelibError as error:
        raise ModuleLoadError(f"cannot load this code object for {code.target!r}: {error}") from None
    if not runs_on(code.target, target):
        raise ModuleLoadError(f"this code object is for {code.target}; this device runs code for {target}")


def runs_on(target: str, device: str) -> bool:
    """Whether code for *target* runs on a device whose target ID is *device*.

    A feature that the code does not name is any, and code for a generic processor runs on all that it stands for
    (LLVM, "User Guide for AMDGPU Backend", Target ID and Generic Processors).
    """
    wanted, wanted_features = _split(target)
    name, features = _split(device)
    known = TARGETS.get(name)
    same = wanted == name or (known is not None and known.generic == wanted)
    return same and wanted_features <= features


def _split(target: str) -> tuple[str, frozenset[str]]:
    name, *features = target.split(":")
    return name, frozenset(features)
