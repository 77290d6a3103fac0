"""Reductions and scans of one value for each thread of a group.

Waves combine their lanes by shuffles; the totals of waves go through shared memory, and each thread combines those that
it needs, in their order.
"""

from __future__ import annotations

import operator
from typing import Any

from numba.core import types

from numba_hip.cooperative import lanes, values
from numba_hip.cooperative.groups import Group, warp
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.shared_values import memory_of
from numba_hip.decorators import jit
from numba_hip.language.untyped_names import syncthreads

FEWEST_LANES, MOST_LANES = 32, 64


def _waves(group: Group) -> int:
    return -(-group.threads // FEWEST_LANES)


@kept
def reduction(group: Group, kind: types.Type, combine: Any, *, of_all: bool = False) -> Any:
    """A device function of (value, valid): the values of the first *valid* threads combined, for every thread; with
    *of_all* those of all threads."""
    rank_of, size_of = group.rank, group.size
    only_whole_waves = of_all and group.threads % MOST_LANES == 0
    if group.is_wave and only_whole_waves:
        return jit(device=True)(lambda value, _valid: lanes.reduce(value, combine))
    if group.is_wave:
        return jit(device=True)(lambda value, valid: lanes.reduce(value, combine, max(min(valid, size_of()), 1)))
    allocate, read, write = memory_of(group, kind, _waves(group), "totals")

    @jit(device=True)
    def reduce(value, valid):  # type: ignore[no-untyped-def]  # for kernels alone, as all of these
        totals = allocate()
        lane, wave_size = warp.laneid, warp.warpsize
        first = rank_of() - lane
        count = max(min(valid, size_of()), 1)
        if only_whole_waves:
            total = lanes.reduce(value, combine)
        else:
            total = lanes.reduce(value, combine, max(count - first, 1))
        if lane == 0:
            write(totals, first // wave_size, total)
        syncthreads()
        total = read(totals, 0)
        for one in range(1, (count + wave_size - 1) // wave_size):
            total = combine(total, read(totals, one))
        syncthreads()
        return total

    return reduce


@kept
def scan(group: Group, kind: types.Type, combine: Any) -> Any:
    """A device function of a value: what those of the threads before come to, for the first thread any value; those
    up to this one; and those of all."""
    size_of = group.size
    if group.is_wave:

        @jit(device=True)
        def scan_wave(value):  # type: ignore[no-untyped-def]
            through = lanes.inclusive_scan(value, combine)
            return lanes.shuffle_up(through, 1), through, lanes.shuffle(through, size_of() - 1)

        return scan_wave
    allocate, read, write = memory_of(group, kind, _waves(group), "totals")
    rank_of = group.rank

    @jit(device=True)
    def scan_block(value):  # type: ignore[no-untyped-def]
        totals = allocate()
        rank, size = rank_of(), size_of()
        lane, wave_size = warp.laneid, warp.warpsize
        wave = (rank - lane) // wave_size
        through = lanes.inclusive_scan(value, combine)
        before = lanes.shuffle_up(through, 1)
        if lane == wave_size - 1 or rank == size - 1:
            write(totals, wave, through)
        syncthreads()
        total = read(totals, 0)
        carry = total
        for one in range(1, (size + wave_size - 1) // wave_size):
            if one == wave:
                carry = total
            total = combine(total, read(totals, one))
        if wave > 0:
            through = combine(carry, through)
            before = combine(carry, before) if lane > 0 else carry
        syncthreads()
        return before, through, total

    return scan_block


@kept
def exclusive_sum(group: Group) -> Any:
    """A device function of a count: the sum of those of the threads before, and that of all."""
    scan_counts = scan(group, types.int32, values.combining(operator.add, types.int32))
    rank_of = group.rank

    @jit(device=True)
    def add_up(count):  # type: ignore[no-untyped-def]
        before, _, total = scan_counts(types.int32(count))
        return (before if rank_of() > 0 else types.int32(0)), total

    return add_up
