"""Arrays of integers that are wider than those of the only signature of a kernel.

Numba CUDA passes such a kernel whatever array it is given, with the array's own strides: what its author sees are the
low bytes of each element, which is the number wherever that fits.
"""

from __future__ import annotations

from collections.abc import Sequence

from numba.core import types

from numba_hip.advisory_warnings import advise_on_narrowing


def is_narrowed(actual: types.Type, formal: types.Type) -> bool:
    """Whether *formal* is an array of integers with any strides, whose elements an array of type *actual* has room for.

    A kernel for *formal* then works on the low bytes of each element, where they lie; what is above them stays.
    """
    return (
        isinstance(actual, types.Array)
        and isinstance(formal, types.Array)
        and isinstance(actual.dtype, types.Integer)
        and isinstance(formal.dtype, types.Integer)
        and formal.layout == "A"
        and actual.ndim == formal.ndim
        and actual.dtype.bitwidth >= formal.dtype.bitwidth  # otherwise the last element would reach beyond the array
        and (actual.mutable or not formal.mutable)
    )


def warn_of_narrowing(
    kernel: str, names: Sequence[str], given: Sequence[types.Type], overload: Sequence[types.Type]
) -> None:
    """Warn of each of the arguments *names* whose type is narrowed to that in *overload*."""
    for name, actual, formal in zip(names, given, overload, strict=True):
        if is_narrowed(actual, formal) and actual.dtype != formal.dtype:
            advise_on_narrowing(kernel, name, actual, formal)
