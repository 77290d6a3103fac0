"""Arithmetic of vectors, component by component, with vectors of the same type and with numbers.

A number is first converted to the type of the vector's components, and results have that type, as in HIP C++. The
operator ``/`` is for vectors of floats.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, Signature, signature

from numba_hip.language.registry import lowering, typing
from numba_hip.language.vector_types import VectorType

Function = Callable[..., Any]

BINARY: tuple[Function, ...] = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
)
UNARY: tuple[Function, ...] = (operator.neg, operator.pos, abs)
IN_PLACE: dict[Function, Function] = {
    operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul,
    operator.itruediv: operator.truediv, operator.ifloordiv: operator.floordiv, operator.imod: operator.mod,
}  # fmt: skip


def _vector_of(args: tuple[types.Type, ...]) -> VectorType | None:
    """The type of vectors that *args* are to be combined as; None where they are none, or do not fit each other."""
    vectors = {arg for arg in args if isinstance(arg, VectorType)}
    numbers = [arg for arg in args if not isinstance(arg, VectorType)]
    if len(vectors) != 1 or not all(isinstance(types.unliteral(arg), (types.Integer, types.Float)) for arg in numbers):
        return None
    return vectors.pop()


def _define(spelt: Function, function: Function, count: int) -> None:
    """Implement *function*, of *count* arguments, for vectors; kernels write it as *spelt*."""

    class Template(AbstractTemplate):
        key = spelt

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Signature | None:
            kind = _vector_of(args) if len(args) == count and not kws else None
            if kind is None or (function is operator.truediv and not isinstance(kind.base, types.Float)):
                return None
            return signature(kind, *(kind if isinstance(arg, VectorType) else kind.base for arg in args))

    typing.register_global(spelt)(Template)

    for kinds in {2: ((VectorType, VectorType), (VectorType, types.Number), (types.Number, VectorType))}.get(
        count, ((VectorType,),)
    ):

        @lowering.lower(spelt, *kinds)
        def _lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
            return _by_component(context, builder, function, sig, args)


def _by_component(context: Any, builder: ir.IRBuilder, function: Function, sig: Signature, args: Any) -> ir.Value:
    kind = sig.return_type
    resolved = context.typing_context.resolve_function_type(
        context.typing_context.resolve_value_type(function), (kind.base,) * len(args), {}
    )
    apply = context.get_function(function, resolved)
    result: ir.Value = ir.Constant(context.get_value_type(kind), ir.Undefined)
    for index in range(kind.count):
        parts = [
            builder.extract_value(value, index) if isinstance(given, VectorType) else value
            for value, given in zip(args, sig.args, strict=True)
        ]
        wanted = [context.cast(builder, part, kind.base, wide) for part, wide in zip(parts, resolved.args, strict=True)]
        number = context.cast(builder, apply(builder, wanted), resolved.return_type, kind.base)
        result = builder.insert_value(result, number, index)
    return result


for _operation in BINARY:
    _define(_operation, _operation, 2)
for _spelt, _operation in IN_PLACE.items():
    _define(_spelt, _operation, 2)
for _operation in UNARY:
    _define(_operation, _operation, 1)
