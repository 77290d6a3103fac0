"""Whether kernels read and write elements of the arrays that algorithms get."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numba.core.errors import NumbaError

from hip_runtime import DeviceArray
from numba_hip.arguments.argument_types import describe
from numba_hip.errors import AlgorithmError, KernelArgumentError

NUMBERS = "biuf"


def check_elements(columns: Iterable[DeviceArray], argument: str) -> None:
    """Raise `AlgorithmError` for an array, of these *columns*, whose elements kernels do not know, such as numbers of
    another byte order."""
    for column in columns:
        _check_column(column, argument)


def _check_column(array: DeviceArray, argument: str) -> None:
    try:
        describe(array)
    except KernelArgumentError as error:
        raise AlgorithmError(f"{argument}: {error}") from None
    except NumbaError:
        raise AlgorithmError(
            f"{argument} has elements of {array.dtype}, which kernels do not know; algorithms take numbers and records "
            "of numbers"
        ) from None


def can_store(result: np.dtype[np.generic], element: np.dtype[np.generic]) -> bool:
    """Whether an element of one dtype can be assigned a *result* of another: numbers are converted, dates are not."""
    if result == element:
        return True
    return result.kind in NUMBERS + "c" and element.kind in (NUMBERS + "c" if result.kind != "c" else "c")
