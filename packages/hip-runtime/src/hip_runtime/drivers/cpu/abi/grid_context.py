"""What is kept of a block while it waits for the whole grid: its context."""

from __future__ import annotations

FINISHED = -1
"""What a block that has returned leaves in its context. It is 0 before the block was first run, and one more than the
number of the operation that the block waits at."""


ALIGNMENT = 64
"""Alignment of every place, that of a cache line and of the widest vectors; also that of a context."""
