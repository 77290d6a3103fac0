"""How equal the results of equal calls are."""

from __future__ import annotations

from enum import Enum


class Determinism(Enum):
    """What a program asks for; results here are the same each time whichever it is."""

    NOT_GUARANTEED = "not_guaranteed"
    RUN_TO_RUN = "run_to_run"
