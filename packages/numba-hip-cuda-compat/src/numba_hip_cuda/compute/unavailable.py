"""Names of `cuda.compute` that HIP cannot have. They can be imported, as programs do at their beginning; using them
raises an error that says what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from numba_hip.errors import AlgorithmError


class UnavailableError(AlgorithmError):
    """A function of `cuda.compute` that has no counterpart on HIP was called."""


def _unavailable(name: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(*_arguments: Any, **_named: Any) -> NoReturn:
        raise UnavailableError(f"cuda.compute.{name} has no counterpart on HIP: {instead}")

    refuse.__name__ = name
    refuse.__doc__ = f"Raises `UnavailableError`: {instead}."
    return refuse


_STORES = "it stores NVIDIA's machine code; kernels are kept on disk by cuda.jit(cache=True)"
_DESCRIBES = "it describes values for serialize; pass the arrays themselves to make_*"

serialize = _unavailable("serialize", _STORES)
deserialize = _unavailable("deserialize", _STORES)
ProxyArray = _unavailable("ProxyArray", _DESCRIBES)
ProxyValue = _unavailable("ProxyValue", _DESCRIBES)
RawOp = _unavailable(
    "op.RawOp",
    "it is NVIDIA's machine code; pass a function of Python, or one that cuda.declare_device gives for linked code",
)
