"""Codes of the faults that the device itself reports: those below `spmd.DEVICE_FAULTS`, which kernels must not use.

A divergent barrier has the code ``-(1 << 31) + (a << 15 | b)``, where *a* and *b* are the numbers of two sync points at
which threads wait for each other forever. `make_fault` decodes it.
"""

from __future__ import annotations

import signal
import struct
from collections.abc import Sequence

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.llvmir import I32
from hip_runtime.errors import (
    BarrierDivergenceError,
    BlockMemoryError,
    Index3,
    KernelFault,
    LaunchAbortedError,
    MemoryFaultError,
    StackOverflowError,
    TrapError,
)

_BITS = 15
_FIRST = -(1 << 31)

MAX_POINTS = (1 << _BITS) - 1
"""The most sync points that a kernel can have, so that two of their numbers fit into one code."""

MEMORY_CODE = spmd.DEVICE_FAULTS - 1
"""The memory for the threads of a block could not be allocated."""

ABORT_CODE = spmd.DEVICE_FAULTS - 2
"""The launch was aborted."""

TRAP_CODE = spmd.DEVICE_FAULTS - 1000
"""Minus the signal's number: the processor raised a trap. The words that follow the code hold three 64-bit numbers: the
addresses of the instruction and of the access, and the number of the chunk's first block."""

STACK_CODE = TRAP_CODE - 1000
"""The same, for an access just beyond the stack."""

_SIGNALS = 64
"""Signal numbers are below this."""


def divergence_code(builder: ir.IRBuilder, low: ir.Value, high: ir.Value) -> ir.Value:
    """The code for threads that wait at both of the sync points *low* and *high*."""
    return builder.add(I32(_FIRST), builder.or_(builder.shl(low, I32(_BITS)), high))


def make_fault(
    kernel: str, code: int, block: Index3, thread: Index3, locations: Sequence[str], grid: Dim3
) -> KernelFault:
    """The exception for fault *code*; *locations* are the source locations of the sync points, by number."""
    if STACK_CODE - _SIGNALS <= code <= TRAP_CODE:
        return _make_trap(kernel, code, struct.unpack("<3q", struct.pack("<6i", *block, *thread)), grid)
    if code == ABORT_CODE:
        return LaunchAbortedError(kernel, code, (0, 0, 0), (0, 0, 0))
    if code == MEMORY_CODE:
        return BlockMemoryError(kernel, code, block, thread)
    if code < MEMORY_CODE:
        both = code - _FIRST
        numbers = both >> _BITS, both & ((1 << _BITS) - 1)
        here, there = (locations[number] for number in numbers)
        return BarrierDivergenceError(kernel, code, block, thread, (here, there))
    return KernelFault(kernel, code, block, thread)


def _make_trap(kernel: str, code: int, words: tuple[int, ...], grid: Dim3) -> TrapError:
    instruction, address, chunk = words
    overflow = code < STACK_CODE
    number = (STACK_CODE if overflow else TRAP_CODE) - code
    kind = MemoryFaultError if number in (signal.SIGSEGV, signal.SIGBUS) else TrapError
    block = block_index(max(chunk, 0), grid)
    return (StackOverflowError if overflow else kind)(
        kernel, code, block, (0, 0, 0), number, instruction, address & (1 << 64) - 1
    )


def block_index(number: int, grid: Dim3) -> Index3:
    """The three indices of the block with *number*, counted along x first."""
    return number % grid[0], number // grid[0] % grid[1], number // grid[0] // grid[1]
