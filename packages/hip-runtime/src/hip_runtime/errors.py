"""Errors of the runtime. Each names the argument or resource, the value, the limit, and what to do about it.

Three situations have different errors: a name that does not exist (`UnknownDeviceError`, `SettingError`), something
that exists but that this machine cannot do (`DeviceUnavailableError`, `UnsupportedError`), and a request that is
impossible on any machine (`LaunchError`, `ArrayError`).
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from hip_devicelib.codeobject import CodeObject

Index3 = tuple[int, int, int]


class HipRuntimeError(Exception):
    """Base of every error that hip-runtime raises on purpose."""

    code: int = 999
    """The number by which HIP's runtime says the same (``hipError_t``), as CUDA's does; 999 is "unknown"."""

    @property
    def msg(self) -> str:
        """The message."""
        return str(self)


class SettingError(HipRuntimeError, ValueError):
    """An environment variable has a value that its setting does not have."""


class UnknownDeviceError(HipRuntimeError, ValueError, IndexError):
    """The name or number of a device that does not exist."""

    code = 101


class DeviceUnavailableError(HipRuntimeError):
    """A kind of device that exists, but that this machine does not have or cannot use."""

    code = 100


class UnsupportedError(HipRuntimeError):
    """Something that this device cannot do."""

    code = 801


class ProfileError(HipRuntimeError, ValueError):
    """A profile that is used before it is complete or twice, or that cannot be drawn."""


class LaunchError(HipRuntimeError, ValueError):
    """A launch that is not possible: its grid, block, shared memory or arguments."""

    code = 9


class LaunchTypeError(LaunchError, TypeError):
    """A grid or block that is not a whole number or a sequence of them, or a configuration without one."""


class OutOfDeviceMemoryError(HipRuntimeError, MemoryError):
    """The device has too little free memory. ``requested``, ``free`` and ``total`` are in bytes."""

    code = 2

    def __init__(self, requested: int, free: int, total: int, advice: str) -> None:
        super().__init__(requested, free, total, advice)
        self.requested = requested
        self.free = free
        self.total = total
        self.advice = advice

    def __str__(self) -> str:
        return (
            f"cannot allocate {self.requested} bytes of device memory: {self.free} of {self.total} bytes are free; "
            f"{self.advice}"
        )


class InvalidAddressError(HipRuntimeError, ValueError):
    """An address that is not the start of a live allocation of this device: never allocated, or freed already."""

    code = 1


class InvalidHandleError(HipRuntimeError, ValueError):
    """A stream, event or IPC handle that does not exist, or whose object was destroyed."""

    code = 400


class StreamError(LaunchError, InvalidHandleError):
    """An object that is not a stream, passed where a launch, a copy or an event needs one."""


class ModuleLoadError(HipRuntimeError):
    """A code object that this device cannot load: damaged, or made for another target."""

    code = 200


class SymbolError(ModuleLoadError, LookupError):
    """A name that code refers to but nothing defines, or a kernel or global that a module does not contain."""

    code = 500


class EventError(HipRuntimeError):
    """A time requested of an event that was never recorded, or whose work has not finished yet."""


class EventTypeError(EventError, TypeError):
    """An object that is not an event, passed where a time or a wait needs one."""


class CaptureError(HipRuntimeError):
    """Something that cannot be part of a graph, or cannot be done while one is captured; or a capture that was lost."""

    code = 900


class ArrayError(HipRuntimeError, ValueError):
    """A shape, stride, index or type that an array cannot have."""

    code = 1


class MaskedArrayError(ArrayError, NotImplementedError):
    """An array of another library in which elements are marked as missing."""


class ArrayTypeError(ArrayError, TypeError):
    """A shape or stride that is not a whole number, an index of another type, or an object that is no array."""


class ArrayExtentError(ArrayError, OverflowError):
    """A shape with a negative extent."""


class ArrayStreamError(ArrayError, InvalidHandleError):
    """An array of another library that names a stream which does not exist."""


class ArrayIndexError(ArrayError, IndexError):
    """An index outside of an array. Being an `IndexError` too, it ends iteration as Python expects."""


class CopyError(ArrayError):
    """A copy between arrays that do not fit each other; neither was changed."""


class CopyTypeError(CopyError, TypeError):
    """A copy between arrays whose elements have different types, or to an object that is no array."""


class CollectiveError(HipRuntimeError, ValueError):
    """An operation among several GPUs whose arrays or ranks do not fit, or that RCCL reports as failed."""


class KernelFault(HipRuntimeError):
    """A kernel stopped one of its threads with an error code.

    ``code`` is the kernel's own number for the error; ``block`` and ``thread`` are (x, y, z) indices; ``kernel`` is the
    symbol of the kernel. ``details`` are four further numbers from the kernel, on AMD GPUs, or empty if all are 0. A
    layer above sets ``describe``, see `Function.describe_fault`.
    """

    def __init__(self, kernel: str, code: int, block: Index3, thread: Index3, details: tuple[int, ...] = ()) -> None:
        super().__init__(kernel, code, block, thread)
        self.details = details
        self.kernel = kernel
        self.code = code
        self.block = block
        self.thread = thread
        self.describe: Callable[[KernelFault], BaseException] | None = None

    def __str__(self) -> str:
        return f"kernel {self.kernel!r} raised error code {self.code} in block {self.block}, thread {self.thread}"

    def exception(self) -> BaseException:
        """The exception to raise for this fault: the one that the kernel's owner derives from it, or the fault
        itself."""
        return self if self.describe is None else self.describe(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kernel, self.code, self.block, self.thread, self.details)


class BlockMemoryError(KernelFault):
    """The system had no memory for the state of a block's threads that wait for each other."""

    def __str__(self) -> str:
        return (
            f"kernel {self.kernel!r}: no memory for the threads of block {self.block} on the CPU device; launch "
            "smaller blocks, use less private memory, or run on fewer cores at a time"
        )


class BarrierDivergenceError(KernelFault):
    """Some threads of a block wait at a barrier that others, which wait elsewhere, never reach.

    ``thread`` is one of those at the second of the two ``places``, ``file:line`` each, empty where it is not known.
    """

    def __init__(self, kernel: str, code: int, block: Index3, thread: Index3, places: tuple[str, str]) -> None:
        super().__init__(kernel, code, block, thread)
        self.places = places

    def __str__(self) -> str:
        here, there = (f"at {place}" if place else "at one place" for place in self.places)
        there = "at another" if there == "at one place" else there
        if here == there:
            there += ", another call on the same line"
        return (
            f"kernel {self.kernel!r}: threads of block {self.block} wait for one another for ever: some at the barrier "
            f"{here}, others, such as thread {self.thread}, at the one {there}; all threads of a block that have not "
            "returned must come to the same barrier"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kernel, self.code, self.block, self.thread, self.places)


class LaunchAbortedError(KernelFault):
    """The launch was ended from elsewhere, as `Stream.abort` and the end of the process do, within its blocks."""

    def __str__(self) -> str:
        return f"the launch of kernel {self.kernel!r} was ended before its end; memory holds what its blocks wrote"


class StalledKernelWarning(RuntimeWarning):
    """The threads of a kernel repeat the same instructions with the same values, and no block has ended for a long
    time."""


class TrapError(KernelFault):
    """The processor raised the signal ``signal`` in a kernel.

    ``block`` is the first of the blocks that the processor's thread was running, usually the only one; which of the
    block's threads it was is not known. ``instruction`` and ``address`` are the addresses of the machine code and of
    the access. A layer above may set ``place``, the source line, and ``advice``."""

    def __init__(
        self, kernel: str, code: int, block: Index3, thread: Index3, number: int, instruction: int, address: int
    ) -> None:
        super().__init__(kernel, code, block, thread)
        self.signal = number
        self.instruction = instruction
        self.address = address
        self.place = ""
        self.advice = ""
        self.find_line: Callable[[Callable[[], CodeObject]], str] | None = None
        """Gives the line of the source, ``file:line`` or empty, where it is given what makes the kernel's code object
        once more, with line tables."""

    def _whose(self) -> str:
        where = f" ({self.place})" if self.place else ""
        return f"kernel {self.kernel!r}{where}, block {self.block}"

    def __str__(self) -> str:
        name = signal.Signals(self.signal).name
        return f"{self._whose()}: the processor cannot go on at {self.instruction:#x} ({name}){self.advice}"

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self.code, self.block, self.thread, self.signal, self.instruction, self.address)
        return type(self), (self.kernel, *arguments), {"place": self.place, "advice": self.advice}


class MemoryFaultError(TrapError):
    """A kernel accessed memory that is not mapped, or not accessible; nothing was read or written there.

    ``nearby`` describes the closest allocation of the device. Other out-of-range accesses may have hit mapped memory
    unnoticed, which only bounds checks report.
    """

    def __init__(
        self, kernel: str, code: int, block: Index3, thread: Index3, number: int, instruction: int, address: int
    ) -> None:
        super().__init__(kernel, code, block, thread, number, instruction, address)
        self.nearby = ""

    def __str__(self) -> str:
        # The processor does not tell addresses that can be none, such as those above 2**47.
        where = f"address {self.address:#x}" if self.address else "an address that is 0 or none at all"
        nearby = f", {self.nearby}" if self.nearby else ""
        return (
            f"{self._whose()}: access to {where}{nearby}, where it has no memory; it did not take place, and arrays "
            f"hold what was written before; check indices{self.advice}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        kind, arguments, state = super().__reduce__()
        return kind, arguments, {**state, "nearby": self.nearby}


class StackOverflowError(TrapError):
    """A kernel overflowed the stack of a thread of the processor."""

    def __str__(self) -> str:
        return (
            f"{self._whose()}: the stack of the processor has no room for its private arrays and calls; use smaller "
            f"arrays, or fewer functions that call one another{self.advice}"
        )
