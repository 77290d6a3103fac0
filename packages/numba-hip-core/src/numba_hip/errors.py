"""Errors that `numba_hip` raises on purpose.

Mistakes in a kernel's code are reported as Numba does (`numba.core.errors.TypingError` and similar errors), and
problems of a device or a launch by `hip_runtime.errors`. The errors in between are defined here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from numba.core import config as numba_config
from numba.core.errors import (
    NumbaError,
    NumbaPerformanceWarning,
    TypingError,
    UnsupportedBytecodeError,
    UnsupportedError,
)

from hip_runtime.errors import HipRuntimeError
from numba_hip import config
from numba_hip.plain_messages import PlainError

if TYPE_CHECKING:
    from numba_hip.races.findings import Finding


class HipError(Exception):
    """Base of the errors defined here."""


class KernelArgumentError(HipError, TypeError):
    """Arguments of a launch that a kernel cannot take: too many, too few, or one of a type that kernels do not
    support."""


class KernelArgumentTypeError(PlainError, TypingError, KernelArgumentError):
    """An argument of a launch of a type that kernels do not support."""


class AlgorithmError(HipError, TypeError, ValueError):
    """An argument of a function of `hip.algorithms`, `hip.block` or `hip.wave` that it cannot work with: its name, what
    it is, and what it can be."""


class AssemblyError(HipError, TypeError, ValueError):
    """An argument of `hip.asm` that it cannot work with: its name, what it is, and what it can be."""


class NotAFunctionError(HipError, TypeError):
    """An object that `jit` was given to compile and that is not a Python function."""


class KernelSignatureError(HipError, PlainError, TypingError, TypeError):
    """A kernel that cannot be launched as it is declared, such as one that returns a value, or an ``async def``."""


class SignatureError(HipError, NameError, TypeError):
    """A signature string that is invalid: it names a type that does not exist, or cannot be parsed."""


class DeviceFunctionError(HipError, TypeError, RuntimeError):
    """A request to a device function that only kernels support, such as a launch, machine code or resources; or a
    function that cannot be a device function."""


class NotCompiledError(HipError, KeyError):
    """A signature that a kernel has not been compiled for."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError shows the repr


class NotCacheableError(HipError, PicklingError):
    """A kernel with ``cache=True`` that refers to something which other processes do not have: a device array."""


class OptionError(HipError, TypeError, ValueError):
    """An option of `jit` that does not exist, or that cannot have the value that it was given."""


class TextureError(HipError, ValueError):
    """An image that cannot be read as a texture, or a way to read it that there is not."""


class TuningError(HipError, ValueError):
    """Configurations for `autotune` that do not fit what it decorates, or none of which the device has room for."""


class WorkerError(HipError, RuntimeError):
    """A worker process of a cluster cannot be prepared any more."""


class PrecompilationError(HipError, ValueError):
    """What was to be compiled ahead is no kernel that is kept in the cache, or has no signature."""


class OutputError(HipError, ValueError, NotImplementedError):
    """A kind of output that `compile` does not know, or that the target cannot give."""


class HipExtensionError(HipError, KeyError, ValueError):
    """`set_hip_extensions` without HIP C++, or with two."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError shows the repr


class LinkedCodeError(HipError, ValueError, RuntimeError):
    """Code that cannot be linked into a kernel, or a function of it that is not what was declared."""


class LinkedFileNotFoundError(LinkedCodeError, FileNotFoundError):
    """A file of code to link that does not exist; the first argument says so in Numba CUDA's words."""

    def __str__(self) -> str:
        return f"link: {self.args[0]}"


class UnknownNameError(HipError, PlainError, TypingError, AttributeError):
    """A name in a kernel that the module before the dot does not have, such as ``math.sqroot``."""


class UnsupportedCodeError(HipError, PlainError, UnsupportedError):
    """Something of Python in a kernel that no device has, such as lists and ``try``."""


class UnsupportedSyntaxError(UnsupportedCodeError, UnsupportedBytecodeError):
    """Python in a kernel that Numba does not translate, such as ``with``, ``import`` and ``del x``.

    It is a `numba.core.errors.NumbaError`, which Numba's own `UnsupportedBytecodeError` is not.
    """

    def __init__(self, msg: str, loc: Any = None) -> None:
        super().__init__(msg, loc)
        self.args = (msg,)


class AlignmentError(HipError, PlainError, TypingError, ValueError):
    """An array in a kernel at an alignment that memory does not have."""


class MatrixError(HipError, PlainError, TypingError, ValueError):
    """A product of small matrices, or a part of one, that `hip.matrix` or the target of a kernel does not have."""


class SharedMemoryError(HipError, ValueError):
    """A kernel whose shared arrays together are more than a block of the target has."""


class PerformanceWarning(NumbaPerformanceWarning):
    """Something in a kernel that is slow, at its line: see `numba_hip.explanation`."""


MOST_SHOWN = 10
"""How many findings a `RaceError` writes out."""


class RaceError(HipError, RuntimeError):
    """Threads of a kernel accessed the same memory without anything that orders them, or read what nobody wrote.

    ``kernel`` is the kernel's name, ``findings`` are objects of `numba_hip.races.findings.Finding`; ``lost`` counts
    those that there was no room for. The kernel ran to its end.
    """

    def __init__(self, kernel: str, findings: tuple[Finding, ...], lost: int = 0) -> None:
        super().__init__(kernel, findings, lost)
        self.kernel = kernel
        self.findings = findings
        self.lost = lost

    def __str__(self) -> str:
        races = sum(one.kind == "race" for one in self.findings)
        counts = [_count(races, "race"), _count(len(self.findings) - races, "read of memory that nobody wrote")]
        lines = [f"kernel {self.kernel}: {' and '.join(filter(None, counts))}"]
        lines += [f"  {number}. {one}" for number, one in enumerate(self.findings[:MOST_SHOWN], 1)]
        if len(self.findings) > MOST_SHOWN:
            lines.append(f"  and {len(self.findings) - MOST_SHOWN} more: see the findings of this error")
        if self.lost:
            lines.append(f"  and {self.lost} that there was no room for")
        return "\n".join(lines)


class RaceWarning(RuntimeWarning):
    """What a `RaceError` says, where it is no error; it has the same attributes."""

    def __init__(self, kernel: str, findings: tuple[Finding, ...], lost: int = 0) -> None:
        super().__init__(kernel, findings, lost)
        self.kernel = kernel
        self.findings = findings
        self.lost = lost

    def __str__(self) -> str:
        return str(RaceError(self.kernel, self.findings, self.lost))


def _count(number: int, what: str) -> str:
    first, _, rest = what.partition(" ")
    return "" if number == 0 else f"1 {what}" if number == 1 else f"{number} {first}s {rest}".rstrip()


P = ParamSpec("P")
R = TypeVar("R")

SHORTENED = (NumbaError, UnsupportedBytecodeError, HipError)
"""Errors whose frames say nothing to whoever wrote the kernel."""

FAULT_ATTRIBUTE = "kernel_fault"
"""Of an exception that a kernel raised: the `hip_runtime.errors.KernelFault`, which has its thread and block."""


def are_full() -> bool:
    """Whether everything is shown: one of the settings says so."""
    return bool(numba_config.FULL_TRACEBACKS) or config.full_tracebacks()


def says_enough(error: BaseException) -> bool:
    """Whether a launch's *error* needs no frames: one of ours, what the kernel raised, or Ctrl-C while it ran."""
    ours = isinstance(error, (KeyboardInterrupt, HipRuntimeError, *SHORTENED))
    return ours or FAULT_ATTRIBUTE in getattr(error, "__dict__", ())


def hide_frames(error: BaseException) -> None:
    """Drop the frames of *error* so far, that of the caller included, if that raises it again with a bare ``raise``.

    Python adds no frame then. Before 3.11 the caller's stays.
    """
    if not are_full() and error.__traceback__ is not None:
        error.__traceback__.tb_next = None
        error.__traceback__ = None


def without_own_frames(function: Callable[P, R]) -> Callable[P, R]:
    """*function*, whose `SHORTENED` errors have no frames of it and of what it calls."""

    @functools.wraps(function)
    def outermost(*args: P.args, **kws: P.kwargs) -> R:
        try:
            return function(*args, **kws)
        except SHORTENED as error:
            hide_frames(error)
            raise

    return outermost
