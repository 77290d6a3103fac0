"""Operations between the lanes of a wave, CUDA's warp. A wave has 32 or 64 lanes.

Functions that end in ``_sync`` take a mask of lanes first, as in CUDA: 64 bits, one for each lane. Inactive lanes do
not take part, whatever the mask says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AttributeTemplate
from numba.extending import typeof_impl

from hip_runtime.said_names import our
from numba_hip.language.registry import lowering, typing
from numba_hip.language.stub import INTERPRETED, Lower, Stub, device_function, given, interpreter, number_type

I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)


class ModuleQuery(Stub):
    """A number known only on the device, written like an attribute of the module: ``hip.laneid``."""

    def __init__(self, name: str, meaning: str, query: str) -> None:
        super().__init__(name, meaning, __name__)
        self.query = query
        """Name of the method of the target context that answers, with an i32."""

    def read(self) -> Any:
        """The number, in the simulator, for the thread that runs; elsewhere this object."""
        thread = interpreter()
        return self if thread is None else INTERPRETED[self.__qualname__](thread)


QUERIES = {
    "laneid": ModuleQuery("laneid", "``hip.laneid``: index of this thread in its wave, an int32.", "lane"),
    "warpsize": ModuleQuery("warpsize", "``hip.warpsize``: lanes of a wave, 32 or 64, an int32.", "wave_size"),
}
"""They are read when they are looked up in a module, so that no simulated operation ever gets such an object."""


def __getattr__(name: str) -> Any:
    if name in QUERIES:
        return QUERIES[name].read()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class ModuleQueries:
    """Contains every pair of a module and the name of an attribute of it that is a `ModuleQuery`."""

    def __contains__(self, pair: tuple[Any, str]) -> bool:
        module, name = pair
        return isinstance(module, types.Module) and isinstance(getattr(module.pymod, name, None), ModuleQuery)


@typeof_impl.register(ModuleQuery)
def _typeof_module_query(value: ModuleQuery, context: Any) -> types.Type:
    del context
    return types.Dummy(f"hip.{value.__name__}")


@typing.register_attr
class _ModuleQueryTemplate(AttributeTemplate):
    key = types.Module

    def generic_resolve(self, module: types.Module, attribute: str) -> types.Type | None:
        return types.int32 if (module, attribute) in ModuleQueries() else None


def _lower_query(stub: ModuleQuery) -> None:
    @lowering.lower_getattr(types.Module, stub.__name__)
    def _lower(context: Any, builder: ir.IRBuilder, module: Any, value: Any) -> ir.Value:
        del module, value
        return getattr(context, stub.query)(builder)


for _query in QUERIES.values():
    _lower_query(_query)

# Votes.


def _vote(function: str, predicate: types.Type) -> Callable[[Any, ir.IRBuilder, Any, Any], ir.Value]:
    kind = number_type(predicate)
    if not isinstance(kind, (types.Integer, types.Boolean)):
        raise TypingError(f"{our(function)}({kind}): Predicate must be an integer or boolean")

    def condition(context: Any, builder: ir.IRBuilder, given: types.Type, value: ir.Value) -> ir.Value:
        return context.is_true(builder, kind, context.cast(builder, value, given, kind))

    return condition


def check_mask(function: str, mask: types.Type) -> None:
    if not isinstance(number_type(mask), types.Integer):
        raise TypingError(f"{our(function)}: Mask type must be an integer, got {mask}")


def masked(context: Any, builder: ir.IRBuilder, lanes: ir.Value, given: types.Type, mask: ir.Value) -> ir.Value:
    """The *lanes* that are in *mask*; a mask of 32 bits stands for lanes 0 to 31, and -1 for all lanes."""
    kind = number_type(given)
    wide = context.cast(builder, context.cast(builder, mask, given, kind), kind, types.int64)
    return builder.and_(lanes, wide)


def _ballot(function: str, mask: types.Type | None, predicate: types.Type, result: Any) -> tuple[types.Type, Lower]:
    condition = _vote(function, predicate)
    if mask is not None:
        check_mask(function, mask)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        vote = condition(context, builder, sig.args[-1], args[-1])
        votes, active = context.ballot(builder, vote), context.active_lanes(builder)
        if mask is not None:
            votes = masked(context, builder, votes, sig.args[0], args[0])
            active = masked(context, builder, active, sig.args[0], args[0])
        return result[1](builder, votes, active)

    return result[0], lower


def _all(builder: ir.IRBuilder, votes: ir.Value, active: ir.Value) -> ir.Value:
    return builder.icmp_unsigned("==", votes, active)


def _any(builder: ir.IRBuilder, votes: ir.Value, active: ir.Value) -> ir.Value:
    return builder.icmp_unsigned("!=", votes, ir.Constant(I64, 0))


def _equal(builder: ir.IRBuilder, votes: ir.Value, active: ir.Value) -> ir.Value:
    none = builder.icmp_unsigned("==", votes, ir.Constant(I64, 0))
    return builder.or_(none, _all(builder, votes, active))


ALL, ANY, EQUAL = ((types.boolean, test) for test in (_all, _any, _equal))
LANES = (types.uint64, lambda builder, votes, active: votes)


@device_function("all_sync")
def all_sync(mask: types.Type, predicate: types.Type) -> tuple[types.Type, Lower]:
    """``all_sync(mask, predicate)``: whether *predicate* is true for every active lane in *mask*."""
    return _ballot("all_sync", mask, predicate, ALL)


@device_function("any_sync")
def any_sync(mask: types.Type, predicate: types.Type) -> tuple[types.Type, Lower]:
    """``any_sync(mask, predicate)``: whether *predicate* is true for any active lane in *mask*."""
    return _ballot("any_sync", mask, predicate, ANY)


@device_function("eq_sync")
def eq_sync(mask: types.Type, predicate: types.Type) -> tuple[types.Type, Lower]:
    """``eq_sync(mask, predicate)``: whether *predicate* is the same for all active lanes in *mask*."""
    return _ballot("eq_sync", mask, predicate, EQUAL)


@device_function("ballot_sync")
def ballot_sync(mask: types.Type, predicate: types.Type) -> tuple[types.Type, Lower]:
    """``ballot_sync(mask, predicate)``: the active lanes in *mask* for which *predicate* is true, bits of a uint64."""
    return _ballot("ballot_sync", mask, predicate, LANES)


@device_function("all")
def all(predicate: types.Type) -> tuple[types.Type, Lower]:
    """``all(predicate)``: whether *predicate* is true for every active lane."""
    return _ballot("all", None, predicate, ALL)


@device_function("any")
def any(predicate: types.Type) -> tuple[types.Type, Lower]:
    """``any(predicate)``: whether *predicate* is true for any active lane."""
    return _ballot("any", None, predicate, ANY)


@device_function("ballot")
def ballot(predicate: types.Type) -> tuple[types.Type, Lower]:
    """``ballot(predicate)``: the active lanes for which *predicate* is true, bits of a uint64."""
    return _ballot("ballot", None, predicate, LANES)


@device_function("activemask")
def activemask() -> tuple[types.Type, Lower]:
    """``activemask()``: the lanes that are active here, bits of a uint64."""
    return types.uint64, lambda context, builder, sig, args: context.active_lanes(builder)


def _lanemask(name: str, meaning: str, of_own: Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]) -> Stub:
    def define() -> tuple[types.Type, Lower]:
        def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            own = builder.shl(ir.Constant(I64, 1), builder.zext(context.lane(builder), I64))
            below = builder.sub(own, ir.Constant(I64, 1))
            every = builder.lshr(ir.Constant(I64, -1), _missing_lanes(context, builder))
            return builder.and_(of_own(builder, own, below), every)

        return types.uint64, lower

    define.__doc__ = f"``{name}()``: {meaning}, bits of a uint64."
    define.__module__ = __name__
    return device_function(name)(define)


def _missing_lanes(context: Any, builder: ir.IRBuilder) -> ir.Value:
    """How many of 64 lanes a wave does not have, an i64."""
    return builder.sub(ir.Constant(I64, 64), builder.zext(context.wave_size(builder), I64))


lanemask_lt = _lanemask("lanemask_lt", "the lanes below this one", lambda builder, own, below: below)
lanemask_le = _lanemask("lanemask_le", "the lanes up to this one", lambda builder, own, below: builder.or_(own, below))
lanemask_eq = _lanemask("lanemask_eq", "this lane", lambda builder, own, below: own)
lanemask_ge = _lanemask("lanemask_ge", "the lanes from this one on", lambda builder, own, below: builder.not_(below))
lanemask_gt = _lanemask(
    "lanemask_gt", "the lanes above this one", lambda builder, own, below: builder.not_(builder.or_(own, below))
)


@device_function("syncwarp")
def syncwarp(mask: types.Type = -1) -> tuple[types.Type, Lower]:
    """``syncwarp(mask=-1)``: wait for the active lanes of the wave; what they wrote before is seen by them after."""
    check_mask("syncwarp", mask)

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        context.wave_barrier(builder)
        return context.get_dummy_value()

    return types.void, lower


# Shuffles.

Way = Literal["lane", "up", "down", "xor", "row_up", "row_down"]
"""Which lane a value comes from: by its number, or by its distance, of the wave or within a row of 16 lanes."""

Source = Callable[[ir.IRBuilder, ir.Value, ir.Value, ir.Value], tuple[ir.Value, ir.Value]]
"""Of own lane, operand and width, all i32: the lane to read from, and whether it is in reach."""


def source_idx(builder: ir.IRBuilder, lane: ir.Value, operand: ir.Value, width: ir.Value) -> tuple[ir.Value, ir.Value]:
    below = builder.sub(width, ir.Constant(I32, 1))
    first = builder.and_(lane, builder.not_(below))
    return builder.or_(first, builder.and_(operand, below)), ir.Constant(I1, 1)


def source_up(builder: ir.IRBuilder, lane: ir.Value, operand: ir.Value, width: ir.Value) -> tuple[ir.Value, ir.Value]:
    first = builder.and_(lane, builder.neg(width))
    source = builder.sub(lane, operand)
    return source, builder.icmp_signed(">=", source, first)


def source_down(builder: ir.IRBuilder, lane: ir.Value, operand: ir.Value, width: ir.Value) -> tuple[ir.Value, ir.Value]:
    end = builder.add(builder.and_(lane, builder.neg(width)), width)
    source = builder.add(lane, operand)
    return source, builder.icmp_signed("<", source, end)


def source_xor(builder: ir.IRBuilder, lane: ir.Value, operand: ir.Value, width: ir.Value) -> tuple[ir.Value, ir.Value]:
    end = builder.add(builder.and_(lane, builder.neg(width)), width)
    source = builder.xor(lane, operand)
    return source, builder.icmp_signed("<", source, end)


def shuffle_by(context: Any, builder: ir.IRBuilder, value: ir.Value, way: Way, lane: int | None) -> ir.Value | None:
    """The *value* of the lane at a distance, or with a number, that is known when the kernel is compiled; None if it
    is not, or the target has no instruction for it."""
    if lane is None or lane < 0:
        return None
    found: ir.Value | None = context.shuffle_by(builder, value, way, lane)
    return found


SHUFFLED = {8: types.int32, 16: types.int32, 32: None, 64: None}
"""What integers of each width are moved as; ``None`` is as they are."""


_SOURCES: dict[Way, Source] = {"lane": source_idx, "up": source_up, "down": source_down, "xor": source_xor}


def shuffled_type(function: str, value: types.Type) -> types.Type:
    kind = number_type(value)
    if isinstance(kind, types.Boolean):
        return types.int32
    if isinstance(kind, types.Integer):
        return SHUFFLED[kind.bitwidth] or kind
    if kind in (types.float32, types.float64):
        return kind
    raise TypingError(f"{our(function)} moves integers, float32 and float64 between lanes, not {kind}")


def _shuffle(
    function: str, mask: types.Type | None, value: types.Type, operand: types.Type, width: types.Type, way: Way
) -> tuple[types.Type, Lower]:
    kind = shuffled_type(function, value)
    if mask is not None:
        check_mask(function, mask)
    for argument in (operand, width):
        if not isinstance(argument, types.Omitted) and not isinstance(number_type(argument), types.Integer):
            raise TypingError(f"{our(function)}: lanes and widths are integers, got {argument}")
    first = 0 if mask is None else 1

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        def number(index: int, of: types.Type) -> ir.Value:
            return context.cast(builder, args[index], sig.args[index], of)

        moved, lanes = number(first, kind), context.wave_size(builder)
        if isinstance(sig.args[first + 2], types.Omitted):
            found = shuffle_by(context, builder, moved, way, given(sig.args[first + 1]))
            if found is not None:
                return found
        else:
            lanes = number(first + 2, types.int32)
        lane = context.lane(builder)
        other, within = _SOURCES[way](builder, lane, number(first + 1, types.int32), lanes)
        return context.shuffle(builder, moved, builder.select(within, other, lane))

    return kind, lower


def _shuffle_stub(name: str, meaning: str, way: Way) -> Stub:
    def define(value: types.Type, lane: types.Type, width: types.Type = None) -> tuple[types.Type, Lower]:
        return _shuffle(name, None, value, lane, width, way)

    return _document(name, f"``{name}(value, lane, width=warpsize)``: {meaning}", define)


def _shuffle_sync_stub(name: str, meaning: str, way: Way) -> Stub:
    def define(
        mask: types.Type,
        value: types.Type,
        lane: types.Type,
        width: types.Type = None,
    ) -> tuple[types.Type, Lower]:
        return _shuffle(name, mask, value, lane, width, way)

    return _document(name, f"``{name}(mask, value, lane, width=warpsize)``: {meaning}", define)


def _document(name: str, doc: str, define: Any) -> Stub:
    define.__doc__ = (
        f"{doc} Lanes form groups of *width*, a power of two; where the other lane is not in its group, a lane gets "
        "its own value."
    )
    define.__module__ = __name__
    return device_function(name)(define)


_IDX = "the *value* of lane number *lane* of the group."
_UP = "the *value* of the lane that is *lane* lower."
_DOWN = "the *value* of the lane that is *lane* higher."
_XOR = "the *value* of the lane whose number is this lane's exclusive or *lane*."

shfl = _shuffle_stub("shfl", _IDX, "lane")
shfl_up = _shuffle_stub("shfl_up", _UP, "up")
shfl_down = _shuffle_stub("shfl_down", _DOWN, "down")
shfl_xor = _shuffle_stub("shfl_xor", _XOR, "xor")
shfl_sync = _shuffle_sync_stub("shfl_sync", _IDX, "lane")
shfl_up_sync = _shuffle_sync_stub("shfl_up_sync", _UP, "up")
shfl_down_sync = _shuffle_sync_stub("shfl_down_sync", _DOWN, "down")
shfl_xor_sync = _shuffle_sync_stub("shfl_xor_sync", _XOR, "xor")
