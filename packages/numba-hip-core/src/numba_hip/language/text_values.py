"""``repr`` of what has a text of its own; ``str`` and f-strings outside of ``print`` ask it, too.

Numba's own answers with the name of the type for what has none, such as a float: a kernel would go on with a wrong
text.
"""

from __future__ import annotations

from typing import Any

from numba.core.errors import TypingError
from numba.extending import overload

NO_TEXT = (
    "a kernel makes no text while it runs: write it in the call of print, which takes numbers, text in quotes and "
    "f'{i}: {x:.3f}'"
)


def _no_text(value: Any) -> None:
    raise NotImplementedError


@overload(_no_text, target="hip")
def _refuse(value):  # type: ignore[no-untyped-def]  # Numba compares annotations of this and of what it returns
    raise TypingError(NO_TEXT)


@overload(repr, target="hip")
def _repr(obj):  # type: ignore[no-untyped-def]
    def represent(obj):  # type: ignore[no-untyped-def]
        if hasattr(obj, "__repr__") == True:  # noqa: E712 - Numba leaves out the branch that a comparison decides
            return obj.__repr__()
        return _no_text(obj)

    return represent
