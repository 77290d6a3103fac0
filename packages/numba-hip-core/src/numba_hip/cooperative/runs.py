"""Run-length decoding: items, each as often as its length says."""

from __future__ import annotations

from typing import Any

from numba.core import types

from numba_hip.cooperative.groups import Group
from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.scans import exclusive_sum
from numba_hip.cooperative.shared_values import items_of, memory_of, room_for
from numba_hip.decorators import jit


@kept
def decoding(group: Group, kind: types.Type, runs: int, items: int) -> Any:
    """A device function of (values, lengths, decoded, start=0): decodes the part of a group's size from *start* on,
    blocked, and returns how many items all runs have."""
    keep_values = memory_of(group, kind, group.threads * runs, "exchange")
    keep_ends = memory_of(group, types.int32, group.threads * runs, "offsets")
    leaves_of, read_item, _ = items_of(kind, runs)
    decoded_of, _, write_item = items_of(kind, items)
    check = room_for(runs)
    rank_of, size_of, sync, origin_of = group.rank, group.size, group.sync, group.origin
    add_up = exclusive_sum(group)
    allocate, read, write = keep_values
    allocate_ends, read_end, write_end = keep_ends

    @jit(device=True)
    def decode(values, lengths, decoded, start=0):  # type: ignore[no-untyped-def]  # for kernels alone
        check(lengths)
        places, ends = allocate(), allocate_ends()
        own, made = leaves_of(values), decoded_of(decoded)
        rank, origin = rank_of(), origin_of(runs)
        found = types.int32(0)
        for k in range(runs):
            found += types.int32(lengths[k])
        end, total = add_up(found)
        for k in range(runs):
            end += types.int32(lengths[k])
            write(places, origin + rank * runs + k, read_item(own, k))
            write_end(ends, origin + rank * runs + k, end)
        sync()
        for k in range(items):
            wanted = start + rank * items + k
            if wanted < total:
                low, high = 0, size_of() * runs - 1
                while low < high:  # the first run that ends behind the item
                    middle = (low + high) // 2
                    if read_end(ends, origin + middle) <= wanted:
                        low = middle + 1
                    else:
                        high = middle
                write_item(made, k, read(places, origin + low))
        sync()
        return total

    return decode
