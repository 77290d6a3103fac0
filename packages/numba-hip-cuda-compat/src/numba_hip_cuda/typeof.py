"""``typeof_impl`` of `numba.cuda`: what is registered there holds for kernels, whatever Numba knows of the class.

A class that Numba knows nothing of, it knows from then on, too: so did Numba CUDA when it was a part of Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import typeof_impl as numbas

from numba_hip.typeof import kernel_typeof_impl, typeof

Function = Callable[[Any, Any], Any]


class TypeofImpl:
    """Answers as the dispatcher of `functools.singledispatch` that it stands for."""

    def __call__(self, value: Any, context: Any) -> Any:
        return kernel_typeof_impl(value, context)

    def register(self, cls: type, func: Function | None = None) -> Any:
        """Let kernels know values of class *cls* by the type that *func* gives; without that, a decorator."""
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
        """The functions by their classes, those of Numba's among them."""
        return {**numbas.registry, **{cls: of for cls, of in kernel_typeof_impl.registry.items() if cls is not object}}


typeof_impl = TypeofImpl()

__all__ = ["TypeofImpl", "typeof", "typeof_impl"]
