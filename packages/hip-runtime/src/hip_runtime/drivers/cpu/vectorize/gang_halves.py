"""Gangs of twice the width that divide once, and run in two halves where their threads are not in one row.

What a gang computes once, above all the division that tells its row and the checks that its lanes are in it, is most of
a short kernel. Of twice as many lanes that is half. Where rows are so short that few such gangs fit, their halves are
the gangs that there were before.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.abi.worker import counted
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.grid_stride_loops import MAX_LANES
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.llvmir import I32

_WIDEST = 4
"""Bytes of the largest elements whose values still fit into registers twice as wide."""

_MOST_INSTRUCTIONS = 100
"""Of longer kernels, what is computed once for a gang is a small part."""


def may_have_halves(shapes: VectorShapes, item: WorkItem, size_of: SizeOf, width: int) -> bool:
    """Whether gangs of *width* may be the halves of others: if the kernel is short and divides, its threads are in one
    row of the block, and nothing that refers to its instructions is outside of it."""
    if 2 * width > min(MAX_LANES, item.extents[0]) or item.extents[1] * item.extents[2] > 1:
        return False
    if item.totals is not None or item.tables is not None or any(shapes.order.loops.values()):
        return False
    values = [value for block in shapes.order.blocks for value in block.instructions]
    accessed = [value.type if value.opcode == "load" else value.operands[0].type for value in values
                if value.opcode in ("load", "store")]  # fmt: skip
    return (
        len(values) <= _MOST_INSTRUCTIONS
        and any(value.opcode in DIVISIONS for value in values)
        and all(value.opcode != "alloca" for value in values)
        and all(size_of(kind) <= _WIDEST for kind in accessed)
    )


def write_halves(
    builder: ir.IRBuilder, item: WorkItem, half: ir.Function, width: int, arguments: Sequence[ir.Value],
    count: ir.Value, rest: Sequence[ir.Value],
) -> None:  # fmt: skip
    """Run the gang that begins with the thread in the work item, the first of *arguments*, as two of *width* by the
    function *half*. Of the threads from there to the end of the block's row there are *count*; *rest* are the arguments
    behind that."""
    first = item.layout.load(builder, arguments[0], "thread", item.axes[0])
    with counted(builder, "half", I32(0), I32(2), rolled=True) as number:
        before = builder.mul(number, I32(width), flags=("nuw", "nsw"))
        with builder.if_then(builder.icmp_unsigned(">", count, before)):
            item.store_lane(builder, arguments[0], builder.add(first, before, flags=("nuw", "nsw")))
            left = builder.sub(count, before, flags=("nuw", "nsw"))
            builder.call(half, [*arguments, left, *rest])
