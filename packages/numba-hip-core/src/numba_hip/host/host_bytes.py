"""Bytes of host memory as a context gives them: arrays of NumPy that are memory pointers, too.

NumPy makes arrays of them, by ``numpy.ndarray(shape, dtype, buffer=memory)``, from which nothing can take the memory
away. So it is released with the last of these arrays, and cannot be freed before.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

import numpy as np

import hip_runtime
from hip_runtime.errors import ArrayError
from numba_hip.host.host_memory import ManagedArray, MappedArray, managed_array, mapped_array
from numba_hip.host.memory_pointers import (
    DeviceAddress,
    ManagedMemory,
    MappedMemory,
    MemoryInUseError,
    PinnedMemory,
)

B = TypeVar("B", bound="_Bytes")


class _Bytes(np.ndarray[Any, Any]):
    """What the three kinds have in common. A part, ``memory[8:16]``, is memory itself."""

    is_managed = True
    """The memory is given back when it is no longer used."""
    is_freed = False
    plain: type[np.ndarray[Any, Any]] = np.ndarray
    """The class of the same memory as elements of another type."""

    context: Any = None
    """The context that gave it."""

    def __array_finalize__(self, made_of: Any) -> None:
        """Parts are of the same context."""
        super().__array_finalize__(made_of)
        self.context = getattr(made_of, "context", None)

    @property
    def device_pointer(self) -> DeviceAddress:
        """The address, the same for the host and for kernels."""
        return DeviceAddress(self.ctypes.data)

    @property
    def owner(self) -> Any:
        """This memory itself, which lives as long as anybody refers to it."""
        return self

    refct = 1

    def view(self, *args: Any, **kws: Any) -> Any:
        """Bytes *start* to *stop*, the end by default; or, as of each array of NumPy, the same bytes as another type.

        `hip_runtime.errors.ArrayError` for bytes outside of it.
        """
        given = [*args, *kws.values()]
        if any(isinstance(value, (int, np.integer)) for value in given):
            return self._part(*args, **kws)
        made = super().view(*args, **kws)
        return made if made.dtype == self.dtype else made.view(self.plain)

    def _part(self, start: int, stop: int | None = None) -> Any:
        end = self.size if stop is None else stop
        if not 0 <= start <= end <= self.size:
            raise ArrayError(f"bytes {start} to {end} are not within the {self.size} of this memory")
        return self[start:end]

    def free(self) -> NoReturn:
        """Raises `MemoryInUseError`: the memory is released with the last array of NumPy that uses it."""
        raise MemoryInUseError(
            f"{self.size} bytes at {self.ctypes.data:#x} are an array of NumPy: delete it and its views (del), and "
            "they are freed"
        )


class PinnedBytes(_Bytes, PinnedMemory):  # type: ignore[misc, override]
    """Page-locked memory of the host."""


class MappedBytes(_Bytes, MappedArray, MappedMemory):  # type: ignore[misc, override]
    """Page-locked memory of the host that kernels use in place."""

    plain = MappedArray


class ManagedBytes(_Bytes, ManagedArray, ManagedMemory):  # type: ignore[misc, override]
    """Memory that migrates to where it is used."""

    plain = ManagedArray


def pinned_bytes(context: Any, size: int) -> PinnedBytes:
    """*size* bytes of page-locked memory, which *context* gives."""
    return _given_by(context, hip_runtime.pinned_array(size, np.uint8).view(PinnedBytes))


def mapped_bytes(context: Any, size: int) -> MappedBytes:
    """*size* bytes of page-locked memory that kernels use in place, which *context* gives."""
    return _given_by(context, mapped_array(size, np.uint8).view(MappedBytes))


def managed_bytes(context: Any, size: int, attach_global: bool = True) -> ManagedBytes:
    """*size* bytes of memory that migrates, which *context* gives; *attach_global* is a hint that has no effect."""
    return _given_by(context, managed_array(size, np.uint8, attach_global=attach_global).view(ManagedBytes))


def _given_by(context: Any, memory: B) -> B:
    memory.context = context
    return memory
