"""What the text of a setting says: functions that read it. They raise `ValueError` with what it must be."""

from __future__ import annotations

from collections.abc import Callable

MAX_THREADS = 65536
"""Threads of the processor at most: more than any machine has, and fewer than a C int counts."""

MAX_DEVICES = 64
"""CPU devices at most: more than programs for several GPUs are tried with."""

DUMPS = ("ir", "graph", "passes", "asm")
"""What can be seen of a kernel while it is compiled."""


def one_of(*choices: str) -> Callable[[str], str]:
    """A function that takes any of *choices* as it is."""
    *others, last = map(repr, choices)

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(others)} and {last}")
        return text

    return read


def switch(text: str) -> bool:
    """Whether *text* is 1 rather than 0."""
    if text not in ("0", "1"):
        raise ValueError("must be 0 or 1")
    return text == "1"


def wave_size(text: str) -> int:
    """Lanes of a wave."""
    if text not in ("32", "64"):
        raise ValueError("must be 32 or 64")
    return int(text)


def vector_width(text: str) -> int:
    """Lanes of a vector."""
    if text not in ("1", "2", "4", "8", "16", "32", "64"):
        raise ValueError("must be a power of two up to 64")
    return int(text)


def count(text: str) -> int:
    """A whole number."""
    value = _whole_number(text)
    if value < 0:
        raise ValueError("must be a whole number, 0 or more")
    return value


def positive(text: str) -> int:
    """A whole number that is not 0."""
    value = _whole_number(text)
    if value < 1:
        raise ValueError("must be a whole number, 1 or more")
    return value


def threads(text: str) -> int:
    """A number of threads."""
    value = positive(text)
    if value > MAX_THREADS:
        raise ValueError(f"must be {MAX_THREADS} or less")
    return value


def devices(text: str) -> int:
    """A number of CPU devices."""
    value = positive(text)
    if value > MAX_DEVICES:
        raise ValueError(f"must be {MAX_DEVICES} or less")
    return value


def byte_count(text: str) -> int:
    """A number of bytes, with a unit or without."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
    unit = units.get(text[-1:].upper(), 0)
    value = _whole_number(text[:-1] if unit else text) * (unit or 1)
    if not 0 < value < 1 << 63:
        raise ValueError("must be a number of bytes, from 1 to 2**63 - 1, with an optional unit K, M, G or T")
    return value


def ratio(text: str) -> float:
    """A number from 0 to 1."""
    try:
        value = float(text) if text.isascii() else -1.0
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:  # nor is NaN
        raise ValueError("must be a number from 0 to 1")
    return value


def dumps(text: str) -> frozenset[str]:
    """Some of `DUMPS`, with commas between them."""
    chosen = frozenset(part.strip() for part in text.split(","))
    unknown = sorted(chosen.difference(DUMPS))
    if unknown:
        raise ValueError(f"{unknown[0]!r} is none of {', '.join(map(repr, DUMPS))}; give some of these, with commas")
    return chosen


def _whole_number(text: str) -> int:
    """The number in *text*, which consists of digits only; -1 if there is none, or one of hundreds of digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 100 else -1
