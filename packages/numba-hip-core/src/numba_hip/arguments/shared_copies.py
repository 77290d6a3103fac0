"""Arguments of one launch that are the same elements of the host's memory, and have one copy."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

HostArray = np.ndarray[Any, Any]
Copy = TypeVar("Copy")


class SharedCopies(Generic[Copy]):
    """The copies of a launch's host arrays that the kernel may read and write. Of arrays that are the same elements
    only one is made: what the kernel writes to one of two would be lost where the other is copied back behind it."""

    def __init__(self) -> None:
        self._found: list[tuple[HostArray, Copy]] = []

    def find(self, array: HostArray) -> Copy | None:
        """The copy of the elements of *array*, if there is one."""
        for other, copy in self._found:
            if np.may_share_memory(other, array) and _describe(other) == _describe(array):
                return copy
        return None

    def add(self, array: HostArray, copy: Copy) -> None:
        """Note that *copy* is that of *array*."""
        self._found.append((array, copy))


def _describe(array: HostArray) -> tuple[object, ...]:
    return array.ctypes.data, array.shape, array.strides, array.dtype
