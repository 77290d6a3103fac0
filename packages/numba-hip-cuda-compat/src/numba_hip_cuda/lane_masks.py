"""Functions of `numba.cuda` whose results have other types than those of `numba_hip`.

Where a wave has 32 lanes, masks of lanes are numbers of 32 bits, signed as in Numba CUDA: programs count their zeros
and reverse them. Where it has 64 they are a uint64, as in `numba_hip`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

import numba_hip
from numba_hip.language.stub import INTERPRETED, Definition, Stub, device_function, number_type
from numba_hip.simulator.scalars import Word
from numba_hip.targets.compile_target import CompileTarget

WORD = 32
"""Bits of a number that has one for each lane of a warp."""


def _definition(of: Stub) -> Definition:
    assert of.define is not None
    return of.define


def _narrowed(target: CompileTarget, kind: types.Type, of: Stub, *arguments: types.Type) -> Any:
    """What *of* is for the *arguments*; with its mask as a *kind* of 32 bits if waves have no more lanes."""
    defined = _definition(of)(*arguments)
    if target.wave_size > WORD or defined is None:
        return defined
    wide, lower = defined
    narrow: types.Type = kind
    if isinstance(wide, types.BaseTuple):
        narrow = types.Tuple((kind, *wide.types[1:]))

    def lower_narrowed(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return context.cast(builder, lower(context, builder, sig.replace(return_type=wide), args), wide, narrow)

    return narrow, lower_narrowed


BITS = {types.float32: types.int32, types.float64: types.int64}
"""Integers with the bits of floats."""


def _by_bits(target: CompileTarget, of: Stub, mask: types.Type, value: types.Type) -> Any:
    """A match operation: floats match if their bits do, also NaN, and 0.0 and -0.0 do not."""
    integer = BITS.get(number_type(value))
    defined = _narrowed(target, types.int32, of, mask, value if integer is None else integer)
    if integer is None or defined is None:
        return defined
    result, lower = defined

    def lower_bits(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        number = context.cast(builder, args[1], sig.args[1], number_type(value))
        bits = builder.bitcast(number, context.get_value_type(integer))
        return lower(context, builder, sig.replace(args=(mask, integer)), (args[0], bits))

    return result, lower_bits


@device_function("cuda.ballot_sync", by_target=True)
def ballot_sync(target: CompileTarget, mask: types.Type, predicate: types.Type) -> Any:
    """``ballot_sync(mask, predicate)``: the active lanes in *mask* for which *predicate* is true, bits of an int32, or
    of a uint64 where waves have 64 lanes."""
    return _narrowed(target, types.int32, numba_hip.ballot_sync, mask, predicate)


@device_function("cuda.match_any_sync", by_target=True)
def match_any_sync(target: CompileTarget, mask: types.Type, value: types.Type) -> Any:
    """``match_any_sync(mask, value)``: the active lanes in *mask* that have the same *value*, bits of an int32, or of a
    uint64 where waves have 64 lanes."""
    return _by_bits(target, numba_hip.match_any_sync, mask, value)


@device_function("cuda.match_all_sync", by_target=True)
def match_all_sync(target: CompileTarget, mask: types.Type, value: types.Type) -> Any:
    """``match_all_sync(mask, value)``: the active lanes in *mask*, bits of an int32, and true where *value* is the same
    for all of them, else 0 and false. Where waves have 64 lanes, a uint64."""
    return _by_bits(target, numba_hip.match_all_sync, mask, value)


@device_function("cuda.activemask", by_target=True)
def activemask(target: CompileTarget) -> Any:
    """``activemask()``: the lanes that are active here, bits of a uint32, or of a uint64 where waves have 64 lanes."""
    return _narrowed(target, types.uint32, numba_hip.activemask)


@device_function("cuda.lanemask_lt", by_target=True)
def lanemask_lt(target: CompileTarget) -> Any:
    """``lanemask_lt()``: the lanes below this one, bits of a uint32, or of a uint64 where waves have 64 lanes."""
    return _narrowed(target, types.uint32, numba_hip.lanemask_lt)


@device_function("cuda.brev")
def brev(x: types.Type) -> Any:
    """``brev(x)``: the bits of the integer *x* in reverse, a uint32 for one of up to 32 bits."""
    kind = number_type(x)
    narrow = isinstance(kind, types.Boolean) or (isinstance(kind, types.Integer) and kind.bitwidth <= WORD)
    if not narrow:
        return _definition(numba_hip.brev)(x)
    _, lower = _definition(numba_hip.brev)(types.uint32)  # type: ignore[misc]  # of a uint32 there is one

    def lower_widened(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        word = context.cast(builder, args[0], sig.args[0], types.uint32)
        return lower(context, builder, sig.replace(args=(types.uint32,)), (word,))

    return types.uint32, lower_widened


# In the simulator.


def _bits(value: Any) -> Any:
    if isinstance(value, (float, np.float32)):
        return np.asarray(value).view(f"i{np.asarray(value).itemsize}")[()]
    return value


def _simulate(name: str, signed: bool) -> None:
    matches = name.startswith("match")

    def narrowed(thread: Any, *args: Any, **kws: Any) -> Any:
        if matches:
            args, kws = tuple(map(_bits, args)), {key: _bits(value) for key, value in kws.items()}
        found = INTERPRETED[name](thread, *args, **kws)
        if thread.block.grid.wave_size > WORD:
            return found
        return (word(found[0]), *found[1:]) if isinstance(found, tuple) else word(found)

    def word(mask: int) -> Word:
        if not signed:
            return Word(mask, np.uint32)
        return Word(mask - 2**WORD if mask >= 2 ** (WORD - 1) else mask)

    INTERPRETED[f"cuda.{name}"] = narrowed


for _name in ("ballot_sync", "match_any_sync", "match_all_sync"):
    _simulate(_name, signed=True)
for _name in ("activemask", "lanemask_lt"):
    _simulate(_name, signed=False)


def _reversed(thread: Any, x: Any) -> Any:
    dtype = getattr(x, "dtype", None)
    if dtype is None or dtype.itemsize > WORD // 8:
        return INTERPRETED["brev"](thread, x)
    return Word(int(f"{int(x) & (2**WORD - 1):0{WORD}b}"[::-1], 2), np.uint32)


INTERPRETED["cuda.brev"] = _reversed
