"""``hip.shared``: arrays that the threads of a block share (LDS)."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from hip_runtime.said_names import our
from numba_hip.language import array_allocation
from numba_hip.language.stub import Lower, device_function


@device_function("shared.array")
def array(shape: types.Type, dtype: types.Type, alignment: types.Type = None) -> tuple[types.Type, Lower]:
    """``shared.array(shape, dtype, alignment=None)``: an array in shared memory, one for each block.

    *shape* is a constant, or a tuple of constants. Shape 0 is the dynamic shared memory of the launch, the fourth
    number of its configuration: as many elements as fit, and all such arrays of a kernel lie at the same place.
    *alignment*, in bytes, is a constant power of two. The array is not initialised."""
    extents = array_allocation.constant_shape(our("shared.array"), shape)
    element = array_allocation.element_type(our("shared.array"), dtype)
    aligned = array_allocation.constant_alignment(our("shared.array"), alignment)
    kind = types.Array(element, len(extents), "C")

    def lower_static(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        array_allocation.check_alignment(our("shared.array"), aligned)
        size = array_allocation.bytes_of(our("shared.array"), context, extents, element, context.most_shared_bytes)
        context.active_code_library.note_shared(f"shape {extents} of {element}", size)
        storage = ir.ArrayType(context.get_data_type(element), max(1, _count(extents)))
        data = context.shared_memory(builder, storage, max(aligned, context.get_abi_alignment(storage.element)))
        return array_allocation.make_array(context, builder, kind, data, array_allocation.constants(context, extents))

    def lower_dynamic(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        array_allocation.check_alignment(our("shared.array"), aligned)
        data, size = context.dynamic_shared_memory(builder)
        itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(element)))
        return array_allocation.make_array(context, builder, kind, data, [builder.udiv(size, itemsize)])

    return kind, lower_dynamic if extents == (0,) else lower_static


@device_function("shared.load")
def load(target: types.Type, source: types.Type, start: types.Type = 0) -> tuple[types.Type, Lower]:
    """``shared.load(target, source, start=0)``: all threads of the block copy a part of *source* into *target*, an
    array in shared memory of the same type of numbers; both have one axis or two.

    *start* is the index of the part's first element, a number, or a tuple of one for each axis; 0 stands for the
    beginning in all. Elements outside of *source*, also at negative indices, are 0. All threads of the block have to
    call this together, with the same arguments. *target* may be read after the next `syncthreads`, and must not be
    written, nor may what is read of *source*, until then."""
    from numba_hip.language import shared_loads  # few kernels use it

    part = shared_loads.define(target, source, start)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        shared_loads.write(context, builder, part, sig, args)
        return context.get_dummy_value()

    return types.void, lower


def _count(extents: tuple[int, ...]) -> int:
    count = 1
    for extent in extents:
        count *= extent
    return count
