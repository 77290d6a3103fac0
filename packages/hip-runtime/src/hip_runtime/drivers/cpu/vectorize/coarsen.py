"""Groups of several rows of a block at once: what all rows load, such as a row of a matrix, is loaded once for them.

Each row has code of its own for every instruction, side by side within the same blocks, and a work item of its own;
LLVM finds what is the same for all. That needs all rows to go the same way at every branch.
"""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.effects import needs_a_lane
from hip_runtime.drivers.cpu.analyses.vector_shapes import VARYING, VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Value
from hip_runtime.drivers.cpu.llvmir import I1
from hip_runtime.drivers.cpu.vectorize.predicated_function import PredicatedFunction
from hip_runtime.drivers.cpu.vectorize.uniform_condition import write_uniform_condition
from hip_runtime.drivers.cpu.vectorize.widen import Widener

_MOST_INSTRUCTIONS = 100
_PLAIN = frozenset({"load", "store", "sdiv", "udiv", "srem", "urem"})
"""Instructions that are not done for lanes that are not active, and are for vectors as a whole."""


def count_rows(shapes: VectorShapes, early_exits: dict[Block, Block], item: WorkItem, width: int) -> int:
    """How many rows of a block should run at once: 1, 2 or 4."""
    rows = next(number for number in (4, 2, 1) if item.block[1] % number == 0)
    values = [value for block in shapes.order.blocks for value in block.instructions]
    if rows == 1 or item.block[0] % width or shapes.masked or len(values) > _MOST_INSTRUCTIONS:
        return 1
    if any(needs_a_lane(value) and (value.opcode not in _PLAIN or value.volatile or value.atomic) for value in values):
        return 1
    differing = _find_differing(shapes)
    for block in shapes.order.blocks:
        if block not in early_exits and len(block.successors) > 1 and block.terminator.operands[0] in differing:
            return 1
    return rows if any(_shares(block, shapes, differing) for block in shapes.order.blocks) else 1


def _find_differing(shapes: VectorShapes) -> set[Value]:
    """What can differ between rows that go the same way."""
    found: set[Value] = set()
    count = -1
    while count != len(found):
        count = len(found)
        for value in shapes.homes:
            own = value.callee in (spmd.thread_idx("y"), spmd.LANE) or value.opcode == "alloca"
            if own or not found.isdisjoint(value.operands):
                found.add(value)
    return found


def _shares(block: Block, shapes: VectorShapes, differing: set[Value]) -> bool:
    """Whether *block* is of a loop in which all rows load the same for their lanes, and something of their own."""
    if not shapes.order.loops[block]:
        return False
    loads = [value for value in block.instructions if value.opcode == "load"]
    same = any(shapes.own(value) is VARYING and value.operands[0] not in differing for value in loads)
    return same and any(value in differing for value in loads)


class CoarsenedFunction(PredicatedFunction):
    """Writes the version for groups of which all lanes of all rows exist. *codes* are those of each row."""

    def __init__(
        self, codes: list[Widener], done: ir.Block, early_exits: dict[Block, Block], otherwise: ir.Block
    ) -> None:
        super().__init__(codes[0], None, done, early_exits, otherwise)
        self._rows: list[PredicatedFunction] = [
            self,
            *(PredicatedFunction(code, None, done, early_exits, otherwise) for code in codes[1:]),
        ]

    def _write_plain(self, block: Block) -> None:
        builder, end = self.builder, block.terminator
        builder.position_at_end(self._blocks[block])
        for row in self._rows:
            row._write_body(block, None)
        if end.opcode == "ret":
            builder.branch(self.done)
            return
        if end.opcode == "unreachable":
            builder.unreachable()
            return
        for row in self._rows:
            row._pass_on(block, [(target, None) for target in self.shapes.successors(block)])
        if block not in self.early_exits:
            self._branch(block, end)
            return
        everyone = I1(1)
        for row in self._rows:
            wanted = self.early_exits[block] is end.targets[0]
            everyone = builder.and_(everyone, write_uniform_condition(row.code, end.operands[0], wanted))
        assert self.otherwise is not None
        builder.cbranch(everyone, self._enter(self.early_exits[block]), self.otherwise)
