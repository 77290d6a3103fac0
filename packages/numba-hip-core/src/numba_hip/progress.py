"""Progress bars of what takes its time, for those who watch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def with_progress(items: Sequence[T], what: str) -> Iterable[T]:
    """*items*, with a progress bar of tqdm, if that is installed, on a terminal or in a notebook."""
    try:
        from tqdm.auto import tqdm  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return items
    shown: Iterable[T] = tqdm(items, desc=what, disable=None, leave=False)
    return shown
