"""Codes of the faults that the device itself reports: those below ``-(1 << 30)``, which kernels must not use.

A barrier that not all threads reach is ``-(1 << 31) + (a << 15 | b)``, with the numbers of two synchronising operations
at which threads wait for one another for ever. `make_fault` reads it back.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from hip_runtime.drivers.cpu.frame import I32
from hip_runtime.errors import BarrierDivergenceError, BlockMemoryError, Index3, KernelFault

_BITS = 15
_FIRST = -(1 << 31)

MAX_POINTS = (1 << _BITS) - 1
"""Synchronising operations that one kernel can have, so that two of their numbers make a code."""

MEMORY_CODE = -(1 << 30) - 1
"""There was no memory for the threads of a block."""


def divergence_code(builder: ir.IRBuilder, low: ir.Value, high: ir.Value) -> ir.Value:
    """The code for threads that wait at the operations *low* and *high*."""
    return builder.add(I32(_FIRST), builder.or_(builder.shl(low, I32(_BITS)), high))


def make_fault(kernel: str, code: int, block: Index3, thread: Index3, locations: Sequence[str]) -> KernelFault:
    """The exception for fault *code*; *locations* are where the synchronising operations stand, by number."""
    if code == MEMORY_CODE:
        return BlockMemoryError(kernel, code, block, thread)
    if code < MEMORY_CODE:
        both = code - _FIRST
        numbers = both >> _BITS, both & ((1 << _BITS) - 1)
        here, there = (locations[number] for number in numbers)
        return BarrierDivergenceError(kernel, code, block, thread, (here, there))
    return KernelFault(kernel, code, block, thread)
