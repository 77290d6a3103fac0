"""Runs random uses of ``hip.block`` and ``hip.wave``, and compares what becomes of each group's items."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import numba_hip as hip
from hip_runtime import config
from tools.fuzz_algorithms import group_moves, group_orders
from tools.fuzz_algorithms.groups import BLOCKS, Shape, Use, draw_others
from tools.fuzz_algorithms.operators import Values

MAKERS: tuple[Callable[[Shape], Use], ...] = (
    group_orders.make_sort_use, group_orders.make_sort_use, group_orders.make_combining_use,
    group_orders.make_combining_use, group_orders.make_following_use, group_moves.make_exchange_use,
    group_moves.make_neighbour_use, group_moves.make_rank_use, group_moves.make_decode_use,
    group_moves.make_transfer_use, group_moves.make_histogram_use,
)  # fmt: skip


class GroupMismatch(AssertionError):
    """A use of groups that did not give what it has to."""


class TooLargeError(Exception):
    """A use needs more shared memory than the device has."""


def check_group(seed: int, trials: int) -> Use:
    """Run the kernel of *seed* with *trials* contents; raises `GroupMismatch`, or whatever the kernel does."""
    shape = Shape(seed)
    device = hip.get_current_device()
    if not device.is_cpu:
        shape.lanes = int(device.WARP_SIZE)
    with config.cpu_wave_size.scope(shape.lanes):
        use = shape.random.choice(MAKERS)(shape)
        try:
            for trial in range(trials):
                _check_trial(use, shape, np.random.default_rng([seed, trial]))
        except GroupMismatch:
            raise
        except Exception as error:
            if "hip.shared.array" in str(error) and "at most" in str(error):
                raise TooLargeError(str(error)) from error
            raise GroupMismatch(f"{use}, {shape.lanes} lanes: {type(error).__name__}: {error}") from error
    return use


def _check_trial(use: Use, shape: Shape, data: np.random.Generator) -> None:
    keys = use.draw(data, use.kinds[0], BLOCKS * shape.count * use.items)
    others = draw_others(use, shape, data)
    number = int(data.choice([1, use.most, int(data.integers(1, use.most + 1))]))
    x, y = hip.to_device(keys), hip.to_device(others)
    results = hip.device_array(BLOCKS * shape.count, use.returned)
    use.kernel[BLOCKS, use.threads](x, y, results, number)
    found = x.copy_to_host(), y.copy_to_host(), results.copy_to_host()
    for group in shape.groups():
        threads = slice(group.start // use.items, group.stop // use.items)
        size = threads.stop - threads.start
        made, made_others, returned = use.answer(keys[group], others[group], number)
        told = f"{use}, {shape.lanes} lanes, number {number}, group of {size} from item {group.start}"
        _compare(told, "keys", found[0][group], made)
        _compare(told, "others", found[1][group], made_others)
        _compare(told, "results", found[2][threads], np.broadcast_to(returned, size).astype(use.returned))


def _compare(told: str, name: str, found: Values, expected: Values | None) -> None:
    if expected is None:
        return
    known = ~np.ma.getmaskarray(expected)
    here, there = found[known], np.asarray(np.ma.getdata(expected), found.dtype)[known]
    rows = [np.ascontiguousarray(one).view("u1").reshape(len(one), one.dtype.itemsize) for one in (here, there)]
    wrong = np.flatnonzero((rows[0] != rows[1]).any(axis=1)) if len(here) else np.zeros(0, int)
    if wrong.size:
        shown = ", ".join(f"{place}: {here[place]} instead of {there[place]}" for place in wrong[:4].tolist())
        raise GroupMismatch(f"{told}: {name} differ at {wrong.size} of {len(here)} places: {shown}")
