"""What the lanes of a wave, CUDA's warp, compute by shuffles and votes.

The steps double their distance (Hillis and Steele, "Data parallel algorithms", 1986), first within rows of 16 lanes:
there an instruction of an AMD GPU takes its operand from another lane at no cost, if the distance is a constant, which
is why the steps are written out. Then rows are combined by what single lanes have.
"""

from __future__ import annotations

from typing import Any

from numba_hip.decorators import jit
from numba_hip.language import value_exchange
from numba_hip.language import warp as warp_operations
from numba_hip.language.untyped_names import ballot, lanemask_lt, popc

shuffle: Any = value_exchange.exchange
shuffle_up: Any = value_exchange.exchange_up
shuffle_down: Any = value_exchange.exchange_down
shuffle_xor: Any = value_exchange.exchange_xor

shuffle_up_in_row: Any = value_exchange.exchange_up_in_row
shuffle_down_in_row: Any = value_exchange.exchange_down_in_row

# What these mean in a kernel, a type checker cannot know.
warp: Any = warp_operations


@jit(device=True)
def broadcast(value, lane=0):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
    """The *value* of lane number *lane*, for every lane."""
    return shuffle(value, lane)


@jit(device=True)
def reduce(value, operator, count=64):  # type: ignore[no-untyped-def]
    """The values of the first *count* lanes combined by *operator*, for every lane. *count* is at least 1, and at most
    as many as the wave has, which are fewer in the last wave of a block that is not a multiple of waves."""
    lane = warp.laneid
    end = min(count, warp.warpsize)
    other = shuffle_down_in_row(value, 1)
    value = operator(value, other) if lane + 1 < end else value
    other = shuffle_down_in_row(value, 2)
    value = operator(value, other) if lane + 2 < end else value
    other = shuffle_down_in_row(value, 4)
    value = operator(value, other) if lane + 4 < end else value
    other = shuffle_down_in_row(value, 8)
    value = operator(value, other) if lane + 8 < end else value
    first, second, third, fourth = shuffle(value, 0), shuffle(value, 16), shuffle(value, 32), shuffle(value, 48)
    lower = operator(first, second) if end > 16 else first
    upper = operator(third, fourth) if end > 48 else third
    return operator(lower, upper) if end > 32 else lower


@jit(device=True)
def inclusive_scan(value, operator):  # type: ignore[no-untyped-def]
    """The values of the lanes up to this one combined by *operator*."""
    lane = warp.laneid
    of_row = lane % 16
    other = shuffle_up_in_row(value, 1)
    value = operator(other, value) if of_row >= 1 else value
    other = shuffle_up_in_row(value, 2)
    value = operator(other, value) if of_row >= 2 else value
    other = shuffle_up_in_row(value, 4)
    value = operator(other, value) if of_row >= 4 else value
    other = shuffle_up_in_row(value, 8)
    value = operator(other, value) if of_row >= 8 else value
    before = shuffle(value, 15)
    if warp.warpsize > 32:  # a constant of the target
        third = shuffle(value, 47)
        before = third if lane >= 32 else before
    value = operator(before, value) if lane % 32 >= 16 else value
    if warp.warpsize > 32:
        half = shuffle(value, 31)
        value = operator(half, value) if lane >= 32 else value
    return value


@jit(device=True)
def exclusive_scan(value, operator, initial):  # type: ignore[no-untyped-def]
    """*initial* and the values of the lanes below this one combined by *operator*."""
    before = shuffle_up(inclusive_scan(value, operator), 1)
    return operator(initial, before) if warp.laneid > 0 else initial


@jit(device=True)
def aggregate_of(scanned):  # type: ignore[no-untyped-def]
    """What all lanes combined come to, for every lane, from what `inclusive_scan` gave to each."""
    return shuffle(scanned, 63)  # the last one: lane numbers are modulo the size of the wave


@jit(device=True)
def rank(flag):  # type: ignore[no-untyped-def]
    """How many lanes below this one have a true *flag*, and how many lanes of the wave do."""
    votes = ballot(flag)
    return popc(votes & lanemask_lt()), popc(votes)
