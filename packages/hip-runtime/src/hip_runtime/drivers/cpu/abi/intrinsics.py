"""Intrinsics that the CPU device adds to those of the SPMD contract while it compiles a kernel."""

from __future__ import annotations

from hip_devicelib import spmd

YIELD = "spmd.yield"
"""Suspends a thread until the others of its block had a chance to run, see `insert_yields`."""

CUT = "spmd.cut"
"""Where a region ends, though no thread waits: see `common_branches`."""

NUMBER = "spmd.number"
"""The thread's linear index in the block, for gangs that are formed in that order."""

LANE_PLACE = "spmd.lane_place"
"""The number of the lane in the block where not every lane is a thread, see `stretched_threads`."""


def global_idx(axis: str) -> str:
    """The thread's index in the grid along *axis*, for gangs that reach over several blocks; 64 bits."""
    return f"spmd.global_idx.{axis}"


EXTENTS = frozenset(extent(axis) for extent in (spmd.block_dim, spmd.grid_dim) for axis in spmd.AXES)
"""The functions of the contract that give the extents of a launch."""

_GLOBAL = frozenset(map(global_idx, "xyz"))


def is_pure(name: str) -> bool:
    """Whether the function has no effect and always returns the same value to the same thread."""
    return name in (NUMBER, LANE_PLACE) or name in _GLOBAL or spmd.is_pure(name)


def affects_strategy(name: str) -> bool:
    """Whether the layout of the work item, or the choice of a strategy, depends on calls of the function."""
    return name in spmd.SYNCHRONISING or spmd.is_uniform(name) or name in (spmd.STACK_IS_LOW, spmd.OBSERVE)
