"""What a fragment has as a value: its lane's elements, how many they are, and the shape of the whole."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, signature

from numba_hip.language.matrix.functions import is_number
from numba_hip.language.matrix.kinds import Fragment
from numba_hip.language.matrix.unit import I64, read_element, write_element
from numba_hip.language.registry import lowering, typing


@typing.register_global(operator.getitem)
class _Read(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        if not kws and len(args) == 2 and isinstance(args[0], Fragment) and isinstance(args[1], types.Integer):
            return signature(args[0].dtype, args[0], types.int64)
        return None


@typing.register_global(operator.setitem)
class _Write(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        if kws or len(args) != 3 or not isinstance(args[0], Fragment) or not isinstance(args[1], types.Integer):
            return None
        return signature(types.none, args[0], types.int64, args[0].dtype) if is_number(args[2]) else None


@typing.register_global(len)
class _Length(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        return signature(types.intp, *args) if not kws and len(args) == 1 and isinstance(args[0], Fragment) else None


@typing.register_attr
class _Attributes(AttributeTemplate):
    key = Fragment

    def resolve_shape(self, kind: Fragment) -> types.Type:
        return types.UniTuple(types.intp, 2)


def _checked(context: Any, builder: ir.IRBuilder, kind: Fragment, index: ir.Value) -> ir.Value:
    """*index*, where a negative one counts from the end; checked where indices of arrays are.

    The end is that of the lane with the most elements: one that has none has room for them, too, and nothing of others
    is overwritten."""
    unit = context.matrix_unit()
    negative = builder.icmp_signed("<", index, index.type(0))
    place = builder.select(negative, builder.add(index, I64(unit.most(kind))), index)
    if context.enable_boundscheck:
        cgutils.do_boundscheck(context, builder, place, unit.count(builder, kind), 0)
    return place


@lowering.lower(operator.getitem, Fragment, types.Integer)
def _read(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    kind = sig.args[0]
    return read_element(builder, context, kind, args[0], _checked(context, builder, kind, args[1]))


@lowering.lower(operator.setitem, Fragment, types.Integer, types.Any)
def _write(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
    kind = sig.args[0]
    value = context.cast(builder, args[2], sig.args[2], kind.dtype)
    write_element(builder, context, kind, args[0], _checked(context, builder, kind, args[1]), value)
    return context.get_dummy_value()


@lowering.lower(len, Fragment)
def _length(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return context.matrix_unit().count(builder, sig.args[0])


@lowering.lower_getattr(Fragment, "shape")
def _shape(context: Any, builder: ir.IRBuilder, kind: Fragment, value: ir.Value) -> ir.Value:
    extents = [context.get_constant(types.intp, extent) for extent in (kind.rows, kind.columns)]
    return context.make_tuple(builder, types.UniTuple(types.intp, 2), extents)
