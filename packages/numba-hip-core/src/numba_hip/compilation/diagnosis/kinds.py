"""Tables of mistakes: patterns in Numba's messages, and functions that say what each means."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from numba_hip.compilation.diagnosis.failure import Failure

Say = Callable[[Failure, "re.Match[str]"], "str | None"]
"""What a reason means that matches; None where it is of another kind after all."""


class Kind(NamedTuple):
    """Reasons that match *pattern*, whether they can be of an implementation that was tried, and what is said."""

    pattern: re.Pattern[str]
    of_tried: bool
    say: Say


class Kinds(list[Kind]):
    """Kinds of mistakes; the first that matches counts."""

    def enter(self, pattern: str, *, of_tried: bool = False) -> Callable[[Say], Say]:
        """Register the decorated function as the explanation of reasons that match *pattern*."""

        def enter(say: Say) -> Say:
            self.append(Kind(re.compile(pattern), of_tried, say))
            return say

        return enter
