"""How many lanes the gangs of a function have."""

from __future__ import annotations

from collections.abc import Callable

from hip_runtime.drivers.cpu.analyses.coherent_divisions import find_coherent_width
from hip_runtime.drivers.cpu.analyses.double_width import gains_by_double_width
from hip_runtime.drivers.cpu.analyses.grid_stride_loops import MAX_LANES
from hip_runtime.drivers.cpu.analyses.register_pressure import fills_registers_in_loops
from hip_runtime.drivers.cpu.vectorize.coarsen import count_rows
from hip_runtime.drivers.cpu.vectorize.gang_function import GangFunction

_LEAST_LANES = 8
"""Gangs are not made smaller than this: 4 lanes of 32 bits are no full register of most processors."""


def make_gang(make: Callable[[int], GangFunction], width: int, chooses: bool) -> GangFunction:
    """The gang function that *make* returns for *width* lanes or, if it *chooses*, for twice or half as many if that is
    better; one whose gangs begin where rows do, if they can."""
    made = make(width)
    better = _better_width(made) if chooses else width
    if better != width:
        made.privates.lay_out_again()
        made, chooses = make(better), False
    return made.follow_rows(widens=chooses) or made


def _better_width(gang: GangFunction) -> int:
    shapes = gang.shapes
    of_rows = find_coherent_width(shapes, gang.width, _LEAST_LANES)
    if of_rows is not None:
        return of_rows
    if _prefers_double(gang):
        return 2 * gang.width
    halves = gang.width > _LEAST_LANES and fills_registers_in_loops(shapes, shapes.size_of, gang.width)
    return gang.width // 2 if halves else gang.width


def _prefers_double(gang: GangFunction) -> bool:
    """Whether the block has gangs of twice the width, and these are better."""
    threads, double = gang.item.order.extents[0], 2 * gang.width
    if double > min(MAX_LANES, threads):
        return False
    fills_gangs = threads % double == 0 and not gang.may_split
    rows = count_rows(gang.shapes, gang.early_exits, gang.item, double)
    return gang.privates.fits_registers(double) and gains_by_double_width(
        gang.shapes, gang.shapes.size_of, gang.width, rows, fills_gangs
    )
