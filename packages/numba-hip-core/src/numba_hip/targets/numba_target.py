"""HIP in Numba's hierarchy of targets.

``@overload(..., target="hip")`` and ``@intrinsic(target="hip")`` apply to every device. Each compile target has its own
subclass of `HIP`, so that Numba compiles an overload with the contexts of the requesting target.
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
    """The object that Numba looks up for a target under ``targetdescr``; it holds the contexts."""

    targetdescr: Any


def register(target: str) -> str:
    """Register compile target *target* with Numba; returns its name there."""
    name = numba_name(target)
    target_registry[name] = type(f"HIP[{target}]", (HIP,), {"__doc__": f"Kernels of numba.hip compiled for {target}."})
    return name


def complete(numba_name: str, contexts: Any, device_jit: Callable[..., Any]) -> None:
    """Set the *contexts* of a registered target, and the decorator that compiles overloads for it."""
    numba_class = target_registry[numba_name]
    dispatcher_registry[numba_class] = TargetOfDispatchers(contexts)
    jit_registry[numba_class] = device_jit
