"""What a kernel prints, on its way to the host.

A kernel that prints has one more parameter, `PARAMETER`: the address of a buffer of 64-bit words in memory of the
device, where atomics work on every machine; those on memory of the host go over a bus that not everywhere carries
them. Word `USED` counts the words that were asked for, word `DROPPED` the records that had no room any more; records
start at word `HEADER_WORDS`, and behind the last one there are zeros. A record is the number of its words, itself
included, and then for each value a tag and its bits.
"""

from __future__ import annotations

from enum import IntEnum

PARAMETER = "numba_hip.output"
USED, DROPPED, HEADER_WORDS = 0, 1, 2
WORD_BYTES = 8
CAPACITY_WORDS = 1 << 17
"""Words for records: one MiB, between two looks of the host."""


class Tag(IntEnum):
    """What the words after a tag are. Above its lowest eight bits a text has its number of bytes, a tuple how many
    values follow; before those of a named tuple come its name and those of its fields, texts."""

    __str__ = int.__repr__  # LLVM's IR is made of it; Python 3.10 would write the name

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
