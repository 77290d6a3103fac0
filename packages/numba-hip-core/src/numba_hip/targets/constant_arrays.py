"""Arrays that kernels captured: constants of their modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from llvmlite import ir
from numba.core import types

if TYPE_CHECKING:
    from numba_hip.targets.context import HipContext


def build_constant_array(
    context: HipContext, builder: ir.IRBuilder, kind: types.Array, captured: np.ndarray[Any, Any]
) -> ir.Value:
    """The array *captured*, of Numba type *kind*: its bytes in constant memory, its shape and strides as constants."""
    order: Literal["F", "C"] = "F" if kind.layout == "F" else "C"
    packed = np.array(captured, order=order)
    variable = context.place_constant(builder.module, packed.tobytes(order="A"))
    variable.align = max(variable.align or 1, context.get_abi_alignment(context.get_data_type(kind.dtype)))
    array = context.make_array(kind)(context, builder)
    pointer = variable
    if context.constant_address_space:
        pointer = builder.addrspacecast(variable, ir.PointerType(variable.value_type))
    context.populate_array(
        array,
        data=builder.bitcast(pointer, array.data.type),
        shape=[context.get_constant(types.intp, extent) for extent in packed.shape],
        strides=[context.get_constant(types.intp, stride) for stride in packed.strides],
        itemsize=context.get_constant(types.intp, packed.itemsize),
        meminfo=None,
    )
    return array._getvalue()
