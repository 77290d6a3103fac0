"""Complex numbers of two float16, for which NumPy has no type: `numba_cuda_mlir` calls them ``types.complex32``.

They are elements of shared and private arrays; their parts, and those of such arrays, are float16. What is computed
with them is computed with complex64, and rounded once; beside a number of another type they are converted as a
complex64 would be.
"""

from __future__ import annotations

import operator
from typing import Any, ClassVar

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, Signature, signature

from numba_hip._numba.lowering import part_of_complex_array
from numba_hip._numba.typing import COMPLEX32, add_conversions
from numba_hip.language.registry import lowering, typing

REAL = (types.boolean, *types.integer_domain, types.float16, types.float32, types.float64)

add_conversions(COMPLEX32, (types.complex64, types.complex128), REAL)

ARITHMETIC: tuple[Any, ...] = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow,
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow,
)  # fmt: skip
UNARY: tuple[Any, ...] = (operator.neg, operator.pos)
COMPARISONS: tuple[Any, ...] = (operator.eq, operator.ne)


def _wider(kind: types.Type) -> types.Type:
    return types.complex64 if kind == COMPLEX32 else kind


def _add_operator(function: Any, operands: int, result: types.Type) -> None:
    @typing.register_global(function)
    class Template(AbstractTemplate):
        key = function
        metadata: ClassVar = {"target": "hip"}  # before Numba's templates, which fail as NumPy has no such type

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Signature | None:
            if kws or len(args) != operands or COMPLEX32 not in args:
                return None
            if all(kind == COMPLEX32 for kind in args):
                return signature(result, *args)
            return self.context.resolve_function_type(function, tuple(map(_wider, args)), kws)

    @lowering.lower(function, *[COMPLEX32] * operands)
    def compute(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        wide = signature(_wider(sig.return_type), *map(_wider, sig.args))
        resolved = context.typing_context.resolve_value_type(function)
        resolved.get_call_type(context.typing_context, wide.args, {})
        values = [context.cast(builder, value, kind, _wider(kind)) for value, kind in zip(args, sig.args, strict=True)]
        found = context.get_function(resolved, wide)(builder, values)
        return context.cast(builder, found, wide.return_type, sig.return_type)


for _functions, _operands, _result in (
    (ARITHMETIC, 2, COMPLEX32),
    (UNARY, 1, COMPLEX32),
    (COMPARISONS, 2, types.boolean),
):
    for _function in _functions:
        _add_operator(_function, _operands, _result)


@typing.register_attr
class _Parts(AttributeTemplate):
    """The real and the imaginary parts of an array: views of it."""

    key = types.Array
    metadata: ClassVar = {"target": "hip"}  # before Numba's, which raises

    def generic_resolve(self, array: types.Array, attribute: str) -> types.Type | None:
        if array.dtype != COMPLEX32 or attribute not in ("real", "imag"):
            return None
        return array.copy(dtype=types.float16, layout="A")


@lowering.lower_getattr(types.Array, "real")
def _real(context: Any, builder: ir.IRBuilder, kind: types.Array, value: ir.Value) -> ir.Value:
    return _part(context, builder, kind, value, "real")


@lowering.lower_getattr(types.Array, "imag")
def _imag(context: Any, builder: ir.IRBuilder, kind: types.Array, value: ir.Value) -> ir.Value:
    return _part(context, builder, kind, value, "imag")


def _part(context: Any, builder: ir.IRBuilder, kind: types.Array, value: ir.Value, name: str) -> ir.Value:
    if kind.dtype != COMPLEX32:
        return part_of_complex_array(context, builder, kind, value, name)
    array = context.make_array(kind)(context, builder, value)
    part_type = kind.copy(dtype=types.float16, layout="A")
    part = context.make_array(part_type)(context, builder)
    first = builder.bitcast(array.data, part.data.type)
    context.populate_array(
        part,
        data=builder.gep(first, [ir.Constant(ir.IntType(32), int(name == "imag"))]),
        shape=array.shape,
        strides=array.strides,
        itemsize=context.get_constant(types.intp, part_type.dtype.bitwidth // 8),
        meminfo=None,
    )
    return part._getvalue()
