"""Reductions of whole arrays within one thread: ``a.sum()``, ``np.max(a)`` and their like, and other NumPy functions
that need no memory.

They are plain loops over the elements, in the order of the array, by the one thread that calls them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, signature
from numba.extending import overload

from numba_hip.language.registry import lowering, typing

Implementation = Callable[..., Any] | None


def _is_real(kind: types.Type) -> bool:
    return isinstance(kind, (types.Integer, types.Float, types.Boolean))


def _accumulator(kind: types.Type) -> types.Type:
    """The type in which elements of *kind* are added: as in NumPy, 64 bits for integers."""
    if isinstance(kind, types.Boolean):
        return types.int64
    if isinstance(kind, types.Integer):
        return types.int64 if kind.signed else types.uint64
    return kind


class _Methods(AttributeTemplate):
    """Types ``a.sum`` and similar methods. It does not use `overload_method`: Numba stores the lowering for all its
    targets under one key, and that of its CPU target would replace ours once a program has used both."""

    key = types.Array
    templates: ClassVar[dict[str, type[AbstractTemplate]]] = {}

    def generic_resolve(self, array: types.Array, attribute: str) -> types.Type | None:
        template = self.templates.get(attribute)
        return None if template is None else types.BoundFunction(template, array)


typing.register_attr(_Methods)


def _make_method(name: str, function: Any) -> None:
    """Make *function* of one array the method *name* of arrays."""

    class Template(AbstractTemplate):
        key = f"hip.array.{name}"

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
            if args or kws:
                raise TypingError(f"array.{name} takes no arguments in a kernel: it reduces the whole array")
            of_function = self.context.resolve_function_type(function, (self.this,), {})
            return signature(of_function.return_type, recvr=self.this)

    _Methods.templates[name] = Template

    @lowering.lower(Template.key, types.Array)
    def _lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        kind = context.typing_context.resolve_value_type(function)
        call = context.get_function(kind, kind.get_call_type(context.typing_context, sig.args, {}))
        context.add_linking_libs(getattr(call, "libs", ()))
        return call(builder, args)


def _reduction(name: str | None, *functions: Any) -> Callable[[Any], Any]:
    """Make the decorated definition the implementation of NumPy's *functions* of one array, and of the array method
    *name* if given."""

    def decorate(define: Callable[[Any], Implementation]) -> Callable[[Any], Implementation]:
        def of_array(a):  # type: ignore[no-untyped-def]  # Numba compares annotations of this and of what it returns
            return define(a) if isinstance(a, types.Array) else None

        for function in functions:
            overload(function, target="hip")(of_array)
        if name is not None:
            _make_method(name, functions[0])
        return define

    return decorate


@_reduction("sum", np.sum)
def _sum(kind: Any) -> Implementation:
    start = _accumulator(kind.dtype)(0)

    def implementation(a):  # type: ignore[no-untyped-def]
        total = start
        for value in a.flat:
            total += value
        return total

    return implementation


@_reduction("prod", np.prod)
def _prod(kind: Any) -> Implementation:
    start = _accumulator(kind.dtype)(1)

    def implementation(a):  # type: ignore[no-untyped-def]
        product = start
        for value in a.flat:
            product *= value
        return product

    return implementation


@_reduction("mean", np.mean)
def _mean(kind: Any) -> Implementation:
    start = kind.dtype(0) if isinstance(kind.dtype, (types.Float, types.Complex)) else types.float64(0)
    count = type(start)

    def implementation(a):  # type: ignore[no-untyped-def]
        total = start
        for value in a.flat:
            total += value
        return total / count(a.size)

    return implementation


@_reduction("var", np.var)
def _var(kind: Any) -> Implementation:
    if not _is_real(kind.dtype):
        return None

    def implementation(a):  # type: ignore[no-untyped-def]
        mean = a.mean()
        total = mean - mean
        for value in a.flat:
            total += (value - mean) * (value - mean)
        return total / type(mean)(a.size)

    return implementation


@_reduction("std", np.std)
def _std(kind: Any) -> Implementation:
    if not _is_real(kind.dtype):
        return None

    def implementation(a):  # type: ignore[no-untyped-def]
        return np.sqrt(a.var())

    return implementation


@_reduction(None, np.nansum)
def _nansum(kind: Any) -> Implementation:
    start = _accumulator(kind.dtype)(0)

    def implementation(a):  # type: ignore[no-untyped-def]
        total = start
        for value in a.flat:
            if value == value:
                total += value
        return total

    return implementation


@_reduction(None, np.nanprod)
def _nanprod(kind: Any) -> Implementation:
    start = _accumulator(kind.dtype)(1)

    def implementation(a):  # type: ignore[no-untyped-def]
        product = start
        for value in a.flat:
            if value == value:
                product *= value
        return product

    return implementation


@_reduction(None, np.nanmean)
def _nanmean(kind: Any) -> Implementation:
    start = kind.dtype(0) if isinstance(kind.dtype, (types.Float, types.Complex)) else types.float64(0)
    number = type(start)

    def implementation(a):  # type: ignore[no-untyped-def]
        total = start
        count = 0
        for value in a.flat:
            if value == value:
                total += value
                count += 1
        return total / number(count)

    return implementation


@_reduction(None, np.nanvar)
def _nanvar(kind: Any) -> Implementation:
    if not _is_real(kind.dtype):
        return None

    def implementation(a):  # type: ignore[no-untyped-def]
        mean = np.nanmean(a)
        total = mean - mean
        count = 0
        for value in a.flat:
            if value == value:
                total += (value - mean) * (value - mean)
                count += 1
        return total / type(mean)(count)

    return implementation


@_reduction(None, np.nanstd)
def _nanstd(kind: Any) -> Implementation:
    if not _is_real(kind.dtype):
        return None

    def implementation(a):  # type: ignore[no-untyped-def]
        return np.sqrt(np.nanvar(a))

    return implementation


@_reduction(None, np.count_nonzero)
def _count_nonzero(kind: Any) -> Implementation:
    zero = kind.dtype(0)

    def implementation(a):  # type: ignore[no-untyped-def]
        count = 0
        for value in a.flat:
            if value != zero:
                count += 1
        return count

    return implementation


def _first_of(
    better: Callable[[Any, Any], Any], function: str, *, index: bool, skip_nan: bool = False
) -> Callable[[Any], Implementation]:
    """The element, or its index, that is *better* than all before it; NaN is better than all, as in NumPy, or with
    *skip_nan* worse."""
    compare: Any = njit(inline="always")(better)
    message = f"{function} of an array that has no elements"

    def define(kind: Any) -> Implementation:
        if not _is_real(kind.dtype):
            return None

        def implementation(a):  # type: ignore[no-untyped-def]
            if a.size == 0:
                raise ValueError(message)
            place = 0
            best = a.flat[0]
            for i in range(1, a.size):
                value = a.flat[i]
                if skip_nan:
                    replaces = best != best or compare(value, best)
                else:
                    replaces = best == best and (compare(value, best) or value != value)
                if replaces:
                    place = i
                    best = value
            return place if index else best

        return implementation

    return define


def _greater(a: Any, b: Any) -> Any:
    return a > b


def _less(a: Any, b: Any) -> Any:
    return a < b


_reduction("max", np.max, np.amax)(_first_of(_greater, "max", index=False))
_reduction("min", np.min, np.amin)(_first_of(_less, "min", index=False))
_reduction(None, np.nanmax)(_first_of(_greater, "nanmax", index=False, skip_nan=True))
_reduction(None, np.nanmin)(_first_of(_less, "nanmin", index=False, skip_nan=True))
_reduction("argmax", np.argmax)(_first_of(_greater, "argmax", index=True))
_reduction("argmin", np.argmin)(_first_of(_less, "argmin", index=True))


@_reduction("all", np.all)
def _all(kind: Any) -> Implementation:
    def implementation(a):  # type: ignore[no-untyped-def]
        for value in a.flat:  # noqa: SIM110 - there are no generators in kernels
            if not value:
                return False
        return True

    return implementation


@_reduction("any", np.any)
def _any(kind: Any) -> Implementation:
    def implementation(a):  # type: ignore[no-untyped-def]
        for value in a.flat:  # noqa: SIM110
            if value:
                return True
        return False

    return implementation
