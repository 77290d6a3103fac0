"""Totals of a chunk of blocks: operands of the operations that `analyses.chunk_totals` found are collected in memory of
the worker, of which LLVM makes registers, and the operations done when the chunk ends."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import LINE, WorkItem
from hip_runtime.drivers.cpu.ir.debug_locations import stand_at
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.llvmir import I8, I64, PTR, allocate
from hip_runtime.drivers.cpu.passes.checked_atomics import write_checked
from hip_runtime.drivers.cpu.passes.demote_atomics import combine
from hip_runtime.drivers.cpu.vectorize.uniform_atomics import COLLECTED, identity_of, reduce_lanes
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder

_MOST_BYTES = 64 * 8
"""Of a total: 64 lanes of 8 bytes. The address that it is to be added to follows; it is null if no thread of the chunk
has done the operation."""


class ChunkTotals:
    """The totals of the worker of *item*: one for each of *updates*, which are numbered by this."""

    def __init__(self, item: WorkItem, updates: Sequence[Instruction]) -> None:
        self._item = item
        self._updates = updates
        self._lanes = [0] * len(updates)
        """How many operands are collected side by side."""
        for number, update in enumerate(updates):
            update.total = number

    def collect(
        self, builder: ir.IRBuilder, place: ir.Value, update: Instruction, address: ir.Value, value: ir.Value,
        active: ir.Value | None = None,
    ) -> None:  # fmt: skip
        """Combine *value*, an operand or a vector of them, with the total of *update*, which is for *address*. *place*
        is the work item. If nothing is *active*, *value* changes nothing, and *address* may be anything."""
        number = update.total
        assert number is not None
        kind = value.type
        self._lanes[number] = max(self._lanes[number], kind.count if isinstance(kind, ir.VectorType) else 1)
        total = self._item.layout.load(builder, place, "totals", number)
        old = builder.load(total, align=LINE, typ=kind)
        operation = COLLECTED.get(update.operation, update.operation)
        builder.store(combine(builder, operation, old, value), total, align=LINE)
        there = _address_place(builder, total)
        if active is not None:
            address = builder.select(active, address, builder.load(there, typ=PTR))
        builder.store(address, there)

    def write(self, builder: ir.IRBuilder, place: ir.Value, start: ir.Block) -> None:
        """Write what is around the blocks of a chunk, once these are written: memory at *start*, which the work item
        *place* points to and which has no operands yet, and the operations at the builder's position."""
        for number, update in enumerate(self._updates):
            lanes = self._lanes[number]
            if not lanes:
                continue
            with builder.goto_block(start):
                total = allocate(builder, ir.ArrayType(I8, _MOST_BYTES + 8), "total")
                total.align = LINE
                self._item.layout.store(builder, total, place, "totals", number)
                kind = update.type if lanes == 1 else ir.VectorType(update.type, lanes)
                identity = identity_of(update)
                nothing = identity if lanes == 1 else ir.Constant(kind, [identity] * lanes)
                builder.store(nothing, total, align=LINE)
                builder.store(PTR(None), _address_place(builder, total))
            stand_at(builder, update.location)
            address = builder.load(_address_place(builder, total), typ=PTR)
            with builder.if_then(builder.icmp_unsigned("!=", address, PTR(None))):
                collected = builder.load(total, align=LINE, typ=kind)
                if lanes > 1:
                    collected = reduce_lanes(VectorBuilder(builder, lanes), update, collected)
                write_checked(builder, update, [address, collected])


def _address_place(builder: ir.IRBuilder, total: ir.Value) -> ir.Value:
    return builder.gep(total, [I64(_MOST_BYTES)], inbounds=True, source_etype=I8)
