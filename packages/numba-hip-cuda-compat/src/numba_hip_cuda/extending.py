"""``numba.cuda.extending``: Numba's decorators, which apply to kernels if no target is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba_hip import extending

TARGET = "hip"

Decorator = Callable[[Any], Any]


def overload(func: Any, jit_options: Any = None, *, target: str = TARGET, **options: Any) -> Decorator:
    """`numba.extending.overload`, for kernels."""
    found: Decorator = extending.overload(func, jit_options=jit_options or {}, target=_of(target), **options)
    return found


def overload_method(typ: Any, attr: str, *, target: str = TARGET, **options: Any) -> Decorator:
    """`numba.extending.overload_method`, for kernels."""
    found: Decorator = extending.overload_method(typ, attr, target=_of(target), **options)
    return found


def overload_classmethod(typ: Any, attr: str, *, target: str = TARGET, **options: Any) -> Decorator:
    """`numba.extending.overload_classmethod`, for kernels."""
    found: Decorator = extending.overload_classmethod(typ, attr, target=_of(target), **options)
    return found


def overload_attribute(typ: Any, attr: str, *, target: str = TARGET, **options: Any) -> Decorator:
    """`numba.extending.overload_attribute`, for kernels."""
    found: Decorator = extending.overload_attribute(typ, attr, target=_of(target), **options)
    return found


def intrinsic(function: Any = None, *, target: str = TARGET, **options: Any) -> Any:
    """`numba.extending.intrinsic`, for kernels; with and without options."""
    decorate = extending.intrinsic(target=_of(target), **options)
    return decorate if function is None else decorate(function)


def _of(target: str) -> str:
    return TARGET if target == "cuda" else target


__all__ = [
    "intrinsic", "overload", "overload_attribute", "overload_classmethod", "overload_method"
]  # fmt: skip
