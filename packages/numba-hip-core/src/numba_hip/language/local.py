"""``hip.local``: arrays that each thread has for itself."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from hip_runtime.said_names import our
from numba_hip.language import array_allocation
from numba_hip.language.stub import Lower, device_function


@device_function("local.array")
def array(shape: types.Type, dtype: types.Type, alignment: types.Type = None) -> tuple[types.Type, Lower]:
    """``local.array(shape, dtype, alignment=None)``: an array of this thread's own. *shape* is a constant, or a tuple
    of constants, *alignment*, in bytes, a constant power of two.

    The array is not initialised."""
    aligned = array_allocation.constant_alignment(our("local.array"), alignment)
    extents = array_allocation.constant_shape(our("local.array"), shape)
    element = array_allocation.element_type(our("local.array"), dtype)
    kind = types.Array(element, len(extents), "C")

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        array_allocation.check_alignment(our("local.array"), aligned)
        size = array_allocation.bytes_of(our("local.array"), context, extents, element, context.most_private_bytes)
        itemsize = context.get_abi_sizeof(context.get_data_type(element))
        storage = ir.ArrayType(context.get_data_type(element), max(1, size // itemsize))
        with builder.goto_entry_block():
            data = builder.alloca(storage)  # Numba's helper would fill it with zeros
        data.align = max(aligned, context.get_abi_alignment(storage.element))
        return array_allocation.make_array(context, builder, kind, data, array_allocation.constants(context, extents))

    return kind, lower
