"""Prefetches of the memory that blocks to come will load.

A processor runs so many instructions of a block with barriers for each cache line, and these wait for each other, that
few loads of the next blocks are under way meanwhile; its own prefetchers start anew on each page. A sum of 16M numbers
by a tree in shared memory takes 4 to 6 ms of processor time without prefetches, as the luck of a process is, and 3.2
with them, on an AMD EPYC.

What counts are loads of one element after the other by the threads of a row, at addresses that grow by the same from
each block to the next along x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi.thread_order import ALONG_X
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.abi.worker import counted
from hip_runtime.drivers.cpu.analyses.affine import AFFINE, coefficient
from hip_runtime.drivers.cpu.analyses.block_memory import is_kernel_memory
from hip_runtime.drivers.cpu.analyses.cfg import order_blocks
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Constant, Instruction, Value
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I8, I32, I64, PTR, VOID
from hip_runtime.drivers.cpu.regions.formation import Region, region_successors
from hip_runtime.drivers.cpu.regions.scalar_region import RegionContext

_LINE = 64
"""Bytes of a cache line."""

_AHEAD = 16384
"""Bytes of each array that are under way, at least: sums by shuffles, which do the least for each byte, take a fifth
longer with a quarter of this, and the same with twice as many."""

_LONGEST = 65536
"""The most bytes from one block to the next: farther ahead, a chunk of blocks may end."""

_MOST_LINES = 256
"""The most lines that a block asks for: more would take the place of its own in the fastest cache, of 512 or more."""


@dataclass(frozen=True)
class RowLoad:
    """A load of a row by the threads of each block."""

    pointer: Value
    nbytes: int
    """Of the row."""
    stride: int
    """Bytes from the row of a block to that of the next, with its sign."""

    @property
    def lines(self) -> int:
        """Cache lines that hold the row, if it begins with one."""
        return -(-self.nbytes // _LINE)

    @property
    def ahead(self) -> int:
        """Bytes from a block's row to the one that it asks for."""
        return self.stride * -(-_AHEAD // abs(self.stride))


def find_row_loads(region: Region, item: WorkItem, size_of: SizeOf, kernel_arguments: int) -> list[RowLoad]:
    """Loads of rows of the kernel's arrays in *region*, outside loops; none if blocks have several rows, or a length
    that is not known."""
    lanes, rows, planes = item.order.extents
    if item.order.axes != ALONG_X or item.order.lengths is not None or item.order.tile > 1 or rows * planes > 1:
        return []
    by_thread = _Growth(spmd.thread_idx("x"), size_of)
    by_block = _Growth(spmd.block_idx("x"), size_of)
    found: dict[Value, RowLoad] = {}
    loops = order_blocks(region.entry, region_successors).loops
    for block in region.blocks:
        for load in block.instructions if not loops[block] else ():
            if load.opcode != "load" or not is_kernel_memory(load.operands[0], kernel_arguments):
                continue
            pointer, nbytes = load.operands[0], size_of(load.type)
            stride = by_block.of(pointer)
            if stride is not None and by_thread.of(pointer) == nbytes and lanes * nbytes <= abs(stride) <= _LONGEST:
                found[pointer] = RowLoad(pointer, lanes * nbytes, stride)
    loads = list(found.values())
    return loads if sum(load.lines for load in loads) <= _MOST_LINES else []


def write_prefetches(builder: ir.IRBuilder, ctx: RegionContext, loads: Sequence[RowLoad]) -> None:
    """Ask for what *loads* will load in blocks to come. A prefetch of memory that does not exist does nothing."""
    values: dict[Instruction, ir.Value] = {}

    def compute(value: Value) -> ir.Value:
        if not isinstance(value, Instruction):
            return ctx.symbols.leaf(value, ctx.arguments)
        if value.callee in _THREAD:
            return I32(0)
        if value not in values:
            values[value] = write_instruction(builder, value, [compute(operand) for operand in value.operands])
        return values[value]

    prefetch = _declare_prefetch(builder.module)
    for load in loads:
        first = builder.gep(compute(load.pointer), [I64(load.ahead)], source_etype=I8)
        with counted(builder, "line", I64(0), I64(load.lines)) as line:
            place = builder.gep(first, [builder.mul(line, I64(_LINE))], source_etype=I8)
            builder.call(prefetch, [place, *_TO_READ_INTO_ALL_CACHES])


_THREAD = frozenset({spmd.LANE, *map(spmd.thread_idx, spmd.AXES)})
_TO_READ_INTO_ALL_CACHES = (I32(0), I32(3), I32(1))
"""Operands of ``llvm.prefetch``: to read, as near as possible, data."""


def _declare_prefetch(module: ir.Module) -> ir.Function:
    name = "llvm.prefetch.p0"
    known = module.globals.get(name)
    return known or ir.Function(module, ir.FunctionType(VOID, [PTR, I32, I32, I32]), name)


class _Growth:
    """By how much values grow with the index that the function *index* of the contract gives, where that is a constant
    and they are computed from arguments and indices by nothing that could fail."""

    def __init__(self, index: str, size_of: SizeOf) -> None:
        self._index = index
        self._size_of = size_of
        self._known: dict[Instruction, int | None] = {}

    def of(self, value: Value) -> int | None:
        """The growth of *value*, or ``None``."""
        if not isinstance(value, Instruction):
            return 0
        if value not in self._known:
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, value: Instruction) -> int | None:
        if value.opcode == "call":
            return int(value.callee == self._index) if spmd.is_pure(value.callee) else None
        if value.opcode not in AFFINE:
            return None
        operands = [self.of(operand) for operand in value.operands]
        if None in operands:
            return None
        plain = replace(value, operands=[_without_casts(operand) for operand in value.operands])
        return coefficient(plain, operands, self._size_of)


def _without_casts(value: Value) -> Value:
    """The constant that *value* is a wider form of, as the length of blocks is, or *value*."""
    source = value
    while isinstance(source, Instruction) and source.opcode in ("zext", "sext"):
        (source,) = source.operands
    return source if isinstance(source, Constant) else value
