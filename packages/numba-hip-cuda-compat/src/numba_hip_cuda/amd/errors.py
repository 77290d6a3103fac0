"""Error classes that programs for AMD's numba-hip name in ``except`` clauses. Nothing here raises them."""

from __future__ import annotations

from typing import Any


class HiprtcError(Exception):
    """An error of HIPRTC."""


class HiprtcCompilationError(HiprtcError):
    """HIP C++ that HIPRTC rejected."""


class HiprtcSupportError(ImportError):
    """HIPRTC is missing."""


class KernelRuntimeError(RuntimeError):
    """An exception raised by a kernel. Here the host gets the original exception instead."""

    def __init__(self, msg: str, tid: Any = None, ctaid: Any = None) -> None:
        super().__init__(f"An exception was raised in thread={tid} block={ctaid}\n\t{msg}")
        self.msg, self.tid, self.ctaid = msg, tid, ctaid
