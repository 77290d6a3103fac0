"""Classes of errors that programs for AMD's numba-hip name in ``except``, and that nothing here raises."""

from __future__ import annotations

from typing import Any


class HiprtcError(Exception):
    """An error of HIPRTC."""


class HiprtcCompilationError(HiprtcError):
    """HIP C++ that HIPRTC refused."""


class HiprtcSupportError(ImportError):
    """HIPRTC is missing."""


class KernelRuntimeError(RuntimeError):
    """An exception that a kernel raised for a reason of its own; here the host gets the exception itself."""

    def __init__(self, msg: str, tid: Any = None, ctaid: Any = None) -> None:
        super().__init__(f"An exception was raised in thread={tid} block={ctaid}\n\t{msg}")
        self.msg, self.tid, self.ctaid = msg, tid, ctaid
