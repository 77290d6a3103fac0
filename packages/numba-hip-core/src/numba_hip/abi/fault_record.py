"""The record by which a kernel tells the driver of AMD GPUs which thread failed first:
``docs/design/hip-driver.md``."""

from __future__ import annotations

CODE_WORD, BLOCK_WORD, THREAD_WORD, DETAILS_WORD = 1, 2, 5, 8
"""Where code, block and thread (x, y and z of each) and the details (64 bits each) are in the record, in words."""

MOST_DETAILS = 4


def variable_name(kernel: str) -> str:
    """The name of the variable in which the driver of AMD GPUs looks for the faults of *kernel*."""
    return f"{kernel}.fault"
