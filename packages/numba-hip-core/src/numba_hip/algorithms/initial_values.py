"""What combinations of values begin with: ``init``, and the type that values are combined in."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numba import typeof
from numba.core import types

from numba_hip.algorithms.operands import Operands
from numba_hip.cooperative import values
from numba_hip.cooperative.value_parts import numbers_of
from numba_hip.errors import AlgorithmError


def accumulator_type(operands: Operands, read: Any, init: Any) -> types.Type:
    """The type that values are combined in: that of *init* if it is a number of NumPy's, else theirs. Dates keep their
    unit."""
    kind = operands.type_of(read, "source")
    if not isinstance(init, np.generic) or init.dtype.names is not None or init.dtype.kind in "mM":
        return kind
    return typeof(init)


def add_initial(operands: Operands, init: Any, kind: types.Type) -> Any:
    """Give *init* to the kernels; returns a function of (leaves, i) that reads it as a value of *kind*. Raises
    `AlgorithmError` if it has not as many numbers, or numbers that *kind* has not."""
    parts, dtypes = numbers_of(init), values.dtypes_of(kind, "source")
    if len(parts) != len(dtypes) or not all(isinstance(part, (int, float, complex, np.generic)) for part in parts):
        raise AlgorithmError(f"init is {init!r}; values are {kind}")
    converted = [_converted(part, dtype, init, kind) for part, dtype in zip(parts, dtypes, strict=True)]
    return values.read_constants(tuple(map(operands.add, converted)), kind)


def _converted(part: Any, dtype: np.dtype[Any], init: Any, kind: types.Type) -> Any:
    """*part*, a number of *init*, as one of *dtype*, which may round it but gives no other number."""
    given = np.asarray(part)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numbers that do not fit, which are told below
            made = given.astype(dtype)
        is_same = _says_the_same(given, made)
    except (OverflowError, TypeError, ValueError):
        is_same = False
    if not is_same:
        raise AlgorithmError(
            f"init is {init!r}, and values are {kind}, which has no such number: pass one that it has, or a number of "
            "NumPy's, such as np.float64(0), in whose type values are combined then"
        )
    return made[()]


def _says_the_same(given: np.ndarray[Any, Any], made: np.ndarray[Any, Any]) -> bool:
    """Whether *made* is the number *given*, but for its precision."""
    before, after = given.dtype.kind, made.dtype.kind
    if after in "mM":
        return before in "iu" or (before == after and bool(given == made or (np.isnat(given) and np.isnat(made))))
    if before == "c" and after != "c" and given.imag != 0:
        return False
    return before not in "mM" and (after in "fc" or bool(given == made))
