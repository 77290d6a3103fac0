"""What kernels call and what is compiled for a target when they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class KernelCallable:
    """A function of ``hip.jit``: in the code of a kernel it stands for its form that the kernel's target compiles."""

    py_func: Callable[..., Any]
