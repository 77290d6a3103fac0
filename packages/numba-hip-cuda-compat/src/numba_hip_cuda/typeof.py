"""``typeof_impl`` of `numba.cuda`: types registered here apply in kernels, whatever type Numba has for the class.

A class without a type in Numba gets this one there, too, as it did when Numba CUDA was part of Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import typeof_impl as numbas

from numba_hip.typeof import kernel_typeof_impl, typeof

Function = Callable[[Any, Any], Any]


class TypeofImpl:
    """Behaves like the `functools.singledispatch` function that it stands for."""

    def __call__(self, value: Any, context: Any) -> Any:
        return kernel_typeof_impl(value, context)

    def register(self, cls: type, func: Function | None = None) -> Any:
        """Register *func*, which gives the type of values of class *cls* in kernels. Without *func*, a decorator."""
        if func is None:
            return lambda function: self.register(cls, function)
        kernel_typeof_impl.register(cls, func)
        if cls not in numbas.registry:
            numbas.register(cls, func)
        return func

    def dispatch(self, cls: type) -> Function:
        """The function for values of class *cls*."""
        return kernel_typeof_impl.dispatch(cls)

    @property
    def registry(self) -> Any:
        """The registered functions by class, including Numba's."""
        return {**numbas.registry, **{cls: of for cls, of in kernel_typeof_impl.registry.items() if cls is not object}}


typeof_impl = TypeofImpl()

__all__ = ["TypeofImpl", "typeof", "typeof_impl"]
