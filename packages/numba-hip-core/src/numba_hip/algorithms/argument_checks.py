"""What the arguments of algorithms have to be, besides those that kernels read and write."""

from __future__ import annotations

from typing import Any

import numpy as np

from hip_runtime import is_device_array
from numba_hip.errors import AlgorithmError


def pair_of(given: Any) -> tuple[Any, Any]:
    """The two arrays that a caller has *given* as ``out``, either of which may be None."""
    if given is None:
        return None, None
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise AlgorithmError(f"out is {type(given).__name__}; pass a pair of arrays, either of which may be None")
    return given[0], given[1]


def check_ascending(given: Any, argument: str, meaning: str) -> None:
    """Raise `AlgorithmError` for numbers of the host that do not ascend, NaN among them; those of the device are not
    looked at."""
    if not isinstance(given, (np.ndarray, list, range)):
        return
    marks = np.asarray(given)
    falls = np.flatnonzero(~(marks[1:] >= marks[:-1]))
    if falls.size:
        place = int(falls[0])
        raise AlgorithmError(
            f"{argument} has {marks[place]} at place {place} and {marks[place + 1]} behind it; pass {meaning}, one "
            "after another"
        )


def is_array(source: Any) -> bool:
    """Whether *source* is an array rather than an iterator: any of its elements can be read."""
    return is_device_array(source) or isinstance(source, (np.ndarray, list, range))


def is_count(value: object) -> bool:
    """Whether *value* is an integer that is not negative."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 0)


def check_number(value: Any, argument: str) -> None:
    """Raise `AlgorithmError` for an integer of Python's that no type of kernels has, in *value* or in its tuples."""
    if isinstance(value, tuple):
        for place, part in enumerate(value):
            check_number(part, f"{argument}[{place}]")
    elif isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise AlgorithmError(f"{argument} is {value!r}; pass an integer of 64 bits")


def checked_start(start: Any, argument: str) -> Any:
    """*start* as a number that kernels count from. Raises `AlgorithmError` for what is none."""
    check_number(start, f"{argument}.start")
    if isinstance(start, (np.integer, np.floating)) or type(start) in (int, float):
        return start
    if isinstance(start, (bool, np.bool_)):
        return int(start)
    raise AlgorithmError(f"{argument}.start is {start!r}; pass an integer, or another number")
