"""The context of a block that waits for the whole grid: the state that it resumes from."""

from __future__ import annotations

FINISHED = -1
"""The first word of a finished block's context. Before the first run it is 0; while the block waits at a sync point it
is that point's number plus one."""


ALIGNMENT = 64
"""Alignment of contexts and of everything in them: a cache line, and the widest vector."""
