"""The form of an algorithm that is made first and called afterwards, as often as wanted."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba_hip.errors import AlgorithmError
from numba_hip_cuda.compute.operands import stream_of

SAID_LATER = ("num_items", "num_samples", "num_segments", "num_values", "stream", "max_segment_size", "begin_bit",
              "end_bit")  # fmt: skip
"""Arguments that a call has, and making does not."""

STORAGE_BYTES = 1
"""What a call without memory answers. Algorithms here have memory of their own, see `numba_hip.algorithms.Workspace`;
programs allocate what they are told, and memory of no bytes is not always possible."""

_MISSING = object()


class Prepared:
    """An algorithm to be called with the arguments of its other form, by name.

    If it takes ``temp_storage``, and gets None, it does nothing but say how many bytes to pass there.
    """

    def __init__(self, run: Callable[..., None], kept: dict[str, Any], takes_storage: bool) -> None:
        self._run, self._kept, self._takes_storage = run, kept, takes_storage

    def __call__(self, *, temp_storage: Any = _MISSING, **arguments: Any) -> int | None:
        stream_of(arguments.get("stream"))
        if self._takes_storage:
            if temp_storage is _MISSING:
                raise TypeError("missing a required keyword-only argument: 'temp_storage'")
            if temp_storage is None:
                return STORAGE_BYTES
        elif temp_storage is not _MISSING:
            raise TypeError("got an unexpected keyword argument 'temp_storage'")
        self._run(**{**self._kept, **arguments})
        return None


def maker(run: Callable[..., None], *kept: str, takes_storage: bool = True) -> Callable[..., Prepared]:
    """The function that makes *run* to be called afterwards; a call need not repeat the arguments *kept*."""
    parameters = inspect.signature(run).parameters
    described = [name for name in parameters if name not in SAID_LATER]
    required = [name for name in described if parameters[name].default is inspect.Parameter.empty]

    def make(*, compute_capability: Any = None, **arguments: Any) -> Prepared:
        unknown = [name for name in arguments if name not in described]
        missing = [name for name in required if name not in arguments]
        if unknown or missing:
            raise TypeError(f"unexpected arguments {unknown}, missing ones {missing}; there are {described}")
        if compute_capability is not None:
            raise AlgorithmError(
                f"compute_capability is {compute_capability!r}: code is compiled for the device of each call; leave "
                "it out"
            )
        return Prepared(run, {name: arguments[name] for name in kept if name in arguments}, takes_storage)

    make.__doc__ = f"`{run.__name__}`, to be called afterwards: see `Prepared`."
    return make


def clear_all_caches() -> None:
    """Do nothing: the kernels that are kept are few, and those not used for longest go first."""
