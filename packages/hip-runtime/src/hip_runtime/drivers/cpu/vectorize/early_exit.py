"""Early exits: branches at the start of a kernel at which threads without work return, such as ``if i < n``."""

from __future__ import annotations

from collections.abc import Callable

from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value

_RECORDING = frozenset({"getelementptr", "store"})


def assume_early_exits(
    analyse: Callable[[dict[Block, Block]], VectorShapes], on_data: bool
) -> tuple[VectorShapes, dict[Block, Block]]:
    """The shapes that *analyse* finds if no lane takes an early exit, and the early exits, with the target that lanes
    continue at. *on_data*: also those that depend on memory, which all lanes seldom take alike in a kernel, but nearly
    always in a region that is for threads which have not returned."""
    early_exits: dict[Block, Block] = {}
    while True:
        shapes = analyse(early_exits)
        found = find_early_exit(shapes, early_exits, on_data)
        if found is None:
            return shapes, early_exits
        early_exits[found[0]] = found[1]


def find_early_exit(shapes: VectorShapes, known: dict[Block, Block], on_data: bool) -> tuple[Block, Block] | None:
    """A branch with a side that only returns, and its other side; nothing may be written before it."""
    loops = shapes.order.loops
    for block in shapes.order.blocks:
        if any(has_effect(instruction) for instruction in block.instructions):
            return None
        if block not in shapes.divergent or block in shapes.masked or block in known or loops[block]:
            continue
        targets = block.terminator.targets
        if block.terminator.opcode != "br" or len(targets) != 2:
            continue
        if on_data or not _depends_on_data(block.terminator.operands[0]):
            for number in (0, 1):
                if _only_returns(targets[number]) and not _only_returns(targets[1 - number]):
                    return block, targets[1 - number]
    return None


def _depends_on_data(condition: Value) -> bool:
    """Whether *condition* is computed from memory."""
    seen: set[Value] = set()
    waiting = [condition]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Instruction) and value not in seen:
            if value.opcode == "load":
                return True
            seen.add(value)
            waiting += value.operands
    return False


def _only_returns(block: Block) -> bool:
    """Whether threads return in *block*, and do no more than record that, as they do in regions of a kernel."""
    *others, end = block.instructions
    return end.opcode == "ret" and all(instruction.opcode in _RECORDING for instruction in others)
