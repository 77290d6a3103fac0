"""What each thread of a block waits for, as block functions keep it: the number of a point, in one byte or two."""

from __future__ import annotations

from collections.abc import Sequence

UNKNOWN_BYTE = 0xFF
"""In each byte of the state of a thread of which nothing is known yet."""

SPINS, WAITS_FOR_WAVE, WAITS_FOR_BLOCK = range(3)
"""What threads do at a point."""

_RETURNED = -1

_WORDS = {
    _RETURNED: ("has returned", "have returned"),
    SPINS: ("goes round", "go round"),
    WAITS_FOR_WAVE: ("waits for its wave", "wait for their wave"),
    WAITS_FOR_BLOCK: ("waits for the block", "wait for the block"),
}
"""The same of one thread and of several."""

_MOST = 6
"""Runs of threads that are named."""


def state_bytes(points: int) -> int:
    """Bytes of a state where there are so many *points*; one number more says that a thread has returned."""
    return 1 if points < UNKNOWN_BYTE else 2


def describe_states(states: Sequence[int], kinds: Sequence[int], locations: Sequence[str]) -> str:
    """Which threads wait where while others spin, in words; empty where none waits. *kinds* and *locations* are those
    of the points, by number."""
    groups: dict[tuple[int, str], list[int]] = {}
    for thread, state in enumerate(states):
        if state < len(kinds):
            location = "" if kinds[state] == SPINS else locations[state]
            groups.setdefault((kinds[state], location), []).append(thread)
        elif state == len(kinds):
            groups.setdefault((_RETURNED, ""), []).append(thread)
    if not any(kind in (WAITS_FOR_WAVE, WAITS_FOR_BLOCK) for kind, _ in groups):
        return ""
    return "; ".join(
        f"{_count(threads)} {_WORDS[kind][len(threads) > 1]}{f' at {location}' if location else ''}"
        for (kind, location), threads in sorted(groups.items())
    )


def _count(threads: Sequence[int]) -> str:
    """The numbers of *threads*, which are in order, those that follow one another together."""
    runs: list[list[int]] = []
    for thread in threads:
        if runs and runs[-1][1] == thread - 1:
            runs[-1][1] = thread
        else:
            runs.append([thread, thread])
    shown = [str(first) if first == last else f"{first} to {last}" for first, last in runs[:_MOST]]
    return f"{'thread' if len(threads) == 1 else 'threads'} {', '.join(shown)}{', ...' * (len(runs) > _MOST)}"
