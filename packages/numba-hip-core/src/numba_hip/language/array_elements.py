"""Reads and writes of array elements, and their addresses.

Numba's own lowering handles any index. For an index of a single element, this lowering tells LLVM more: that the
address is within the array, so nothing wraps around, and the distance between rows in bytes, as stored with the array,
instead of a product of extents. The index along the contiguous axis comes first, as neighbouring rows share it.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from numba_hip._numba.lowering import getitem_of_any_index, setitem_of_any_index
from numba_hip.language.registry import lowering


def element_pointer(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """The address of the element in the first two arguments of a call: an array and an index."""
    kind, index_type = sig.args[:2]
    extents = cgutils.unpack_tuple(builder, _member(context, builder, kind, args[0], "shape"), kind.ndim)
    if isinstance(index_type, types.BaseTuple):
        indices = list(zip(cgutils.unpack_tuple(builder, args[1], len(index_type)), index_type, strict=True))
    else:
        indices = [(args[1], index_type)]
    places = [
        place_from_start(context, builder, index, of, extent)
        for (index, of), extent in zip(indices, extents, strict=True)
    ]
    if context.enable_boundscheck:
        for axis, (place, extent) in enumerate(zip(places, extents, strict=True)):
            cgutils.do_boundscheck(context, builder, place, extent, axis)
    pointer, strides = (_member(context, builder, kind, args[0], name) for name in ("data", "strides"))
    return _address_of(builder, kind, pointer, strides, places)


def _member(context: Any, builder: ir.IRBuilder, kind: types.Array, array: ir.Value, name: str) -> ir.Value:
    """A member of the value *array*. Numba's proxies of arrays keep all of them in memory of their own, and what LLVM
    takes to find that nothing else is done with that grows with the square of how many there are."""
    return context.data_model_manager[kind].get(builder, array, name)


def place_from_start(context: Any, builder: ir.IRBuilder, index: ir.Value, kind: Any, extent: ir.Value) -> ir.Value:
    """*index* counted from the start of its axis of *extent* elements; a negative index counts from the end."""
    unsigned = isinstance(kind, types.Integer) and not kind.signed
    wide = context.cast(builder, index, kind, types.uintp if unsigned else types.intp)
    if unsigned:
        return wide
    negative = builder.icmp_signed("<", wide, wide.type(0))
    return builder.select(negative, builder.add(wide, extent), wide)


def _address_of(
    builder: ir.IRBuilder, kind: types.Array, data: ir.Value, strides: ir.Value, places: list[ir.Value]
) -> ir.Value:
    """The address of the element at *places*, which must exist."""
    pointer = data
    steps = list(zip(places, cgutils.unpack_tuple(builder, strides, kind.ndim), strict=True))
    if steps and kind.layout in "CF":
        dense, _ = steps.pop(-1 if kind.layout == "C" else 0)
        pointer = builder.gep(pointer, [dense], inbounds=True)
    address = builder.bitcast(pointer, ir.IntType(8).as_pointer())
    for place, step in reversed(steps):
        address = builder.gep(address, [builder.mul(place, step, flags=("nsw",))], inbounds=True)
    return builder.bitcast(address, data.type)


def _names_element(kind: types.Array, index: Any) -> bool:
    members = index if isinstance(index, types.BaseTuple) else (index,)
    return len(members) == kind.ndim and all(isinstance(member, types.Integer) for member in members)


@lowering.lower(operator.getitem, types.Array, types.Integer)
@lowering.lower(operator.getitem, types.Array, types.BaseTuple)
def _read(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    kind, index = sig.args
    if not _names_element(kind, index) or isinstance(sig.return_type, types.Buffer):
        return getitem_of_any_index(index)(context, builder, sig, args)
    pointer = element_pointer(context, builder, sig, args)
    return context.unpack_value(builder, kind.dtype, pointer, align=None if kind.aligned else 1)


@lowering.lower(operator.setitem, types.Array, types.Integer, types.Any)
@lowering.lower(operator.setitem, types.Array, types.BaseTuple, types.Any)
def _write(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
    kind, index, value_type = sig.args
    if not _names_element(kind, index):
        return setitem_of_any_index(context, builder, sig, args)
    pointer = element_pointer(context, builder, sig, args)
    value = context.cast(builder, args[2], value_type, kind.dtype)
    context.pack_value(builder, kind.dtype, value, pointer, align=None if kind.aligned else 1)
    return None


@lowering.lower_getattr(types.Array, "size")
def _size(context: Any, builder: ir.IRBuilder, kind: types.Array, value: ir.Value) -> ir.Value:
    """The number of elements. For one axis it is the extent, which is next to the address in a kernel's arguments."""
    if kind.ndim == 1:
        return builder.extract_value(_member(context, builder, kind, value, "shape"), 0)
    return _member(context, builder, kind, value, "nitems")
