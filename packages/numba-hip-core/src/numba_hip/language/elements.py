"""Elements of arrays by their address, for functions of the kernel language that take an array and an index."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types


def element_pointer(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """The address of the element that the first two arguments of a call name: an array, and an index."""
    kind, index_type = sig.args[:2]
    if isinstance(index_type, types.BaseTuple):
        indices = list(zip(cgutils.unpack_tuple(builder, args[1], len(index_type)), index_type, strict=True))
    else:
        indices = [(args[1], index_type)]
    values = [context.cast(builder, index, of, types.intp) for index, of in indices]
    array = context.make_array(kind)(context, builder, args[0])
    checked = context.enable_boundscheck
    return cgutils.get_item_pointer(context, builder, kind, array, values, wraparound=True, boundscheck=checked)
