"""What the lanes of a wave, CUDA's warp, compute by shuffles and votes.

The steps double their distance, so that a wave of 64 lanes takes six (Hillis and Steele, "Data parallel algorithms",
1986).
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
    distance = 1
    while distance < warp.warpsize:
        other = shuffle_down(value, distance)
        if lane + distance < end:
            value = operator(value, other)
        distance *= 2
    return shuffle(value, 0)


@jit(device=True)
def inclusive_scan(value, operator):  # type: ignore[no-untyped-def]
    """The values of the lanes up to this one combined by *operator*."""
    lane = warp.laneid
    distance = 1
    while distance < warp.warpsize:
        other = shuffle_up(value, distance)
        if lane >= distance:
            value = operator(other, value)
        distance *= 2
    return value


@jit(device=True)
def exclusive_scan(value, operator, initial):  # type: ignore[no-untyped-def]
    """*initial* and the values of the lanes below this one combined by *operator*."""
    before = shuffle_up(inclusive_scan(value, operator), 1)
    return operator(initial, before) if warp.laneid > 0 else initial


@jit(device=True)
def aggregate_of(scanned):  # type: ignore[no-untyped-def]
    """What all lanes combined come to, for every lane, from what `inclusive_scan` gave to each."""
    return shuffle(scanned, warp.warpsize - 1)


@jit(device=True)
def rank(flag):  # type: ignore[no-untyped-def]
    """How many lanes below this one have a true *flag*, and how many lanes of the wave do."""
    votes = ballot(flag)
    return popc(votes & lanemask_lt()), popc(votes)
