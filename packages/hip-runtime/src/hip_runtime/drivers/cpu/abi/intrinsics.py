"""What the CPU device adds to the functions of the SPMD contract while it makes code of a kernel."""

from __future__ import annotations

from hip_devicelib import spmd

YIELD = "spmd.yield"
"""A place at which a thread waits until the others of its block had their turn, see `insert_yields`."""

NUMBER = "spmd.number"
"""Gives the number of the thread in the block, for code that groups threads in that order."""


def is_pure(name: str) -> bool:
    """Whether the function gives a thread the same whenever it is called, and does nothing else."""
    return name == NUMBER or spmd.is_pure(name)


def matters(name: str) -> bool:
    """Whether the work item, or the form of the code, depends on whether a kernel calls the function."""
    return name in spmd.SYNCHRONISING or spmd.is_uniform(name) or name in (spmd.STACK_IS_LOW, spmd.OBSERVE)
