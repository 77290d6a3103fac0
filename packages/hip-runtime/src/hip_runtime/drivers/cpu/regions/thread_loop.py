"""Loops over the threads of a block, and over those of one wave."""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.llvmir import I32, I64

Bounds = tuple[ir.Value, ir.Value]
"""The linear indices, as ``i64``, of the first thread and of the one after the last."""


class ThreadLoop:
    """A loop whose body may have many blocks, which branch to ``latch`` to end an iteration.

    It begins at the builder's position. In the body, ``linear`` is the thread's linear index, and the work item holds
    its indices. Without *bounds* it runs over all threads in the order of the item's axes, with constant trip counts;
    over the first *active* along the axis of the lanes, if it says how many.
    """

    def __init__(
        self, builder: ir.IRBuilder, item: WorkItem, place: ir.Value, bounds: Bounds | None = None,
        active: int | None = None,
    ) -> None:  # fmt: skip
        self._builder = builder
        self._levels: list[tuple[ir.PhiInstr, ir.Value, ir.Block]] = []
        self.latch = builder.append_basic_block("latch")
        if bounds is None:
            extents = item.order.extents
            lanes = _count_lanes(builder, item, active)
            counts = (lanes, I64(extents[1]), I64(extents[2]))
            z, y, x = (self._begin(I64(0), count) for count in reversed(counts))
            rows = builder.add(builder.mul(z, I64(extents[1]), flags=("nuw", "nsw")), y, flags=("nuw", "nsw"))
            self.linear = builder.add(builder.mul(rows, I64(extents[0]), flags=("nuw", "nsw")), x, flags=("nuw", "nsw"))
            indices = [builder.trunc(index, I32) for index in (x, y, z)]
        else:
            self.linear = self._begin(*bounds)
            indices = self._split(builder.trunc(self.linear, I32), item.order.extents)
        item.store_thread(builder, place, indices)

    def _begin(self, first: ir.Value, limit: ir.Value) -> ir.Value:
        builder = self._builder
        before = builder.block
        head = builder.append_basic_block("thread")
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(I64)
        index.add_incoming(first, before)
        self._levels.append((index, limit, head))
        return index

    def _split(self, linear: ir.Value, extents: tuple[int, int, int]) -> list[ir.Value]:
        builder = self._builder
        indices = []
        for number, extent in enumerate(extents):
            if number == 2 or all(rest == 1 for rest in extents[number + 1 :]):
                indices.append(linear)
                return indices + [I32(0)] * (2 - number)
            indices.append(builder.urem(linear, I32(extent)))
            linear = builder.udiv(linear, I32(extent))
        return indices

    def end(self) -> list[ir.Instruction]:
        """Close the loop; the builder is positioned after it. Returns the back edges of the nested loops."""
        builder = self._builder
        builder.position_at_end(self.latch)
        branches = []
        for index, limit, head in reversed(self._levels):
            following = builder.add(index, I64(1), flags=("nuw", "nsw"))
            index.add_incoming(following, builder.block)
            after = builder.append_basic_block("threads.end")
            branches.append(builder.cbranch(builder.icmp_unsigned("<", following, limit), head, after))
            builder.position_at_end(after)
        return branches


def _count_lanes(builder: ir.IRBuilder, item: WorkItem, active: int | None) -> ir.Value:
    """How many threads of a row run, of which the first *active* do anything."""
    if item.order.lengths is None:
        return I64(active or item.order.extents[0])
    threads = item.order.count_threads(builder)
    if active is None or active >= item.order.limits[0]:
        return threads
    return builder.select(builder.icmp_unsigned("<", threads, I64(active)), threads, I64(active))
