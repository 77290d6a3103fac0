"""What blocks that wait for the whole grid resume from: a word for each block, which says where it does, and behind
these words a context for each, with what it has kept."""

from __future__ import annotations

FINISHED = -1
"""The word of a finished block. Before the first run it is 0; while the block waits at a sync point it is that point's
number plus one. Words fill whole lines; those behind the last block's are of finished blocks."""


ALIGNMENT = 64
"""Alignment of contexts and of arrays in them: a cache line, and the widest vector."""
