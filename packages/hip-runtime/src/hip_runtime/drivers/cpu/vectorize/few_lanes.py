"""Where only few lanes of a gang pass a check of data, these run one after another, in scalar code.

A kernel that expands a frontier, or works on the elements of a list that are marked, checks what it finds in memory and
returns, or goes on to a loop over data of its own. In a gang such a loop takes as long for one lane as for all: as many
iterations as the longest has, each with gathers. So do gathers and branches without a loop. So what follows such a
check is written twice: by lanes, and once more for a single thread. That begins anew, and makes the check again: what
it loads may be another number by now, as in ``while v > old`` around a compare-and-swap, and must be the one that it
goes on with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.effects import TELLS_LANES
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.uniform_atomics import is_combinable
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction
from hip_runtime.drivers.cpu.llvmir import VOID
from hip_runtime.drivers.cpu.object_code.host_machine import vector_bytes
from hip_runtime.drivers.cpu.vectorize.active_lanes import each_active_lane
from hip_runtime.drivers.cpu.vectorize.early_exit import find_early_exit
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder

_MOST_INSTRUCTIONS = 200
"""The most instructions of a kernel that is written once more for single threads."""

_LARGEST_PART = 4
"""One in so many lanes of a gang are few, and more only where lanes have to be taken apart."""

_FEWEST = 3
"""Lanes that have to be few at least for what has no loop: it is compiled twice for them."""

_GATHERED = 2
"""Instructions of a single thread that take as long as a gather does for each lane, roughly."""

_DIVERGED = 16
"""Instructions of a single thread that take as long as a branch at which lanes diverge takes them: each side has a
mask, and is asked whether any lane runs it."""

_TAKEN_APART = 17
"""Instructions of a single thread that take as long as it takes more to do an atomic operation for a lane, one lane
after another, than for a thread that runs alone: operands and results go through memory, and so do masks."""


@dataclass(frozen=True)
class DataCheck:
    """The branch at the end of *block*: lanes that do not go on to *target* return. Up to *few* of them take less time
    one after another than the gang does."""

    block: Block
    target: Block
    few: int


@dataclass(frozen=True)
class FewLanes:
    """What runs the lanes that pass *check*, where they are few: the code that begins with *start*, with the bits of
    these lanes in *bits*."""

    check: DataCheck
    start: ir.Block
    bits: ir.Value

    def branch(self, builder: ir.IRBuilder, lanes: VectorBuilder, passed: ir.Value) -> None:
        """Leave the code for all lanes if few have *passed*, a mask."""
        bits, count = lanes.count(passed)
        few, many = builder.append_basic_block("few"), builder.append_basic_block("many")
        builder.cbranch(builder.icmp_unsigned("<=", count, count.type(self.check.few)), few, many)
        builder.position_at_end(few)
        builder.store(bits, self.bits)
        builder.branch(self.start)
        builder.position_at_end(many)


def find_data_check(shapes: VectorShapes, early_exits: dict[Block, Block], width: int) -> DataCheck | None:
    """A check of data before which nothing happens, and behind which lanes gather in a loop or leave it one after
    another, or do more without a loop than a few threads; ``None`` if there is no such, or if threads behind it depend
    on others of their wave."""
    found = find_early_exit(shapes, early_exits, on_data=True)
    values = [value for block in shapes.order.blocks for value in block.instructions]
    if found is None or width < 2 * _LARGEST_PART or len(values) > _MOST_INSTRUCTIONS:
        return None
    if any(value.opcode == "alloca" or value.callee in TELLS_LANES for value in values):
        return None
    repeated = [value for value in values if shapes.order.loops[shapes.homes[value]]]
    apart = sum(_is_taken_apart(value, shapes) for value in repeated)
    few = width // _LARGEST_PART
    if not repeated:
        few = min(few, _count_once(shapes, width))
        if few < _FEWEST:
            return None
    elif apart:
        gathers = sum(_gathers(value, shapes) for value in repeated)
        few = max(few, _count_repeated(len(repeated), gathers, apart, width))
    elif not any(_gathers(value, shapes) or _diverges(value, shapes) for value in repeated):
        return None
    return DataCheck(*found, few)


def _count_once(shapes: VectorShapes, width: int) -> int:
    """How many lanes one after another take no longer than all of them for what is behind the check, without a loop."""
    values = [value for block in shapes.masked for value in block.instructions if not value.is_terminator]
    together = sum(_registers(value, shapes, width) for value in values)
    together += _DIVERGED * len(shapes.masked & shapes.divergent)
    return together // max(len(values), 1)


def _registers(value: Instruction, shapes: VectorShapes, width: int) -> int:
    """How many instructions *value* takes for *width* lanes: one for each register that its elements fill."""
    if _gathers(value, shapes):
        return width * _GATHERED
    if value.type == VOID or shapes.at_definition(value) is not VARYING:
        return 1
    return max(width * shapes.size_of(value.type) // vector_bytes(), 1)


def _count_repeated(instructions: int, gathers: int, apart: int, width: int) -> int:
    """The same for a loop: an iteration of *instructions* takes what it takes for one thread, *gathers* as much for
    each lane, and what takes lanes *apart* more than for a thread."""
    together = instructions + gathers * width * _GATHERED
    alone = instructions - apart * _TAKEN_APART
    return min(together // alone, width) if alone > 0 else width


def _diverges(value: Instruction, shapes: VectorShapes) -> bool:
    return value.is_terminator and shapes.homes[value] in shapes.divergent


def _gathers(value: Instruction, shapes: VectorShapes) -> bool:
    return value.opcode == "load" and shapes.of(value.address, shapes.homes[value]) is VARYING


def _is_taken_apart(value: Instruction, shapes: VectorShapes) -> bool:
    """Whether *value* is an atomic operation that is done for one lane after another."""
    if value.opcode == "cmpxchg":
        return True
    block = shapes.homes[value]
    return value.opcode == "atomicrmw" and value.table is None and not is_combinable(value, block, shapes)


@contextmanager
def each_lane(
    lanes: VectorBuilder, item: WorkItem, place: ir.Value, bits: ir.Value, done: ir.Block
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """The same as `each_active_lane`, with the work item *place* as that of the lane."""
    builder = lanes.builder
    first = item.layout.load(builder, place, "thread", item.order.lane_axis)
    with each_active_lane(lanes, bits, done) as (lane, bit):
        item.store_lane(builder, place, builder.add(first, lane, flags=("nuw", "nsw")))
        yield lane, bit
