"""What may have been meant by a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

MOST = 3
"""How many names are suggested."""


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The names of *known* that are most like *name*, whatever their case; none where none is like it."""
    from difflib import get_close_matches

    spellings: dict[str, str] = {}
    for candidate in known:
        spellings.setdefault(candidate.lower(), candidate)
    return [spellings[match] for match in get_close_matches(name.lower(), spellings, MOST)]


def hint(name: str, known: Iterable[str], places: Iterable[str] = ()) -> str:
    """What to put behind the message that there is no *name* among *known*: where it is instead, or what is like it."""
    elsewhere = list(places)[:MOST]
    if elsewhere:
        return f"; there is one in {' and '.join(elsewhere)}"
    found = [repr(candidate) for candidate in nearest(name, known)]
    if not found:
        return ""
    return f"; did you mean {' or '.join(filter(None, [', '.join(found[:-1]), found[-1]]))}?"


@lru_cache(maxsize=32)
def kept_hint(name: str, known: tuple[str, ...]) -> str:
    """`hint`, for who is asked for the same name again and again."""
    return hint(name, known)
