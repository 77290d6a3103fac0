"""The record in which a kernel with bounds checks on the CPU device stores the index that was out of range."""

from __future__ import annotations

import numpy as np

MESSAGE = "index is out of bounds"
"""What Numba says where it knows no more."""

RECORD = "index_record"
"""Name of the parameter of a kernel that the address of the record is passed in."""

SLOT = np.dtype(
    [("code", "<i4"), ("block", "<i4", (3,)), ("thread", "<i4", (3,)), ("unused", "<i4"), ("dimension", "<i8"),
     ("index", "<i8"), ("extent", "<i8")]
)  # fmt: skip
SLOT_BYTES = 56
VALUE_OFFSETS = (0, 4, 8, 12, 16, 20, 24, 32, 40, 48)
"""Where in a slot code, block and thread (x, y and z of each), dimension, index and extent are, in bytes."""

SLOTS = 4096
"""How many threads can note an index in one launch. The first one of each thread of the processor is enough: the fault
that is reported is among these."""
