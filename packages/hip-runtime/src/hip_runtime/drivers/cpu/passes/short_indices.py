"""Indices of 32 bits, as of ``int32(hip.grid(1))``, which do not wrap around in any grid that such a kernel is launched
over.

``blockIdx * blockDim + threadIdx`` has up to 41 bits. Dropped to 32, its lanes need not be neighbours, as it may be
the largest number in one of them and the least in the next, and each access asks whether its index is negative and
counts from the end of the array. In grids of fewer than 2**31 threads along each axis neither is so; others cannot be
launched (`abi.grid_rules`).
"""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.abi.grid_rules import MOST_OF_SHORT_INDICES
from hip_runtime.drivers.cpu.analyses.known_ranges import KnownRanges
from hip_runtime.drivers.cpu.ir.model import Function, Instruction, Value
from hip_runtime.drivers.cpu.passes.known_values import replace_known

_SHORT = 32
"""Bits of the indices of a thread and of its block."""

_PRODUCTS = frozenset({"mul", "shl"})
_WRAPPING = _PRODUCTS | {"add"}
_OF_GRID = frozenset(name(axis) for axis in spmd.AXES for name in (spmd.block_idx, spmd.grid_dim))
_OF_BLOCK = frozenset(map(spmd.thread_idx, spmd.AXES))


def has_short_indices(function: Function) -> bool:
    """Whether *function* multiplies the index of a block, or the number of blocks, as an integer of 32 bits or fewer
    that may wrap around."""
    return any(
        value.opcode in _PRODUCTS
        and "nsw" not in value.flags
        and isinstance(value.type, ir.IntType)
        and value.type.width <= _SHORT
        and any(_is_of_grid(operand) for operand in value.operands)
        for value in function.instructions()
    )


def bound_short_indices(function: Function, block: Dim3) -> None:
    """Mark sums and products of indices in *function* that do not wrap around in grids of `MOST_OF_SHORT_INDICES`
    threads along each axis, in blocks of the shape *block*, and decide comparisons that are known then."""
    ranges = KnownRanges()
    for value in function.instructions():
        if value.callee in _OF_GRID | _OF_BLOCK:
            ranges.learn(value, _range_of(value.callee, block))
    replace_known(function, ranges)
    for value in function.instructions():
        if value.opcode in _WRAPPING and ranges.of(value) is not None:
            _mark_exact(value, ranges)


def _is_of_grid(value: Value) -> bool:
    """Whether *value* is the index of a block or the number of blocks, with whatever number of bits."""
    while isinstance(value, Instruction) and value.opcode in ("trunc", "zext", "sext"):
        value = value.operands[0]
    return isinstance(value, Instruction) and value.callee in _OF_GRID


def _range_of(name: str, block: Dim3) -> tuple[int, int]:
    """What the function *name* of the contract can return."""
    axis = name[-1]
    extent = block[spmd.AXES.index(axis)]
    most_blocks = MOST_OF_SHORT_INDICES // extent
    if name == spmd.thread_idx(axis):
        return 0, extent - 1
    return (1, most_blocks) if name == spmd.grid_dim(axis) else (0, most_blocks - 1)


def _mark_exact(value: Instruction, ranges: KnownRanges) -> None:
    """Mark that *value*, which is in its range, was computed without overflow."""
    least = min(found[0] for operand in value.operands if (found := ranges.of(operand)) is not None)
    exact = {"nsw", *(("nuw",) if least >= 0 else ())}
    value.flags = tuple(dict.fromkeys((*sorted(exact, reverse=True), *value.flags)))
