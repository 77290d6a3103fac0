"""Complex numbers from two numbers, ``np.complex64(re, im)``, or from a vector of two, and vectors from complex
numbers.

Numba itself has ``complex(re, im)``, and NumPy's types called with one number. A vector of two can be assigned to an
element of a complex array, and a complex number to an element of an array of such vectors.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, Signature, signature

from numba_hip._numba.typing import type_of_constructor
from numba_hip.language.registry import lowering, typing
from numba_hip.language.vector_types import VectorType, components, make_vector

REAL = (types.Integer, types.Float, types.Boolean)


def _parts_fit(args: tuple[types.Type, ...]) -> bool:
    """Whether *args* make a complex number: two real numbers, or a vector of two."""
    if len(args) == 1:
        return isinstance(args[0], VectorType) and args[0].count == 2
    return len(args) == 2 and all(isinstance(types.unliteral(part), REAL) for part in args)


@typing.register_attr
class _NumberClass(AttributeTemplate):
    """Calls of NumPy's complex types; those of its other types are Numba's."""

    key = types.NumberClass

    def resolve___call__(self, kind: types.NumberClass) -> types.Type | None:
        made = kind.instance_type
        return types.Function(_constructor(made)) if isinstance(made, types.Complex) else None


def _constructor(made: types.Complex) -> type[AbstractTemplate]:
    """What types calls of the NumPy type *made*."""

    class Template(AbstractTemplate):
        key = made

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Signature | None:
            if kws:
                raise TypingError(f"np.{made} takes no arguments by name")
            if _parts_fit(args):
                return signature(made, *args)
            if len(args) != 1 or isinstance(args[0], VectorType):
                passed = ", ".join(map(str, args))
                raise TypingError(f"np.{made} takes a number, two real numbers or a vector of two, not ({passed})")
            return self.context.resolve_function_type(type_of_constructor(self.context, made), args, kws)

    return Template


@typing.register_global(complex)
class _Complex(AbstractTemplate):
    key = complex

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Signature | None:
        if kws or len(args) != 1 or not _parts_fit(args):
            return None
        base = args[0].base
        narrow = base.bitwidth <= (32 if isinstance(base, types.Float) else 16)
        return signature(types.complex64 if narrow else types.complex128, *args)


@typing.register_global(operator.setitem)
class _Assign(AbstractTemplate):
    key = operator.setitem

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Signature | None:
        array, index, value = args
        indices = list(index) if isinstance(index, types.BaseTuple) else [index]
        if not isinstance(array, types.Array) or not array.mutable or len(indices) != array.ndim:
            return None
        if not all(isinstance(one, types.Integer) for one in indices):
            return None
        vector, number = (array.dtype, value) if isinstance(array.dtype, VectorType) else (value, array.dtype)
        fits = isinstance(vector, VectorType) and vector.count == 2 and isinstance(number, types.Complex)
        return signature(types.void, array, index, value) if fits else None


@lowering.lower_cast(VectorType, types.Complex)
def _to_complex(context: Any, builder: ir.IRBuilder, kind: VectorType, to: types.Complex, value: ir.Value) -> ir.Value:
    return _make(context, builder, to, components(builder, value, kind))


@lowering.lower_cast(types.Complex, VectorType)
def _to_vector(context: Any, builder: ir.IRBuilder, kind: types.Complex, to: VectorType, value: ir.Value) -> ir.Value:
    return make_vector(context, builder, to, components(builder, value, kind))


@lowering.lower(types.NumberClass, *[types.Any] * 2)
def _of_two(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return _make(context, builder, sig.return_type, list(zip(args, sig.args, strict=True)))


@lowering.lower(complex, VectorType)
def _of_vector(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return context.cast(builder, args[0], sig.args[0], sig.return_type)


def _make(context: Any, builder: ir.IRBuilder, kind: types.Complex, parts: list[tuple[ir.Value, types.Type]]) -> Any:
    (real, real_type), (imag, imag_type) = parts
    made = context.make_complex(builder, kind)
    made.real = context.cast(builder, real, real_type, kind.underlying_float)
    made.imag = context.cast(builder, imag, imag_type, kind.underlying_float)
    return made._getvalue()
