"""``array.view(dtype)`` of arrays in Fortran order, to elements of another size: the first axis changes its length.

NumPy only changes the last axis, and has rejected these arrays since its release 1.23.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from numba_hip._numba.lowering import view_as_dtype
from numba_hip.language.registry import lowering


@lowering.lower("array.view", types.Array, types.DTypeSpec)
def _view(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    kind, made = sig.args[0], sig.return_type
    before, after = (context.get_abi_sizeof(context.get_data_type(one.dtype)) for one in (kind, made))
    if kind.layout != "F" or kind.ndim < 2 or before == after:
        return view_as_dtype(context, builder, sig, args)
    array, view = context.make_array(kind)(context, builder, args[0]), context.make_array(made)(context, builder)
    extents, steps = (cgutils.unpack_tuple(builder, field, kind.ndim) for field in (array.shape, array.strides))
    size = ir.Constant(extents[0].type, after)
    of_column = builder.mul(extents[0], ir.Constant(size.type, before))
    with builder.if_then(builder.icmp_unsigned("!=", builder.urem(of_column, size), size.type(0)), likely=False):
        message = "a view with larger elements: their size has to divide that of the first axis of an array in F order"
        context.call_conv.return_user_exc(builder, ValueError, (message,))
    bytes_of_all = builder.mul(array.nitems, ir.Constant(size.type, before))
    context.populate_array(
        view,
        data=builder.bitcast(array.data, view.data.type),
        shape=[builder.udiv(of_column, size), *extents[1:]],
        strides=[size, *steps[1:]],
        itemsize=size,
        meminfo=array.meminfo,
        parent=array.parent,
    )
    view.nitems = builder.udiv(bytes_of_all, size)
    return view._getvalue()
