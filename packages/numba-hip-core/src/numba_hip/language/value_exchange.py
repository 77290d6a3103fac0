"""Exchange of values of any kind between the lanes of a wave: numbers of every width, and tuples of them.

``hip.shfl`` and its relatives move what HIP's do. These are what `numba_hip.wave` is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError

from hip_runtime.said_names import our
from numba_hip.bfloat import Bfloat16
from numba_hip.language.stub import Lower, Stub, device_function, given, number_type
from numba_hip.language.warp import Source, Way, shuffle_by, source_down, source_idx, source_up, source_xor

I32, I64 = ir.IntType(32), ir.IntType(64)

NUMBERS = (types.Number, types.Boolean, types.NPDatetime, types.NPTimedelta, Bfloat16)


def _check_value(function: str, kind: types.Type) -> types.Type:
    """The type of a value that lanes can exchange; raises `TypingError` for others."""
    if isinstance(kind, types.BaseTuple):
        for part in kind:
            _check_value(function, part)
        return kind
    plain = number_type(kind)
    if isinstance(plain, NUMBERS):
        return plain
    advice = ": pass a tuple of its fields" if isinstance(kind, types.Record) else ""
    raise TypingError(f"{our(function)} exchanges numbers and tuples of numbers between lanes, not {kind}{advice}")


def _move(builder: ir.IRBuilder, value: ir.Value, shuffle: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """What *shuffle* makes of *value*, part by part, each as a word that lanes exchange."""
    kind = value.type
    if isinstance(kind, (ir.LiteralStructType, ir.ArrayType)):
        count = kind.count if isinstance(kind, ir.ArrayType) else len(kind.elements)
        moved = ir.Constant(kind, ir.Undefined)
        for index in range(count):
            part = _move(builder, builder.extract_value(value, index), shuffle)
            moved = builder.insert_value(moved, part, index)
        return moved
    if isinstance(kind, ir.HalfType):
        return builder.bitcast(_move(builder, builder.bitcast(value, ir.IntType(16)), shuffle), kind)
    if isinstance(kind, ir.IntType) and kind.width not in (32, 64):
        word = I32 if kind.width < 32 else I64
        return builder.trunc(shuffle(builder.zext(value, word)), kind)
    return shuffle(value)


def _exchange(name: str, meaning: str, source: Source, way: Way, width: int | None = None) -> Stub:
    def define(value: types.Type, lane: types.Type) -> tuple[types.Type, Lower]:
        kind = _check_value(name, value)
        if not isinstance(number_type(lane), types.Integer):
            raise TypingError(f"{our(name)}: lane must be an integer, not {lane}")

        def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            operand, own = context.cast(builder, args[1], sig.args[1], types.int32), context.lane(builder)
            lanes = context.wave_size(builder) if width is None else I32(width)
            other, within = source(builder, own, operand, lanes)
            chosen, constant = builder.select(within, other, own), given(sig.args[1])

            def shuffle(word: ir.Value) -> ir.Value:
                moved = shuffle_by(context, builder, word, way, constant)
                return context.shuffle(builder, word, chosen) if moved is None else moved

            return _move(builder, context.cast(builder, args[0], sig.args[0], kind), shuffle)

        return kind, lower

    define.__doc__ = (
        f"``{name}(value, lane)``: {meaning} The value is a number of any type or a tuple of numbers; where there is "
        "no such lane, a lane gets its own."
    )
    define.__module__ = __name__
    return device_function(name)(define)


exchange = _exchange("wave.shuffle", "the *value* of lane number *lane* of the wave.", source_idx, "lane")
exchange_up = _exchange("wave.shuffle_up", "the *value* of the lane that is *lane* lower.", source_up, "up")
exchange_down = _exchange("wave.shuffle_down", "the *value* of the lane that is *lane* higher.", source_down, "down")
exchange_xor = _exchange("wave.shuffle_xor", "the *value* of the lane whose number is this one's exclusive or *lane*.",
                         source_xor, "xor")  # fmt: skip

ROW = 16
"""Lanes of a row: AMD GPUs move values within rows by the instruction that uses them."""

exchange_up_in_row = _exchange(
    "wave.shuffle_up_in_row", "the *value* of the lane that is *lane* lower, in a row of 16.", source_up, "row_up", ROW
)
exchange_down_in_row = _exchange(
    "wave.shuffle_down_in_row",
    "the *value* of the lane that is *lane* higher, in a row of 16.",
    source_down,
    "row_down",
    ROW,
)
