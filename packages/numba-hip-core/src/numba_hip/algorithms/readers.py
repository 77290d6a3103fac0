"""How kernels read the sources of algorithms, and how many values there are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from numba_hip.algorithms.argument_checks import is_count
from numba_hip.errors import AlgorithmError
from numba_hip.language.cache_hints import ldcg, ldcs, ldcv


class Reader(NamedTuple):
    """How a kernel reads a source: a function of (leaves, i), and how many values there are, None for no end."""

    read: Any
    size: int | None


def count_of(reader: Reader, count: int | None, argument: str) -> int:
    """How many values of *reader* are used: *count* if given, else all. Raises `AlgorithmError` if there are fewer."""
    if count is None:
        if reader.size is None:
            raise AlgorithmError(f"{argument} has no end: say how many values are used with count=")
        return reader.size
    if not is_count(count):
        raise AlgorithmError(f"count is {count!r}; pass how many values of {argument} are used")
    if reader.size is not None and count > reader.size:
        raise AlgorithmError(f"count is {count}; {argument} has {reader.size} values")
    return int(count)


def hint_of(dtype: np.dtype[Any], modifier: str) -> Any:
    """The function of kernels that reads an element of *dtype* as a `CacheModifiedInputIterator` with this *modifier*
    says; None where there is none for such elements."""
    return {"stream": ldcs, "global": ldcg, "volatile": ldcv}[modifier] if dtype.kind in "iuf" else None
