"""``a.transpose(axes)``: a view with its axes in another order.

Numba checks the axes with a set, which kernels do not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from numba_hip.language.registry import lowering

NO_ORDER = "axes don't match array"
"""NumPy's words."""


def _permute(context: Any, builder: ir.IRBuilder, sig: Any, array_value: ir.Value, axes: Sequence[ir.Value]) -> Any:
    kind = sig.args[0]
    array = context.make_array(kind)(context, builder, array_value)
    view = context.make_array(sig.return_type)(context, builder)
    extents, steps = (cgutils.unpack_tuple(builder, field, kind.ndim) for field in (array.shape, array.strides))
    word = extents[0].type
    chosen, named = [], word(0)
    for axis in axes:
        place = builder.select(builder.icmp_signed("<", axis, word(0)), builder.add(axis, word(kind.ndim)), axis)
        extent, step = word(0), word(0)
        for number in range(kind.ndim):
            this = builder.icmp_unsigned("==", place, word(number))
            extent, step = builder.select(this, extents[number], extent), builder.select(this, steps[number], step)
            named = builder.or_(named, builder.select(this, word(1 << number), word(0)))
        chosen.append((extent, step))
    with builder.if_then(builder.icmp_unsigned("!=", named, word((1 << kind.ndim) - 1)), likely=False):
        context.call_conv.return_user_exc(builder, ValueError, (NO_ORDER,))
    context.populate_array(
        view,
        data=array.data,
        shape=[extent for extent, _ in chosen],
        strides=[step for _, step in chosen],
        itemsize=array.itemsize,
        meminfo=array.meminfo,
        parent=array.parent,
    )
    return view._getvalue()


@lowering.lower("array.transpose", types.Array, types.BaseTuple)
def _by_tuple(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
    axes = [
        context.cast(builder, value, kind, types.intp)
        for value, kind in zip(cgutils.unpack_tuple(builder, args[1]), sig.args[1], strict=True)
    ]
    return _permute(context, builder, sig, args[0], axes)


@lowering.lower("array.transpose", types.Array, types.VarArg(types.Any))
def _by_numbers(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
    axes = [context.cast(builder, value, kind, types.intp) for value, kind in zip(args[1:], sig.args[1:], strict=True)]
    return _permute(context, builder, sig, args[0], axes)
