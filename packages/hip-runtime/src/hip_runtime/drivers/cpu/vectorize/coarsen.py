"""Thread coarsening: a gang covers several rows of a block, so that what all rows load is loaded once.

Each row has its own copy of every instruction, side by side in the same basic blocks, and its own work item; LLVM
eliminates what is common. This requires that all rows take the same side of every branch.
"""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi.thread_order import AXES
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.clamps import find_clamps
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS, needs_active_lane
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Value
from hip_runtime.drivers.cpu.llvmir import I1
from hip_runtime.drivers.cpu.vectorize.predicated_function import PredicatedFunction
from hip_runtime.drivers.cpu.vectorize.uniform_condition import write_uniform_condition
from hip_runtime.drivers.cpu.vectorize.widen import Widener

_MAX_INSTRUCTIONS = 130
_MASKABLE = frozenset({"load", "store", "sdiv", "udiv", "srem", "urem"})
"""Instructions that need a mask, and that are executed for a whole vector at once."""


def count_rows(shapes: VectorShapes, early_exits: dict[Block, Block], item: WorkItem, width: int) -> int:
    """The number of rows that should run at once: 1, 2 or 4."""
    rows = next(number for number in (4, 2, 1) if item.order.extents[1] % number == 0)
    values = [value for block in shapes.order.blocks for value in block.instructions]
    fits = item.order.tile > 1 or item.order.extents[0] % width == 0
    if rows == 1 or not fits or shapes.masked or len(values) > _MAX_INSTRUCTIONS:
        return 1
    if any(
        needs_active_lane(value) and (value.opcode not in _MASKABLE or value.volatile or value.atomic)
        for value in values
    ):
        return 1
    row_dependent = _find_row_dependent(shapes, item)
    for block in shapes.order.blocks:
        if block not in early_exits and len(block.successors) > 1 and block.terminator.operands[0] in row_dependent:
            return 1
    shared = any(_shares_loads(block, shapes, row_dependent) for block in shapes.order.blocks)
    return rows if shared or _shares_divisions(shapes, row_dependent) else 1


def _find_row_dependent(shapes: VectorShapes, item: WorkItem) -> set[Value]:
    """The values that can differ between rows that take the same path."""
    found: set[Value] = set()
    count = -1
    while count != len(found):
        count = len(found)
        for value in shapes.homes:
            row_specific = (
                value.callee in (spmd.thread_idx(AXES[item.order.axes[1]]), spmd.LANE) or value.opcode == "alloca"
            )
            if row_specific or not found.isdisjoint(value.operands):
                found.add(value)
    return found


def _shares_loads(block: Block, shapes: VectorShapes, row_dependent: set[Value]) -> bool:
    """Whether *block* is in a loop, and some of its loads are common to all rows and others are not."""
    if not shapes.order.loops[block]:
        return False
    loads = [value for value in block.instructions if value.opcode == "load"]
    same = any(shapes.at_definition(value) is VARYING and value.operands[0] not in row_dependent for value in loads)
    return same and any(value in row_dependent for value in loads)


def _shares_divisions(shapes: VectorShapes, row_dependent: set[Value]) -> bool:
    """Whether lanes divide floating-point numbers that are common to all rows, and nothing is versioned that rows run
    at once have no versions of."""
    blocks = shapes.order.blocks
    if any(shapes.order.loops.values()) or any(find_clamps(block, shapes) for block in blocks):
        return False
    if any(value.opcode in DIVISIONS for value in shapes.homes):
        return False
    return any(
        value.opcode == "fdiv" and shapes.at_definition(value) is VARYING and value not in row_dependent
        for value in shapes.homes
    )


class CoarsenedFunction(PredicatedFunction):
    """Writes the version for gangs with all lanes of all rows active. *wideners* has one for each row."""

    def __init__(
        self, wideners: list[Widener], done: ir.Block, early_exits: dict[Block, Block], otherwise: ir.Block
    ) -> None:
        super().__init__(wideners[0], None, done, early_exits, otherwise)
        row_dependent = frozenset(_find_row_dependent(self.shapes, wideners[0].item))
        for widener in wideners[1:]:
            widener.first_row, widener.row_dependent = wideners[0], row_dependent
        self._rows: list[PredicatedFunction] = [
            self,
            *(PredicatedFunction(widener, None, done, early_exits, otherwise) for widener in wideners[1:]),
        ]

    def _write_unmasked(self, block: Block) -> None:
        builder, terminator = self.builder, block.terminator
        builder.position_at_end(self._blocks[block])
        for row in self._rows:
            row._write_body(block, None)
        if terminator.opcode == "ret":
            builder.branch(self.done)
            return
        if terminator.opcode == "unreachable":
            builder.unreachable()
            return
        for row in self._rows:
            row._write_incoming(block, [(target, None) for target in self.shapes.successors(block)])
        if block not in self.early_exits:
            self._branch(block, terminator)
            return
        all_rows = I1(1)
        for row in self._rows:
            expected = self.early_exits[block] is terminator.targets[0]
            all_rows = builder.and_(all_rows, write_uniform_condition(row.widener, terminator.operands[0], expected))
        assert self.otherwise is not None
        builder.cbranch(all_rows, self._enter(self.early_exits[block]), self.otherwise)
