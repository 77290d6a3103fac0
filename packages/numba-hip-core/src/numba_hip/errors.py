"""Errors that `numba_hip` raises on purpose.

What is wrong with a kernel's code is reported as Numba reports it (`numba.core.errors.TypingError` and its
relatives); what is wrong with a device or a launch as `hip_runtime.errors` does. Here is what lies between.
"""

from __future__ import annotations

from pickle import PicklingError


class HipError(Exception):
    """Base of the errors defined here."""


class KernelArgumentError(HipError, TypeError):
    """Arguments of a launch that a kernel cannot take: too many, too few, or one of a type that has no place there."""


class NotAFunctionError(HipError, TypeError):
    """Something that `jit` was given to compile, and that is no Python function."""


class KernelSignatureError(HipError, TypeError):
    """A kernel that cannot be launched as it is declared, such as one that returns a value, or an ``async def``."""


class DeviceFunctionError(HipError, TypeError, RuntimeError):
    """Something asked of a device function that only kernels have: a launch, machine code, resources; or a function
    that none can be made of."""


class NotCompiledError(HipError, KeyError):
    """A signature that a kernel has not been compiled for."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError shows the repr


class NotCacheableError(HipError, PicklingError):
    """A kernel with ``cache=True`` that refers to what another process does not have: a device array."""


class OptionError(HipError, TypeError, ValueError):
    """An option of `jit` that does not exist, or that cannot have the value that it was given."""


class OutputError(HipError, ValueError, NotImplementedError):
    """A kind of output that `compile` does not know, or that the target cannot give."""


class LinkedCodeError(HipError, ValueError):
    """Code that cannot be linked into a kernel, or a function of it that is not what was declared."""


class LinkedFileNotFoundError(LinkedCodeError, FileNotFoundError):
    """A file of code to link that does not exist."""


class SharedMemoryError(HipError, ValueError):
    """A kernel whose shared arrays together are more than a block of the target has."""
