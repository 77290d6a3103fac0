"""Faults of kernels: how code on a GPU reports that one of its threads stopped with an error.

A kernel ``k`` that can do so defines the global variable ``k.fault``, 16 bytes: the address of a record (filled in when
the kernel is taken from its module) and a 32-bit word that is 0 until a thread claims the fault. The record is 64 bytes
of host memory: eight 32-bit words, which are 1 once the others are written, the code, block x y z, thread x y z; and
four 64-bit numbers with details. The thread that changes the word from 0 to 1 writes the record; see
``docs/design/hip-driver.md``.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from ctypes import byref, c_size_t, c_void_p
from typing import Any

from hip_runtime.drivers.hip.calls import Calls
from hip_runtime.drivers.hip.errors import NOT_FOUND
from hip_runtime.errors import KernelFault, ModuleLoadError

_VARIABLE_BYTES = 16
_RECORD = struct.Struct("<8i4q")
_WORD_OFFSET = 8
HOST_MALLOC_PORTABLE = 1

Write = Callable[[int, bytes], None]
"""Writes bytes to an address of a device, which have got there when it returns."""


class FaultRecord:
    """The record in which one kernel of one module reports its fault."""

    def __init__(self, calls: Calls, write: Write, kernel: str, variable: int) -> None:
        self._calls = calls
        self._write = write
        self._kernel = kernel
        self._variable = variable
        place = c_void_p()
        calls.call("hipHostMalloc", byref(place), _RECORD.size, HOST_MALLOC_PORTABLE)
        self._address = place.value or 0
        self.describe: Callable[[Any], BaseException] | None = None
        """What makes the exception of a fault, given with the last launch."""
        ctypes.memset(self._address, 0, _RECORD.size)
        try:
            write(variable, struct.pack("<Qq", self._address, 0))
        except BaseException:
            self.release()
            raise

    def take(self) -> KernelFault | None:
        """The fault, if there is one, which is forgotten with that. The kernels that can have written it are done."""
        if not self._address:
            return None
        state, code, bx, by, bz, tx, ty, tz, *details = _RECORD.unpack(ctypes.string_at(self._address, _RECORD.size))
        if not state:
            return None
        fault = KernelFault(self._kernel, code, (bx, by, bz), (tx, ty, tz), tuple(details) if any(details) else ())
        fault.describe = self.describe
        ctypes.memset(self._address, 0, _RECORD.size)
        self._write(self._variable + _WORD_OFFSET, bytes(8))
        return fault

    @property
    def is_released(self) -> bool:
        """Whether the kernel never runs again."""
        return self._address == 0

    def release(self) -> None:
        """Give the record back; the kernel never runs again."""
        address, self._address = self._address, 0
        if address:
            self._calls.call("hipHostFree", address)


def find_record(calls: Calls, write: Write, module: int, kernel: str) -> FaultRecord | None:
    """The record of *kernel*, if its code can fault. The module's device must be the current one."""
    variable, size = c_void_p(), c_size_t()
    code = calls.hipModuleGetGlobal(byref(variable), byref(size), module, f"{kernel}.fault".encode())
    if code == NOT_FOUND:
        calls.hipGetLastError()
        return None
    if code:
        raise calls.error("hipModuleGetGlobal", code)
    if size.value != _VARIABLE_BYTES:
        raise ModuleLoadError(
            f"variable {kernel + '.fault'!r} has {size.value} bytes; a fault record has {_VARIABLE_BYTES}"
        )
    return FaultRecord(calls, write, kernel, variable.value or 0)


def described(fault: BaseException | None) -> BaseException | None:
    """The exception to raise for the fault that stopped work."""
    return fault.exception() if isinstance(fault, KernelFault) else fault


def raise_fault(fault: BaseException | None) -> None:
    """Raise *fault*, if there is one, as the code that launched the kernel describes it."""
    error = described(fault)
    if error is not None:
        raise error
