"""Loops in which a thread updates one element of a small array after another, as the sums of its cluster.

Elements of a table that lanes update in one iteration are often the same, and each such update waits for the last one.
Those of the next iterations are other elements. So with several iterations written one after another, whose updates are
done together (`joint_updates`), and one comparison of what is left to do, lanes wait for each other less.
"""

from __future__ import annotations

from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS, has_effect
from hip_runtime.drivers.cpu.analyses.joint_updates import MOST_JOINED
from hip_runtime.drivers.cpu.analyses.scattered_updates import find_scattered_updates
from hip_runtime.drivers.cpu.analyses.sources import are_all, is_any
from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.ir.keywords import BINARY, CASTS
from hip_runtime.drivers.cpu.ir.model import Argument, Block, Function, Instruction, Value

_MOST_INSTRUCTIONS = 40
"""Of an iteration, of which several are written one after another."""

_COMPUTING = BINARY | CASTS | {"getelementptr", "select", "icmp"}


def find_update_loops(function: Function) -> dict[str, int]:
    """The blocks of *function* that are such loops, by name, and how many iterations of each should follow one another.
    All threads leave such a loop together, which is not known to run a few times only: LLVM unrolls those."""
    found = find_scattered_updates(function)
    if found is None:
        return {}
    loops: dict[str, int] = {}
    for block in function.blocks:
        if block not in block.successors or len(block.instructions) > _MOST_INSTRUCTIONS:
            continue
        updates = [value for value in block.instructions if value in found.updates]
        others = [value for value in block.instructions if value not in updates]
        count = MOST_JOINED // len(updates) if updates else 0
        if count < 2 or any(has_effect(value) or value.opcode in DIVISIONS for value in others):
            continue
        if all(_moves_on(value.operands[0], block) for value in updates) and _is_common(
            block.terminator.operands[0], block
        ):
            loops[block.name] = count
    return loops


def _moves_on(value: Value, loop: Block) -> bool:
    """Whether *value* is computed from what *loop* counts, and not from what it loads."""
    inside = frozenset(loop.instructions)

    def judge(value: Value) -> bool | list[Value]:
        if not isinstance(value, Instruction) or value not in inside:
            return False
        return value.opcode == "phi" or (value.operands if value.opcode in _COMPUTING else False)

    return is_any(value, judge)


def _is_common(value: Value, loop: Block) -> bool:
    """Whether *value* is the same for all threads in the same iteration of *loop*, as it is computed from the kernel's
    arguments and from what is counted alone."""

    def judge(value: Value) -> bool | list[Value]:
        if not isinstance(value, Instruction):
            return not isinstance(value, Argument) or value.index > 0  # the first one is the work item
        if value.opcode == "phi":
            arriving = list(zip(value.operands, value.targets, strict=True))
            counts = all(_counts_on(operand, value) for operand, source in arriving if source is loop)
            starts = [operand for operand, source in arriving if source is not loop]
            return starts if value in loop.phis and counts else False
        if value.opcode == "call":
            is_extent = value.callee in intrinsics.EXTENTS
            return is_extent or (value.operands if is_arithmetic(value.callee) else False)
        return value.operands if value.opcode in _COMPUTING else False

    return are_all(value, judge)


def _counts_on(value: Value, counter: Instruction) -> bool:
    """Whether *value* is *counter* and a constant."""
    if not isinstance(value, Instruction) or value.opcode not in ("add", "sub") or counter not in value.operands:
        return False
    return all(operand is counter or not isinstance(operand, Instruction | Argument) for operand in value.operands)
