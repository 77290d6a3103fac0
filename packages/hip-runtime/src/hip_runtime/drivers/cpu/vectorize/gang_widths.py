"""How many lanes the gangs of a function have."""

from __future__ import annotations

from collections.abc import Callable

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
    rows = gang.width_for_rows(_LEAST_LANES)
    if rows is not None:
        return rows
    if gang.prefers_double_width():
        return 2 * gang.width
    halves = gang.width > _LEAST_LANES and gang.prefers_half_width()
    return gang.width // 2 if halves else gang.width
