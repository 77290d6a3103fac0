"""Loops that lanes leave one after another, and the number of lanes for which these are quicker by themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.cost_model import lanes_worth_taking_out
from hip_runtime.drivers.cpu.analyses.effects import TELLS_LANES, has_effect
from hip_runtime.drivers.cpu.analyses.monotonic_conditions import is_decided_by_ends
from hip_runtime.drivers.cpu.analyses.private_arrays import private_array_of
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.uniform_atomics import is_combinable, is_uniform_load
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Instruction, Value

_FEWEST = 2
"""Lanes that have to be few at least: the loop is compiled twice for them."""

_MOST_INSTRUCTIONS = 100
"""The most instructions of a loop that is written once more for single threads."""


def find_exits(loop: frozenset[Block], shapes: VectorShapes) -> list[tuple[Block, Block]]:
    """The branches out of *loop*: from which block, and to which."""
    inside = [block for block in shapes.order.blocks if block in loop]
    return [(block, target) for block in inside for target in shapes.successors(block) if target not in loop]


def find_loops_left_late(shapes: VectorShapes, size_of: SizeOf, width: int) -> dict[Block, int]:
    """The headers of the loops that lanes leave one after another, and of which few lanes take less time one after
    another than an iteration takes the gang; with how many are few."""
    if any(value.callee in TELLS_LANES for value in shapes.homes):
        return {}
    headers = shapes.order.headers()
    loops = [loop for loop in headers if loop <= shapes.masked and _may_run_apart(loop, shapes)]
    found: dict[frozenset[Block], int] = {}
    for loop, few in zip(loops, lanes_worth_taking_out(loops, shapes, size_of, width) if loops else [], strict=True):
        if few >= _FEWEST and not any(loop < outer for outer in found):
            found[loop] = few
    return {headers[loop]: few for loop, few in found.items()}


def _may_run_apart(loop: frozenset[Block], shapes: VectorShapes) -> bool:
    """Whether lanes leave *loop* in different iterations, and what it does for one does not depend on others."""
    values = [value for block in loop for value in block.instructions]
    if len(values) > _MOST_INSTRUCTIONS or not any(
        _leave_apart(*leaving, shapes) for leaving in find_exits(loop, shapes)
    ):
        return False
    if not _keeps_parts(values, shapes):
        return False
    if not _find_private(values) <= _find_indexed(loop, shapes):
        return False
    return all(_may_be_apart(value, shapes) for value in values if has_effect(value))


def _keeps_parts(values: Collection[Instruction], shapes: VectorShapes) -> bool:
    """Whether what has parts, as the result of a compare and swap, stays among *values*: it is not kept by lane."""
    uses = Counter(operand for value in values for operand in value.operands)
    return all(
        value in values and value.opcode != "phi" and count == shapes.uses[value]
        for value, count in uses.items()
        if isinstance(value, Instruction) and isinstance(value.type, ir.LiteralStructType | ir.ArrayType)
    )


def _may_be_apart(value: Instruction, shapes: VectorShapes) -> bool:
    """Whether lanes may do *value*, which has an effect, in any order: a store, or an atomic access that orders no
    others and is not made once for all of them. Threads that wait for others are not in such loops."""
    if value.volatile:
        return False
    if value.opcode == "store":
        return value.atomic is None
    if value.atomic is None or value.total is not None or set(value.atomic.orderings) != {"monotonic"}:
        return False
    home = shapes.homes[value]
    return not (is_combinable(value, home, shapes) or is_uniform_load(value, home, shapes))


def _leave_apart(block: Block, target: Block, shapes: VectorShapes) -> bool:
    """Whether lanes go from *block* to *target*, out of a loop, in different iterations, and not only within a gang
    that reaches over the end of what all of them go through."""
    end = block.terminator
    if block not in shapes.divergent or end.opcode != "br":
        return block in shapes.divergent
    return not is_decided_by_ends(shapes, end.operands[0], block, target is not end.targets[0])


def _find_private(values: Iterable[Instruction]) -> set[Instruction]:
    """The private arrays that *values* are computed from."""
    found = (private_array_of(operand) for value in values for operand in value.operands)
    return {array for array in found if array is not None}


def _find_indexed(loop: frozenset[Block], shapes: VectorShapes) -> set[Instruction]:
    """The private arrays that *loop* accesses at places which data tells, so that LLVM cannot keep them in registers:
    it could not if one lane's address were known at run time only, either."""
    found: set[Instruction] = set()
    for block in loop:
        for address in block.instructions:
            array = private_array_of(address) if address.opcode == "getelementptr" else None
            if array is not None and any(_depends_on_data(index, loop, shapes) for index in address.operands[1:]):
                found.add(array)
    return found


def _depends_on_data(index: Value, loop: frozenset[Block], shapes: VectorShapes) -> bool:
    """Whether *index* is more than a constant, and than what counts the iterations of a loop in *loop* that has
    constant bounds."""
    header = shapes.order.header_of(loop)
    waiting, seen = [index], {index}
    while waiting:
        value = waiting.pop()
        if isinstance(value, Constant):
            continue
        home = shapes.homes.get(value) if isinstance(value, Instruction) else None
        if not isinstance(value, Instruction) or home not in loop or value.opcode == "load":
            return True
        if value.opcode == "phi" and home is header:
            return True
        waiting += set(value.operands) - seen
        seen.update(value.operands)
    return False
