"""``out[i] = row``: an array assigned to a part of another, element by element.

Numba copies a value that overlaps the target. A kernel has no memory for that: within one dimension, elements are
copied in an order that reads each before it is overwritten; any other overlap raises a ValueError.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError

from numba_hip._numba.lowering import view_of_part
from numba_hip.language.registry import lowering

Values = list[ir.Value]


# The first two are as specific as the entries for numbers in array_elements.py; without them neither would be chosen.
@lowering.lower(operator.setitem, types.Array, types.Integer, types.Array)
@lowering.lower(operator.setitem, types.Array, types.BaseTuple, types.Array)
@lowering.lower(operator.setitem, types.Array, types.Any, types.Array)
def _assign(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> None:
    kind, value_type = sig.args[0], sig.args[2]
    target, extents, steps = view_of_part(context, builder, sig.args[:2], args[:2])
    if value_type.ndim > len(extents):
        raise TypingError(f"an array of {value_type.ndim} dimensions cannot be assigned to {len(extents)} dimensions")
    array = context.make_array(value_type)(context, builder, args[2])
    source_steps = _broadcast(context, builder, extents, array)
    base = builder.ptrtoint(array.data, extents[0].type) if extents else None
    if base is None:
        _store(context, builder, (kind, value_type), (target, array.data))
        return
    start = builder.ptrtoint(target, base.type)
    backwards = _order(context, builder, extents, (start, steps), (base, source_steps))
    with cgutils.loop_nest(builder, extents, base.type) as indices:
        last = ir.Constant(base.type, 1)
        places = [
            builder.select(backwards, builder.sub(builder.sub(extent, last), index), index)
            for extent, index in zip(extents, indices, strict=True)
        ]
        pointers = [
            builder.inttoptr(_offset(builder, origin, places, by), of.type)
            for origin, by, of in ((start, steps, target), (base, source_steps, array.data))
        ]
        _store(context, builder, (kind, value_type), (pointers[0], pointers[1]))


def _store(context: Any, builder: ir.IRBuilder, kinds: tuple[Any, Any], pointers: tuple[ir.Value, ir.Value]) -> None:
    to, of = ((kind.dtype, None if kind.aligned else 1) for kind in kinds)
    value = context.unpack_value(builder, of[0], pointers[1], align=of[1])
    value = context.cast(builder, value, of[0], to[0])
    context.pack_value(builder, to[0], value, pointers[0], align=to[1])


def _offset(builder: ir.IRBuilder, origin: ir.Value, places: Values, steps: Values) -> ir.Value:
    for place, step in zip(places, steps, strict=True):
        origin = builder.add(origin, builder.mul(place, step))
    return origin


def _broadcast(context: Any, builder: ir.IRBuilder, extents: Values, array: Any) -> Values:
    """The strides of *array* along the dimensions in *extents*; a ValueError in the kernel if it does not fit."""
    own, steps = (cgutils.unpack_tuple(builder, field) for field in (array.shape, array.strides))
    missing = len(extents) - len(own)
    result = [ir.Constant(extents[0].type, 0) for _ in range(missing)]
    for extent, wanted, step in zip(own, extents[missing:], steps, strict=True):
        single = builder.icmp_unsigned("==", extent, ir.Constant(extent.type, 1))
        fits = builder.or_(single, builder.icmp_unsigned("==", extent, wanted))
        with builder.if_then(builder.not_(fits), likely=False):
            message = "cannot assign an array to a part of another that has a different shape"
            context.call_conv.return_user_exc(builder, ValueError, (message,))
        result.append(builder.select(single, ir.Constant(step.type, 0), step))
    return result


def _order(
    context: Any,
    builder: ir.IRBuilder,
    extents: Values,
    target: tuple[ir.Value, Values],
    source: tuple[ir.Value, Values],
) -> ir.Value:
    """Whether the elements have to be copied from the last to the first; a ValueError in the kernel if neither order
    works."""
    (start, steps), (base, source_steps) = target, source
    alike = ir.Constant(ir.IntType(1), 1)
    for step, other in zip(steps, source_steps, strict=True):
        alike = builder.and_(alike, builder.icmp_signed("==", step, other))
    if len(extents) > 1:
        alike = builder.and_(alike, builder.icmp_unsigned("==", start, base))
    with builder.if_then(builder.not_(builder.or_(alike, _apart(builder, extents, target, source))), likely=False):
        message = "an array is assigned to a part of itself that overlaps it; kernels have no memory for a copy"
        context.call_conv.return_user_exc(builder, ValueError, (message,))
    falling = builder.icmp_signed("<", steps[0], ir.Constant(steps[0].type, 0))
    return builder.and_(alike, builder.xor(builder.icmp_unsigned(">", start, base), falling))


def _apart(
    builder: ir.IRBuilder, extents: Values, target: tuple[ir.Value, Values], source: tuple[ir.Value, Values]
) -> ir.Value:
    """Whether the two arrays cannot overlap, judged by the first and last element of each."""
    bounds = []
    for origin, steps in (target, source):
        low, high = origin, origin
        for extent, step in zip(extents, steps, strict=True):
            reach = builder.mul(builder.sub(extent, ir.Constant(extent.type, 1)), step)
            falling = builder.icmp_signed("<", step, ir.Constant(step.type, 0))
            zero = ir.Constant(reach.type, 0)
            low = builder.add(low, builder.select(falling, reach, zero))
            high = builder.add(high, builder.select(falling, zero, reach))
        bounds.append((low, high))
    (low, high), (other_low, other_high) = bounds
    return builder.or_(builder.icmp_unsigned("<", high, other_low), builder.icmp_unsigned("<", other_high, low))
