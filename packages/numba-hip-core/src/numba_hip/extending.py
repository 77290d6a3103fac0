"""Teaching kernels new functions and types: Numba's extension API, for `numba.hip`.

`overload`, `overload_method`, `overload_attribute` and `intrinsic` are Numba's, with ``target="hip"``: what they define
holds in kernels alone, on every device, also in those compiled before. All else is `numba.extending`'s own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import intrinsic as _intrinsic
from numba.extending import (
    lower_builtin,
    lower_cast,
    make_attribute_wrapper,
    models,
    register_model,
    type_callable,
    typeof_impl,
)
from numba.extending import overload as _overload
from numba.extending import overload_attribute as _overload_attribute
from numba.extending import overload_method as _overload_method

TARGET = "hip"


def overload(function: Callable[..., Any], **options: Any) -> Any:
    """Define what *function* is in kernels: the decorated function gets the types of the arguments, and returns an
    implementation for them, or ``None``. See `numba.extending.overload`."""
    return _overload(function, **{"target": TARGET, **options})


def overload_method(kind: type, name: str, **options: Any) -> Any:
    """Define method *name* of values of Numba type *kind* in kernels. See `numba.extending.overload_method`."""
    return _overload_method(kind, name, **{"target": TARGET, **options})


def overload_attribute(kind: type, name: str, **options: Any) -> Any:
    """Define attribute *name* of values of Numba type *kind* in kernels. See `numba.extending.overload_attribute`."""
    return _overload_attribute(kind, name, **{"target": TARGET, **options})


def intrinsic(*args: Any, **options: Any) -> Any:
    """Define a function of kernels by the LLVM IR that it is lowered to. See `numba.extending.intrinsic`."""
    decorate = _intrinsic(**{"target": TARGET, **options})
    return decorate(*args) if args else decorate


__all__ = [
    "intrinsic", "lower_builtin", "lower_cast", "make_attribute_wrapper", "models", "overload", "overload_attribute",
    "overload_method", "register_model", "type_callable", "typeof_impl",
]  # fmt: skip
