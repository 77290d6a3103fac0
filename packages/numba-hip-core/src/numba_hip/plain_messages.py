"""What errors of Numba's say, as plain text."""

from __future__ import annotations

import re
import warnings

from numba.core.errors import NumbaError, NumbaWarning
from numba.core.ir import Loc

HIGHLIGHT = re.compile(r"\x1b\[[0-9;]*m")
"""What Numba puts around parts of its messages where colorama is installed: bold letters, and colours by
``NUMBA_COLOR_SCHEME``."""


def plain_text(error: BaseException) -> str:
    """What *error* says, without highlights: these stand in front of the words that tell what failed."""
    return HIGHLIGHT.sub("", str(error))


class PlainError(NumbaError):
    """An error of Numba's kind whose message is plain text."""

    def __init__(self, msg: str, loc: Loc | None = None) -> None:
        super().__init__(msg, loc)
        self.args = (plain_text(self),)


def warn_plainly(category: type[NumbaWarning], message: str, stack_level: int) -> None:
    """Warn with *message* as plain text; *stack_level* is 1 for whoever calls this."""
    warnings.warn(category(message, highlighting=False), stacklevel=stack_level + 1)
