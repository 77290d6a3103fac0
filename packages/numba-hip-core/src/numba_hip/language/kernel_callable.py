"""Functions that are compiled for a kernel's target when the kernel calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class KernelCallable:
    """A function of ``hip.jit`` or ``hip.vectorize``: in a kernel, it stands for its version that is compiled for the
    kernel's target."""

    py_func: Callable[..., Any]
    targetoptions: Mapping[str, Any]
    of_elements = False
    """Whether it is a function of numbers, which the host applies to the elements of arrays."""
