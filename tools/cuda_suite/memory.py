"""Stands for numba-cuda's ``memory_management.nrt``: counters of allocations in kernels.

Kernels of `numba.hip` cannot allocate memory, so that they cannot leak any: the counters stay at zero.
"""

from __future__ import annotations

from typing import NamedTuple


class AllocationStats(NamedTuple):
    """Counts of allocations, and of the objects that own them."""

    alloc: int = 0
    free: int = 0
    mi_alloc: int = 0
    mi_free: int = 0


class Runtime:
    """The part of ``rtsys`` that the base classes of tests use. Tests of the allocator itself do not apply."""

    def memsys_enable_stats(self) -> None:
        """Does nothing, as nothing is ever allocated."""

    def memsys_disable_stats(self) -> None:
        """See `memsys_enable_stats`."""

    def get_allocation_stats(self) -> AllocationStats:
        """All zero."""
        return AllocationStats()


rtsys = Runtime()
