"""Classes of errors that programs written for `numba.cuda` name in ``except``, and that nothing here raises.

They are those of NVIDIA's compilers and of states that do not occur; each is a class of its own, so that catching one
never catches an error of `hip_runtime` by accident.
"""

from __future__ import annotations


class NvvmError(Exception):
    """An error of NVVM."""


class NvvmSupportError(ImportError):
    """NVVM is missing."""


class NvvmWarning(Warning):
    """A warning of NVVM."""


class NvrtcError(Exception):
    """An error of NVRTC."""


class NvrtcCompilationError(NvrtcError):
    """CUDA C++ that NVRTC refused."""


class NvrtcBuiltinOperationFailure(NvrtcError):
    """NVRTC could not load its builtins."""


class NvrtcSupportError(ImportError):
    """NVRTC is missing."""


class CCSupportError(RuntimeError):
    """A compute capability that the toolkit does not support."""


class DeadMemoryError(RuntimeError):
    """Memory that was freed already."""
