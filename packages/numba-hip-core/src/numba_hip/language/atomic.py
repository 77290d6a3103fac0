"""``hip.atomic``: atomic operations on array elements.

Each takes an array in global or shared memory, an index (a number, or a tuple of as many as the array has dimensions;
the remainder of an unsigned and a signed integer is a float to Numba, so floats are taken, and cut to integers) and
operands, which are cast to the type of the elements; each returns the element as it was before. The elements are
integers or floats of 16, 32 or 64 bits; `add` and `sub` take complex numbers, too, whose two parts change one after the
other. The order of memory operations around it is relaxed, as in CUDA and HIP.

*scope* is ``"block"``, ``"device"``, or ``"system"``: atomic among the threads of the block, or of the device, or also
with the host and other devices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError

from hip_runtime.said_names import our
from numba_hip.language.array_elements import element_pointer
from numba_hip.language.optional_indices import without_none
from numba_hip.language.stub import Definition, Lower, Stub, device_function, given

Update = Callable[[Any, ir.IRBuilder, types.Type, ir.Value, ir.Value, str], ir.Value]
"""How an element changes: of context, builder, element type, pointer, operand and scope it gives the old value."""

SCOPES = ("block", "device", "system")


def _scope(function: str, scope: types.Type | str) -> str:
    """The scope that an argument means, a literal or left out."""
    name = scope if isinstance(scope, str) else given(scope)
    if name not in SCOPES:
        raise TypingError(no_scope(function))
    return str(name)


def no_scope(function: str) -> str:
    """What is said of a scope that the operation *function* does not have."""
    return f"{our(f'atomic.{function}')}: the scope has to be one of {', '.join(map(repr, SCOPES))}"


def _element(
    function: str, ary: types.Type, idx: types.Type, floats: bool = True, complexes: bool = False
) -> types.Type:
    """The type of the elements, after checking array and index."""
    if not isinstance(ary, types.Array):
        raise TypingError(f"{our(f'atomic.{function}')}: the first argument has to be an array, got {ary}")
    if not ary.mutable:
        raise TypingError(f"{our(f'atomic.{function}')}: the array is read-only")
    idx = without_none(idx)
    indices = list(idx) if isinstance(idx, types.BaseTuple) else [idx]
    numbers = (types.Integer, types.Float, types.IntEnumMember)
    if not all(isinstance(index, numbers) for index in indices) or len(indices) != ary.ndim:
        raise TypingError(
            f"{our(f'atomic.{function}')}: an array of {ary.ndim} dimensions cannot be indexed with {idx}"
        )
    if isinstance(ary.dtype, types.Integer) or (floats and ary.dtype in (types.float16, types.float32, types.float64)):
        return ary.dtype
    if complexes and isinstance(ary.dtype, types.Complex):
        return ary.dtype
    allowed = "integers, float16, float32 and float64" if floats else "integers"
    allowed += ", and complex numbers" if complexes else ""
    raise TypingError(f"{our(f'atomic.{function}')} works on {allowed}, not on {ary.dtype}")


def _rmw(operation: str) -> Update:
    def update(
        context: Any, builder: ir.IRBuilder, kind: types.Type, pointer: ir.Value, value: ir.Value, scope: str
    ) -> ir.Value:
        return context.atomic_rmw(builder, operation, pointer, value, scope)

    return update


def _subtract(
    context: Any, builder: ir.IRBuilder, kind: types.Type, pointer: ir.Value, value: ir.Value, scope: str
) -> ir.Value:
    """An addition, which gives the same result: only additions have instructions on GPUs."""
    return context.atomic_rmw(builder, "fadd", pointer, builder.fneg(value), scope)


def _by_type(integer: str, unsigned: str, real: Update | str) -> Update:
    """One operation of LLVM for signed integers, unsigned ones and floats."""

    def update(
        context: Any, builder: ir.IRBuilder, kind: types.Type, pointer: ir.Value, value: ir.Value, scope: str
    ) -> ir.Value:
        if isinstance(kind, types.Float):
            return (_rmw(real) if isinstance(real, str) else real)(context, builder, kind, pointer, value, scope)
        return _rmw(integer if kind.signed else unsigned)(context, builder, kind, pointer, value, scope)

    return update


def _by_part(real: Update) -> Update:
    """*real* for the real and then for the imaginary part: another thread may access the number in between."""

    def update(
        context: Any, builder: ir.IRBuilder, kind: types.Type, pointer: ir.Value, value: ir.Value, scope: str
    ) -> ir.Value:
        if not isinstance(kind, types.Complex):
            return real(context, builder, kind, pointer, value, scope)
        part = kind.underlying_float
        parts = builder.bitcast(pointer, context.get_value_type(part).as_pointer())
        given, old = context.make_complex(builder, kind, value=value), context.make_complex(builder, kind)
        places = parts, builder.gep(parts, [ir.Constant(ir.IntType(32), 1)], inbounds=True)
        old.real = real(context, builder, part, places[0], given.real, scope)
        old.imag = real(context, builder, part, places[1], given.imag, scope)
        return old._getvalue()

    return update


def _while_better(predicate: str) -> Update:
    """The operand replaces an element for which the comparison *predicate* holds, so never if either is NaN."""

    def update(
        context: Any, builder: ir.IRBuilder, kind: types.Type, pointer: ir.Value, value: ir.Value, scope: str
    ) -> ir.Value:
        done = context.atomic_extreme(builder, predicate, pointer, value)
        if done is not None:
            return done
        bits = ir.IntType(kind.bitwidth)
        address = builder.bitcast(pointer, bits.as_pointer())
        start = builder.load_atomic(address, context.ordering(scope), kind.bitwidth // 8)
        before, loop, after = builder.block, builder.append_basic_block("again"), builder.append_basic_block("done")
        replaces = builder.fcmp_ordered(predicate, value, builder.bitcast(start, value.type))
        builder.cbranch(replaces, loop, after)
        builder.position_at_end(loop)
        old = builder.phi(bits)
        old.add_incoming(start, before)
        current = builder.bitcast(old, value.type)
        better = builder.fcmp_ordered(predicate, value, current)
        new = builder.bitcast(builder.select(better, value, current), bits)
        exchange = builder.cmpxchg(address, old, new, context.ordering(scope), "monotonic")
        seen = builder.extract_value(exchange, 0)
        old.add_incoming(seen, loop)
        builder.cbranch(builder.extract_value(exchange, 1), after, loop)
        builder.position_at_end(after)
        found = builder.phi(bits)
        found.add_incoming(start, before)
        found.add_incoming(seen, loop)
        return builder.bitcast(found, value.type)

    return update


def _operation(name: str, meaning: str, update: Update, *, floats: bool = True, complexes: bool = False) -> Stub:
    def define(
        ary: types.Type, idx: types.Type, val: types.Type, scope: types.Type | str = "device"
    ) -> tuple[types.Type, Lower]:
        element, among = _element(name, ary, idx, floats, complexes), _scope(name, scope)

        def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            value = context.cast(builder, args[2], sig.args[2], element)
            return update(context, builder, element, element_pointer(context, builder, sig, args), value, among)

        return element, lower

    return _stub(name, f"``atomic.{name}(ary, idx, val, scope='device')``: {meaning}", define)


def _stub(name: str, doc: str, define: Definition) -> Stub:
    define.__doc__ = doc
    define.__module__ = __name__
    return device_function(f"atomic.{name}")(define)


add = _operation("add", "``ary[idx] += val``.", _by_part(_by_type("add", "add", "fadd")), complexes=True)
sub = _operation("sub", "``ary[idx] -= val``.", _by_part(_by_type("sub", "sub", _subtract)), complexes=True)
and_ = _operation("and_", "``ary[idx] &= val``.", _by_type("and", "and", "and"), floats=False)
or_ = _operation("or_", "``ary[idx] |= val``.", _by_type("or", "or", "or"), floats=False)
xor = _operation("xor", "``ary[idx] ^= val``.", _by_type("xor", "xor", "xor"), floats=False)
exch = _operation("exch", "``ary[idx] = val``.", _rmw("xchg"))
max = _operation(
    "max",
    "``ary[idx] = max(ary[idx], val)``; where either is NaN, nothing changes.",
    _by_type("max", "umax", _while_better(">")),
)
min = _operation(
    "min",
    "``ary[idx] = min(ary[idx], val)``; where either is NaN, nothing changes.",
    _by_type("min", "umin", _while_better("<")),
)
nanmax = _operation("nanmax", "as `max`, with NaN as a missing value.", _by_type("max", "umax", "fmax"))
nanmin = _operation("nanmin", "as `min`, with NaN as a missing value.", _by_type("min", "umin", "fmin"))
inc = _operation("inc", "``ary[idx] += 1``, or 0 where it is *val* or more already.", _rmw("uinc_wrap"), floats=False)
dec = _operation(
    "dec", "``ary[idx] -= 1``, or *val* where it is 0 or greater than *val*.", _rmw("udec_wrap"), floats=False
)


def _compare_and_swap(
    context: Any,
    builder: ir.IRBuilder,
    kind: types.Type,
    pointer: ir.Value,
    values: tuple[ir.Value, ir.Value],
    scope: str,
) -> ir.Value:
    """Swap by comparing bits; returns the old value."""
    bits = ir.IntType(kind.bitwidth)
    address = builder.bitcast(pointer, bits.as_pointer())
    old, new = (builder.bitcast(value, bits) for value in values)
    exchange = builder.cmpxchg(address, old, new, context.ordering(scope), "monotonic")
    return builder.bitcast(builder.extract_value(exchange, 0), values[0].type)


@device_function("atomic.cas")
def cas(
    ary: types.Type, idx: types.Type, old: types.Type, val: types.Type, scope: types.Type | str = "device"
) -> tuple[types.Type, Lower]:
    """``atomic.cas(ary, idx, old, val, scope='device')``: ``ary[idx] = val`` if it is *old*; returns the old value."""
    element, among = _element("cas", ary, idx), _scope("cas", scope)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        expected, new = (context.cast(builder, args[n], sig.args[n], element) for n in (2, 3))
        pointer = element_pointer(context, builder, sig, args)
        return _compare_and_swap(context, builder, element, pointer, (expected, new), among)

    return element, lower


@device_function("atomic.compare_and_swap")
def compare_and_swap(
    ary: types.Type, old: types.Type, val: types.Type, scope: types.Type | str = "device"
) -> tuple[types.Type, Lower]:
    """``atomic.compare_and_swap(ary, old, val, scope='device')``: `cas` on element 0 of an array of one axis."""
    element, among = _element("compare_and_swap", ary, types.intp), _scope("compare_and_swap", scope)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        expected, new = (context.cast(builder, args[n], sig.args[n], element) for n in (1, 2))
        array = context.make_array(sig.args[0])(context, builder, args[0])
        return _compare_and_swap(context, builder, element, array.data, (expected, new), among)

    return element, lower
