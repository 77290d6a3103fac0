"""Methods and attributes that types only have in kernels.

Numba's own `overload_method` registers a method's lowering by its type and name in a registry that its CPU target
shares. If both targets define a method with that name, one replaces the other once a program has used both. Definitions
here are in separate registries.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable
from typing import Any, ClassVar

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate
from numba.extending import overload

from numba_hip.language.registry import lowering, typing

TARGET = "hip"

Read = Callable[[Any, ir.IRBuilder, types.Type, ir.Value, str], ir.Value]

_attributes: defaultdict[str, list[tuple[Any, Read]]] = defaultdict(list)
"""How attributes are read, by their names and then by types: a registry of Numba has but one for each."""


def define_method(kind: Any, name: str, define: Callable[..., Any], **options: Any) -> None:
    """Make *define* the method *name* of values of *kind*, a class of Numba types, or a type: see
    `numba.extending.overload_method`, which has the same *options*."""
    function = _overload(name, define, options)
    signature = inspect.signature(define)

    class Method(AbstractTemplate):
        key = ("hip.method", kind, name)

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Any:
            found = self.context.resolve_function_type(function, (self.this, *args), kws)
            return None if found is None else found.replace(pysig=signature).as_method()

    _enter(kind, name, lambda context, value: types.BoundFunction(Method, value))

    @lowering.lower(Method.key, kind, types.VarArg(types.Any))
    def _lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return _call(context, builder, function, sig.args, args)


def define_attribute(kind: Any, name: str, define: Callable[..., Any], **options: Any) -> None:
    """Make *define* the attribute *name* of values of *kind*: see `numba.extending.overload_attribute`."""
    function = _overload(name, define, options)

    def resolve(context: Any, value: types.Type) -> types.Type | None:
        found = context.resolve_function_type(function, (value,), {})
        return None if found is None else found.return_type

    def read(context: Any, builder: ir.IRBuilder, of: types.Type, value: ir.Value, attribute: str) -> ir.Value:
        return _call(context, builder, function, (of,), (value,))

    _enter(kind, name, resolve)
    _attributes[name].append((kind, read))


def find_attribute(value: types.Type, name: str) -> Read | None:
    """The lowering of attribute *name* of a value of type *value*, if one was defined for kernels."""
    found: list[Read] = [read for kind, read in _attributes.get(name, ()) if _is_of(value, kind)]
    return found[-1] if found else None


def _is_of(value: types.Type, kind: Any) -> bool:
    return isinstance(value, kind) if isinstance(kind, type) else bool(value == kind)


def _overload(name: str, define: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """A separate function that kernels call for *define*."""

    def function(*args: Any, **kwargs: Any) -> None:
        raise NotImplementedError

    function.__name__ = function.__qualname__ = name
    overload(function, target=TARGET, **options)(define)
    return function


def _enter(kind: Any, name: str, resolve: Callable[[Any, types.Type], types.Type | None]) -> None:
    """Let *resolve* determine the type of member *name*, before Numba does."""

    class Member(AttributeTemplate):
        key = kind
        metadata: ClassVar[dict[str, str]] = {"target": TARGET}

        def generic_resolve(self, value: types.Type, attribute: str) -> types.Type | None:
            return resolve(self.context, value) if attribute == name else None

    typing.register_attr(Member)


def _call(context: Any, builder: ir.IRBuilder, function: Any, kinds: Any, args: Any) -> ir.Value:
    resolved = context.typing_context.resolve_value_type(function)
    call = context.get_function(resolved, resolved.get_call_type(context.typing_context, kinds, {}))
    context.add_linking_libs(getattr(call, "libs", ()))
    return call(builder, args)
