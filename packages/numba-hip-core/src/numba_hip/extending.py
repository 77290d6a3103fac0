"""Teaching kernels new functions and types: Numba's extension API, for `numba.hip`.

`overload`, `overload_method`, `overload_classmethod`, `overload_attribute` and `intrinsic` are like Numba's, with
``target="hip"``: what they define holds in kernels alone, on every device, also in those compiled before. All else is
`numba.extending`'s own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types
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
from numba.extending import overload_classmethod as _overload_classmethod
from numba.extending import overload_method as _overload_method

from numba_hip.language.methods import TARGET, define_attribute, define_method


def overload(function: Callable[..., Any], **options: Any) -> Any:
    """Define what *function* is in kernels: the decorated function gets the types of the arguments, and returns an
    implementation for them, or ``None``. See `numba.extending.overload`."""
    return _overload(function, **{"target": TARGET, **options})


def overload_method(kind: type, name: str, **options: Any) -> Any:
    """Define method *name* of values of Numba type *kind* in kernels. See `numba.extending.overload_method`.

    Numba's CPU target may have a method of the same name; neither takes the place of the other's.
    """
    if options.setdefault("target", TARGET) != TARGET:
        return _overload_method(kind, name, **options)
    return _definer(define_method, kind, name, options)


def overload_classmethod(kind: type, name: str, **options: Any) -> Any:
    """Define class method *name* of Numba type *kind* in kernels. See `numba.extending.overload_classmethod`."""
    if options.setdefault("target", TARGET) != TARGET:
        return _overload_classmethod(kind, name, **options)
    return _definer(define_method, types.TypeRef(kind), name, options)


def overload_attribute(kind: type, name: str, **options: Any) -> Any:
    """Define attribute *name* of values of Numba type *kind* in kernels. See `numba.extending.overload_attribute`."""
    if options.setdefault("target", TARGET) != TARGET:
        return _overload_attribute(kind, name, **options)
    return _definer(define_attribute, kind, name, options)


def _definer(enter: Callable[..., None], kind: Any, name: str, options: dict[str, Any]) -> Any:
    """The decorator that lets *enter* define a member of *kind* by the decorated function."""
    rest = {option: value for option, value in options.items() if option != "target"}

    def decorate(define: Callable[..., Any]) -> Callable[..., Any]:
        enter(kind, name, define, **rest)
        return define

    return decorate


def intrinsic(*args: Any, **options: Any) -> Any:
    """Define a function of kernels by the LLVM IR that it is lowered to. See `numba.extending.intrinsic`."""
    decorate = _intrinsic(**{"target": TARGET, **options})
    return decorate(*args) if args else decorate


__all__ = [
    "intrinsic", "lower_builtin", "lower_cast", "make_attribute_wrapper", "models", "overload", "overload_attribute",
    "overload_classmethod", "overload_method", "register_model", "type_callable", "typeof_impl",
]  # fmt: skip
