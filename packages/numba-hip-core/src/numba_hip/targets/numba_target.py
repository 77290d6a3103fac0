"""The place of HIP among Numba's targets.

``@overload(..., target="hip")`` and ``@intrinsic(target="hip")`` hold for every device; each compile target gets
a class of its own beneath `HIP`, so that Numba compiles an overload with the contexts of the target that asked for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba_hip._numba.contexts import GPU, dispatcher_registry, jit_registry, target_registry


class HIP(GPU):
    """Everything that runs kernels of `numba.hip`: AMD GPUs and the CPU device."""


target_registry["hip"] = HIP


def numba_name(target: str) -> str:
    """The name under which compile target *target* (``"cpu"``, ``"gfx942"``) is known to Numba."""
    return f"hip:{target}"


@dataclass(frozen=True)
class TargetOfDispatchers:
    """What Numba looks up for a target: the object that holds its contexts, under ``targetdescr``."""

    targetdescr: Any


def register(target: str) -> str:
    """Make compile target *target* known to Numba by a name, which is returned."""
    name = numba_name(target)
    target_registry[name] = type(f"HIP[{target}]", (HIP,), {"__doc__": f"Kernels of numba.hip compiled for {target}."})
    return name


def complete(numba_name: str, contexts: Any, device_jit: Callable[..., Any]) -> None:
    """Tell Numba the *contexts* of a registered target, and the decorator that compiles overloads for it."""
    numba_class = target_registry[numba_name]
    dispatcher_registry[numba_class] = TargetOfDispatchers(contexts)
    jit_registry[numba_class] = device_jit
