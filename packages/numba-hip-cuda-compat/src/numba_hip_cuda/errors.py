"""Error classes that programs for `numba.cuda` name in ``except`` clauses. Nothing here raises them.

They belong to NVIDIA's compilers, or to situations that do not arise here. Each is separate from the errors of
`hip_runtime`, so that catching one never catches those by accident.
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
    """CUDA C++ that NVRTC rejected."""


class NvrtcBuiltinOperationFailure(NvrtcError):
    """NVRTC could not load its builtins."""


class NvrtcSupportError(ImportError):
    """NVRTC is missing."""


class CCSupportError(RuntimeError):
    """A compute capability that the toolkit does not support."""
