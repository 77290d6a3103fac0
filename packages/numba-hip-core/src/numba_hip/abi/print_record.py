"""The buffer by which a kernel's output reaches the host.

A kernel that prints has one more parameter, `PARAMETER`: the address of a buffer of 64-bit words. It is in device
memory, where atomics work on every machine; atomics on host memory need a bus that supports them. Word `USED` counts
the requested words, word `DROPPED` the records that did not fit. Records start at word `HEADER_WORDS`, and zeros follow
the last one. A record is its number of words, itself included, and then a tag and the bits for each value.
"""

from __future__ import annotations

from enum import IntEnum

PARAMETER = "numba_hip.output"
USED, DROPPED, HEADER_WORDS = 0, 1, 2
WORD_BYTES = 8
CAPACITY_WORDS = 1 << 17
"""Words for records: one MiB, between two looks of the host."""


class Tag(IntEnum):
    """The meaning of the words after a tag. Above its lowest eight bits, a text's tag has the number of bytes, a
    tuple's tag the number of values that follow. For a named tuple, its name and those of its fields come first, as
    texts."""

    __str__ = int.__repr__  # it becomes part of LLVM IR; Python 3.10 would format the name

    TEXT = 1
    BOOL = 2
    INT = 3
    UINT = 4
    FLOAT16 = 5
    FLOAT32 = 6
    FLOAT64 = 7
    COMPLEX64 = 8
    COMPLEX128 = 9
    TUPLE = 10
    NAMED_TUPLE = 11
    JOINED = 12
    """As many values as it says, one behind the other without blanks."""
    FORMATTED = 13
    """A text, which is a format, and the value to format: as `format` does, or with the number 1 as % does."""
