"""How many lanes the gangs of a function have."""

from __future__ import annotations

from collections.abc import Callable

from hip_runtime.drivers.cpu.vectorize.gang_function import GangFunction


def make_gang(make: Callable[[int], GangFunction], width: int, widens: bool) -> GangFunction:
    """The gang function that *make* returns for *width* lanes or, if it *widens*, for twice as many if that is
    better; one whose gangs begin where rows do, if they can."""
    made = make(width)
    if widens and made.prefers_double_width():
        made.privates.lay_out_again()
        made, widens = make(2 * width), False
    return made.follow_rows(widens) or made
