"""C functions that Numba's lowering calls by name, as code for devices.

They exist in Numba's own process, where only the CPU device can call them. This module has those that kernels can use;
on devices that cannot reach the process, calls of the others are errors at compile time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils
from numba.core.errors import LoweringError

from numba_hip._numba.lowering import c_helper_names

if TYPE_CHECKING:
    from numba_hip.targets.context import HipContext

_PREFIX = "numba_"
_WIDE, _BIT = ir.IntType(64), ir.IntType(1)


def supply(context: HipContext, function: ir.Function, *, in_process: bool) -> None:
    """Define *function*, if it is only declared and is one of Numba's helpers. Raises `LoweringError` for a helper
    without device code, unless kernels run *in_process*."""
    if not function.name.startswith(_PREFIX) or not function.is_declaration:
        return
    name = function.name.removeprefix(_PREFIX)
    write = _WRITERS.get(name)
    if write is not None:
        function.linkage = "linkonce_odr"  # each library that calls it has it
        function.attributes.add("alwaysinline")
        write(context, ir.IRBuilder(function.append_basic_block("entry")), function)
    elif not in_process and name in c_helper_names():
        raise LoweringError(f"this needs Numba's C function {function.name!r}, which GPUs do not have")


def _read(builder: ir.IRBuilder, numbers: ir.Value, index: ir.Value) -> Any:
    return builder.load(builder.gep(numbers, [index]))


def _update(builder: ir.IRBuilder, place: ir.Value, change: Callable[[ir.Value], ir.Value]) -> None:
    builder.store(change(builder.load(place)), place)


def _product(builder: ir.IRBuilder, extents: ir.Value, first: ir.Value, count: ir.Value) -> ir.Value:
    """The product of the extents from number *first* to the last of *count*."""
    place = cgutils.alloca_once_value(builder, _WIDE(1))
    with cgutils.for_range_slice(builder, first, count, _WIDE(1)) as (axis, _):
        _update(builder, place, lambda found: builder.mul(found, _read(builder, extents, axis)))
    return builder.load(place)


def _write_reshape(context: HipContext, builder: ir.IRBuilder, function: ir.Function) -> None:
    """The strides of an array that is reshaped to a shape with as many elements, in C order. Returns 1, or 0 if there
    are no such strides.

    An element of the new array has the address of the element with the same number in the old one. Strides can express
    this if each position at which the old array is not contiguous is also between two axes of the new one.
    """
    del context
    ndim, extents, strides, new_ndim, new_extents, new_strides, itemsize, _ = function.args
    result = cgutils.alloca_once_value(builder, function.function_type.return_type(1))
    total = _product(builder, extents, _WIDE(0), ndim)
    fits = builder.icmp_signed("==", total, _product(builder, new_extents, _WIDE(0), new_ndim))
    with builder.if_then(builder.not_(fits)):
        builder.ret(function.function_type.return_type(0))
    with builder.if_then(builder.icmp_signed("==", total, _WIDE(0))):
        with cgutils.for_range(builder, new_ndim) as loop:
            builder.store(itemsize, builder.gep(new_strides, [loop.index]))
        builder.ret(function.function_type.return_type(1))
    with cgutils.for_range(builder, new_ndim) as loop:
        number = _product(builder, new_extents, builder.add(loop.index, _WIDE(1)), new_ndim)
        distance = _distance(builder, ndim, extents, strides, number)
        builder.store(distance, builder.gep(new_strides, [loop.index]))
    with _breaks(builder, ndim, extents, strides) as inner:
        found = cgutils.alloca_once_value(builder, _BIT(0))
        with cgutils.for_range(builder, new_ndim) as loop:
            between = builder.icmp_signed("==", _product(builder, new_extents, loop.index, new_ndim), inner)
            _update(builder, found, lambda value: builder.or_(value, between))
        with builder.if_then(builder.not_(builder.load(found))):
            builder.store(function.function_type.return_type(0), result)
    builder.ret(builder.load(result))


def _distance(
    builder: ir.IRBuilder, ndim: ir.Value, extents: ir.Value, strides: ir.Value, number: ir.Value
) -> ir.Value:
    """The distance in bytes from the first element to that of *number*, in C order."""
    rest, total = (cgutils.alloca_once(builder, _WIDE) for _ in range(2))
    builder.store(number, rest)
    builder.store(_WIDE(0), total)
    with cgutils.for_range(builder, ndim) as loop:
        axis = builder.sub(builder.sub(ndim, loop.index), _WIDE(1))
        extent, left = _read(builder, extents, axis), builder.load(rest)
        way = builder.mul(builder.urem(left, extent), _read(builder, strides, axis))
        _update(builder, total, lambda found: builder.add(found, way))
        builder.store(builder.udiv(left, extent), rest)
    return builder.load(total)


class _breaks:
    """Code for each position between two axes at which elements in C order are not contiguous; yields the number of
    elements in the inner axes."""

    def __init__(self, builder: ir.IRBuilder, ndim: ir.Value, extents: ir.Value, strides: ir.Value) -> None:
        self._builder = builder
        self._ndim, self._extents, self._strides = ndim, extents, strides

    def __enter__(self) -> ir.Value:
        builder = self._builder
        self._inner = cgutils.alloca_once_value(builder, _WIDE(1))
        self._reach = cgutils.alloca_once_value(builder, _WIDE(0))  # bytes from one element to the next, further out
        self._loop = cgutils.for_range(builder, self._ndim)
        axis = builder.sub(builder.sub(self._ndim, self._loop.__enter__().index), _WIDE(1))
        self._extent, self._stride = _read(builder, self._extents, axis), _read(builder, self._strides, axis)
        self._matters = builder.if_then(builder.icmp_signed("!=", self._extent, _WIDE(1)))
        self._matters.__enter__()
        inner = builder.load(self._inner)
        breaks = builder.and_(
            builder.icmp_signed("!=", inner, _WIDE(1)),
            builder.icmp_signed("!=", self._stride, builder.load(self._reach)),
        )
        self._broken = builder.if_then(breaks)
        self._broken.__enter__()
        return inner

    def __exit__(self, *error: object) -> None:
        builder = self._builder
        self._broken.__exit__(None, None, None)
        _update(builder, self._inner, lambda found: builder.mul(found, self._extent))
        builder.store(builder.mul(self._stride, self._extent), self._reach)
        self._matters.__exit__(None, None, None)
        self._loop.__exit__(None, None, None)


def _write_complex_power(context: HipContext, builder: ir.IRBuilder, function: ir.Function) -> None:
    """A complex number raised to the power of another, through their logarithms."""
    base, power, result = function.args
    real, imaginary, up, turn = (
        builder.load(builder.gep(number, [ir.IntType(32)(0), ir.IntType(32)(part)]))
        for number in (base, power)
        for part in (0, 1)
    )
    kind = real.type

    def store(first: ir.Value, second: ir.Value) -> None:
        for part, value in enumerate((first, second)):
            builder.store(value, builder.gep(result, [ir.IntType(32)(0), ir.IntType(32)(part)]))
        builder.ret_void()

    def is_zero(first: ir.Value, second: ir.Value) -> ir.Value:
        return builder.and_(*(builder.fcmp_ordered("==", value, kind(0)) for value in (first, second)))

    def call(name: str, *arguments: ir.Value) -> ir.Value:
        return context.call_math(builder, name, arguments)

    with builder.if_then(is_zero(up, turn)):
        store(kind(1), kind(0))
    with builder.if_then(is_zero(real, imaginary)):
        none = builder.or_(builder.fcmp_unordered("<", up, kind(0)), builder.fcmp_unordered("!=", turn, kind(0)))
        value = builder.select(none, kind(float("nan")), kind(0))
        store(value, value)
    size, angle = call("hypot", real, imaginary), call("atan2", imaginary, real)
    length, phase = call("pow", size, up), builder.fmul(angle, up)
    turns = builder.fcmp_unordered("!=", turn, kind(0))
    shorter = builder.fdiv(length, call("exp", builder.fmul(angle, turn)))
    further = builder.fadd(phase, builder.fmul(turn, call("log", size)))
    length, phase = builder.select(turns, shorter, length), builder.select(turns, further, phase)
    store(*(builder.fmul(length, call(name, phase)) for name in ("cos", "sin")))


_WRITERS: dict[str, Callable[[HipContext, ir.IRBuilder, ir.Function], None]] = {
    "attempt_nocopy_reshape": _write_reshape,
    "cpow": _write_complex_power,
    "cpowf": _write_complex_power,
}
"""What defines each helper that kernels have."""
