"""Converts stream objects, this library's own or another's, to the driver's handles."""

from __future__ import annotations

import operator
from typing import Any

from hip_runtime.driver import DEFAULT_STREAM, PER_THREAD_STREAM
from hip_runtime.errors import StreamError
from hip_runtime.said_names import our

LEAST_HANDLE = 1 << 20
"""No created stream has a handle below this one. On AMD GPUs handles are addresses, which no program on Linux has so
small; the CPU device counts from here. So a size of shared memory in a stream's place is noticed."""


def stream_handle(stream: Any) -> int:
    """The driver's number for *stream*; ``None`` is the default stream.

    A `hip_runtime.Stream`, the handle of a stream, or a stream of another library: an object with ``__cuda_stream__``,
    with ``cuda_stream`` (PyTorch) or with ``ptr`` (CuPy). `StreamError` for anything else,
    and for numbers that no stream has as its handle.
    """
    if stream is None or (type(stream) is int and stream == DEFAULT_STREAM):
        return DEFAULT_STREAM
    handle = stream
    if not hasattr(stream, "__index__"):
        handle = _protocol_handle(stream) if hasattr(stream, "__cuda_stream__") else _named_handle(stream)
    try:
        number = -1 if isinstance(handle, bool) else operator.index(handle)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 64:
        raise StreamError(
            f"stream is {stream!r}, of type {type(stream).__name__}; it must be a stream of {our('stream')}(), the "
            "handle of a stream, a stream of another library (an object with __cuda_stream__, cuda_stream or ptr), "
            "or 0 for the default stream"
        )
    if PER_THREAD_STREAM < number < LEAST_HANDLE:
        raise StreamError(
            f"stream is {number}, which is too small for the handle of a stream. If it is a size of dynamic shared "
            "memory, give it as the fourth: kernel[grid, block, stream, bytes], with 0 as the default stream"
        )
    return number


def _protocol_handle(stream: Any) -> Any:
    """The handle that ``__cuda_stream__`` gives:
    https://nvidia.github.io/cuda-python/cuda-core/latest/interoperability.html"""
    answer = stream.__cuda_stream__
    if callable(answer):
        answer = answer()
    if not isinstance(answer, tuple) or len(answer) != 2 or answer[0] != 0:
        raise StreamError(
            f"__cuda_stream__ of {type(stream).__name__} gives {answer!r}; it must give (0, handle), where 0 is the "
            "version of the protocol"
        )
    return answer[1]


def _named_handle(stream: Any) -> Any:
    return getattr(stream, "cuda_stream", getattr(stream, "ptr", None))
