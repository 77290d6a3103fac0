"""What to do about a float where whole numbers are needed: most are quotients that were meant to be whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def advice_on_floats(values: Iterable[Any]) -> str:
    """The end of a message about *values*, which have to be whole numbers; empty if none of them is a float."""
    for value in values:
        if isinstance(value, (float, np.floating)):
            return f"; {value} is a float: divide with // instead of /, or convert it with int(...)"
    return ""
