"""``numba_cuda_mlir.extending``: decorators of Numba's extension API, which there take the registry to use.

There is only one registry of types here, which any of the names mean. Lowering through MLIR is not available.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from numba.core import types
from numba.extending import as_numba_type, make_attribute_wrapper, register_model, typeof_impl
from numba.extending import type_callable as _type_callable

from hip_runtime.errors import UnsupportedError
from numba_hip.language.registry import typing as typing_registry
from numba_hip_cuda import extending
from numba_hip_cuda.extending import intrinsic

Decorator = Callable[[Any], Any]

NO_LOWERING = (
    "it would be lowered by a builder of MLIR, and kernels are lowered to LLVM IR here; write it as an overload, or as "
    "an intrinsic that uses llvmlite's builder (numba_hip.extending)"
)


@runtime_checkable
class ArgumentHandler(Protocol):
    """The objects in a kernel's ``extensions``: see `numba_hip.dispatch.argument_extensions`."""

    def prepare_args(self, ty: types.Type, val: Any, stream: Any = None, retr: list[Any] | None = None) -> Any:
        """The type and the value to pass instead of *val*, whose type is *ty*."""


class LoweringRegistry:
    """A registry that accepts no implementations, as they would use an MLIR builder."""

    def lower(self, *signature: Any) -> Decorator:
        """Raises `UnsupportedError`: there is no MLIR builder here."""
        return _refuse("lower", signature)

    def lower_getattr(self, *signature: Any) -> Decorator:
        """Raises `UnsupportedError`: there is no MLIR builder here."""
        return _refuse("lower_getattr", signature)

    def lower_getattr_generic(self, *signature: Any) -> Decorator:
        """Raises `UnsupportedError`: there is no MLIR builder here."""
        return _refuse("lower_getattr_generic", signature)

    def lower_cast(self, *signature: Any) -> Decorator:
        """Raises `UnsupportedError`: there is no MLIR builder here."""
        return _refuse("lower_cast", signature)


def _refuse(name: str, signature: tuple[Any, ...]) -> Decorator:
    where = f"numba_cuda_mlir.extending.{name}({', '.join(map(str, signature))})"
    raise UnsupportedError(f"{where} has no counterpart on HIP: {NO_LOWERING}")


lowering_registry = LoweringRegistry()
lower_builtin = lowering_registry.lower
lower_cast = lowering_registry.lower_cast


def overload(function: Any, jit_options: Any = None, *, typing_registry: Any = None, **options: Any) -> Decorator:
    """Define the meaning of *function* in kernels; see `numba_hip.extending.overload`."""
    return extending.overload(function, jit_options, **options)


def overload_method(kind: Any, name: str, *, typing_registry: Any = None, **options: Any) -> Decorator:
    """Define the method *name* of values of type *kind*; see `numba_hip.extending.overload_method`."""
    return extending.overload_method(kind, name, **options)


def overload_classmethod(kind: Any, name: str, *, typing_registry: Any = None, **options: Any) -> Decorator:
    """Define the class method *name* of type *kind*; see `numba_hip.extending.overload_classmethod`."""
    return extending.overload_classmethod(kind, name, **options)


def overload_attribute(
    kind: Any, name: str, *, typing_registry: Any = None, lowering_registry: Any = None, **options: Any
) -> Decorator:
    """Define the attribute *name* of values of type *kind*; see `numba_hip.extending.overload_attribute`."""
    return extending.overload_attribute(kind, name, **options)


def register_jitable(*functions: Any, typing_registry: Any = None, **options: Any) -> Any:
    """Let kernels call a plain function. Options, if given, are those of `overload`."""

    def register(function: Any) -> Any:
        inline = options.get("inline", "never")
        rest = {name: value for name, value in options.items() if name != "inline"}
        extending.overload(function, rest, inline=inline, strict=False)(lambda *args, **kws: function)
        return function

    return register(*functions) if functions else register


def type_callable(function: Any, typing_registry: Any = None) -> Decorator:
    """`numba.extending.type_callable`."""
    decorate: Decorator = _type_callable(function)
    return decorate


def refresh_registries(**chosen: bool) -> None:
    """Does nothing: definitions take effect at once."""
    del chosen


__all__ = [
    "ArgumentHandler", "as_numba_type", "intrinsic", "lower_builtin", "lower_cast", "lowering_registry",
    "make_attribute_wrapper", "overload", "overload_attribute", "overload_classmethod", "overload_method",
    "refresh_registries", "register_jitable", "register_model", "type_callable", "typeof_impl", "typing_registry",
]  # fmt: skip
