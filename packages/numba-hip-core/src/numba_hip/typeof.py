"""The Numba type of a value in kernels: Numba's own, unless a library has registered another one for kernels."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numba
from numba.core import types
from numba.extending import typeof_impl

from numba_hip._numba.typing import Purpose


class TypeofContext(NamedTuple):
    """What a function that is registered is told beside the value."""

    purpose: Purpose


@singledispatch
def kernel_typeof_impl(value: Any, context: TypeofContext) -> types.Type | None:
    """The type that kernels know *value* by; libraries register theirs by the class of the value."""
    found: types.Type | None = typeof_impl(value, context)
    return found


_of_numba = kernel_typeof_impl.dispatch(object)


def typeof(value: Any, purpose: Purpose = Purpose.argument) -> types.Type:
    """The type that kernels know *value* by. `ValueError` for one that has none."""
    found = own_type(value, purpose)
    return numba.typeof(value, purpose) if found is None else found


def own_type(value: Any, purpose: Purpose) -> types.Type | None:
    """The type of *value* that a library has registered for kernels alone; ``None`` where none did."""
    function = kernel_typeof_impl.dispatch(type(value))
    return None if function is _of_numba else function(value, TypeofContext(purpose))
