"""The state of each thread of a block, as block functions record it: the number of the sync point it waits at."""

from __future__ import annotations

from collections.abc import Sequence

UNKNOWN_BYTE = 0xFF
"""Fills the states of threads that have not reached a sync point yet."""

SPINS, WAITS_FOR_WAVE, WAITS_FOR_BLOCK = range(3)
"""Kinds of sync points: what a thread does there."""

_RETURNED = -1

_WORDS = {
    _RETURNED: ("has returned", "have returned"),
    SPINS: ("spins", "spin"),
    WAITS_FOR_WAVE: ("waits for its wave", "wait for their wave"),
    WAITS_FOR_BLOCK: ("waits for the block", "wait for the block"),
}
"""Descriptions in singular and plural."""

_MAX_RUNS = 6
"""Runs of thread numbers that are listed before the list is cut off."""


def state_bytes(points: int) -> int:
    """Bytes of a state with that many sync *points*; the number after the last one means that a thread has returned."""
    return 1 if points < UNKNOWN_BYTE else 2


def describe_states(states: Sequence[int], kinds: Sequence[int], locations: Sequence[str]) -> str:
    """A sentence on which threads wait where while others spin; empty if none waits. *kinds* and *locations* are those
    of the sync points, by number."""
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
        f"{_list_threads(threads)} {_WORDS[kind][len(threads) > 1]}{f' at {location}' if location else ''}"
        for (kind, location), threads in sorted(groups.items())
    )


def _list_threads(threads: Sequence[int]) -> str:
    """The sorted numbers *threads* as text, consecutive ones as a range."""
    runs: list[list[int]] = []
    for thread in threads:
        if runs and runs[-1][1] == thread - 1:
            runs[-1][1] = thread
        else:
            runs.append([thread, thread])
    shown = [str(first) if first == last else f"{first} to {last}" for first, last in runs[:_MAX_RUNS]]
    return f"{'thread' if len(threads) == 1 else 'threads'} {', '.join(shown)}{', ...' * (len(runs) > _MAX_RUNS)}"
