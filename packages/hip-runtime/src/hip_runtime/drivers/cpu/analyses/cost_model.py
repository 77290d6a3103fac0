"""Static cost model: whether a gang of lanes is faster than one thread after another.

Costs are cycles per thread, measured on a processor with 512-bit vectors; only their ratios matter. A loop is assumed
to iterate eight times, or sixty-four if one thread goes through what a block works on. If LLVM vectorises the loop of
a single thread, threads that run one after another are as fast as lanes, and contiguous accesses of a thread need no
gather."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.block_memory import is_in_block_memory
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS, needs_active_lane
from hip_runtime.drivers.cpu.analyses.free_instructions import find_free
from hip_runtime.drivers.cpu.analyses.integer_division import divides_as_floats
from hip_runtime.drivers.cpu.analyses.late_decisions import is_decided_late
from hip_runtime.drivers.cpu.analyses.longest_path import find_longest
from hip_runtime.drivers.cpu.analyses.neighbours import Neighbours, find_neighbours
from hip_runtime.drivers.cpu.analyses.private_arrays import is_private_address
from hip_runtime.drivers.cpu.analyses.recurrences import innermost_loops, latency
from hip_runtime.drivers.cpu.analyses.row_loops import ROW, find_row_loops
from hip_runtime.drivers.cpu.analyses.running_lanes import RunningLanes
from hip_runtime.drivers.cpu.analyses.shape_rules import MAX_STRIDE, VARYING
from hip_runtime.drivers.cpu.analyses.small_tables import find_small_table
from hip_runtime.drivers.cpu.analyses.stride_speculation import (
    SpeculatedStride,
    speculate_strides,
)
from hip_runtime.drivers.cpu.analyses.trip_counts import count_iterations
from hip_runtime.drivers.cpu.analyses.uniform_atomics import is_combinable, is_uniform_load
from hip_runtime.drivers.cpu.analyses.unit_stride_loops import UnitStrideLoops
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1
from hip_runtime.drivers.cpu.object_code.host_machine import has_mask_registers, vector_bytes
from hip_runtime.errors import UnsupportedError

_SCALAR, _LANE = 0.27, 0.06
"""An instruction of a thread that runs alone, and of a lane."""

_STRIDED_ACCESS = 1.0
"""A load or store of a thread in a loop whose stride is not that of a contiguous array."""

_GATHER, _SCATTER = 1.5, 2.0
"""A load or a store whose lanes are not contiguous; of neighbours in memory that a lane accesses at once, for all of
them together."""

_LOOKED_UP = 0.2
"""A load from a table that is in registers."""

_MASKED_GATHER = 4.0
"""A load under a mask whose lanes are not contiguous, for processors without registers for masks: what chooses each
lane's address, and the mask, which has as many bits as the addresses then, count with it."""

_NARROW_SCATTER = 4.0
"""A store of less than 32 bits whose lanes are not contiguous: no processor has an instruction for it, so lanes store
one after another, each behind a branch where some may be inactive."""

_LEAST_SCATTERED = 4
"""Bytes of the smallest elements that an instruction scatters."""

_ROWS_PER_BYTE = 0.75
"""What it costs more, for each byte of an element, where each lane accesses a row of its own, with unit stride or in
neighbouring gangs: that keeps as many cache lines in use as there are lanes, and needs the next ones the sooner, the
larger elements are. Not so rows that an outer loop accesses again and again: these are short, or few."""

_LEAST_OF_ROWS = 2
"""Bytes that the smallest elements count as then, as they are gathered with what is around them: where threads search
rows of bytes for the first of some, lanes take five times as long as one thread after another."""

_SHORT = 16
"""Iterations of a loop that LLVM writes out for a thread, and that goes through short rows, whose lines stay in the
cache for all lanes."""

_ROW_ELEMENT, _ROW_BYTE = 0.2, 0.05
"""An element, and each of its bytes, of a row that a lane loads several elements of at once, see `row_loops`; where
LLVM makes vectors of the loop of a single thread, that is quicker nevertheless."""

_APART, _MOST_APART = 1.5, 2
"""How many times as many iterations as its own a lane takes part in, in a loop that lanes leave apart from each other;
of such loops in one another, so many count: what their threads have to do in all differs less."""

_WAITING = 0.9
"""The part of the time that a thread which runs alone waits for the result of the last iteration: meanwhile the
processor executes some of the next thread."""

_DIVISION, _FLOAT_DIVISION = 2.0, 0.6
"""An integer division of a thread; and of a lane, if all lanes divide as floats."""

_ROOT, _LANE_ROOT = 3.0, 0.7
"""A division or a square root of floats: of a thread that runs alone, and of a lane."""

_OPAQUE, _SCALARIZED = 5.0, 5.5
"""What is scalarized: for a thread that runs alone, and for a lane."""

_LOCKED, _REPLACED, _TABLED = 18.0, 30.0, 3.0
"""An atomic operation on memory of all blocks: a locked instruction; a loop that replaces what it has read, as for
floats; and one in a worker's table, which only lanes have."""

_LOOP_MISPREDICTION, _BRANCH_MISPREDICTION = 10.0, 4.0
"""A mispredicted branch of a thread that runs alone: at a loop's exit, and elsewhere in a loop."""

_DECISION = 10.0
"""Each comparison of a ``switch`` behind the first: it halves the cases that are left, and half are mispredicted."""

_BRANCHES = 4
"""Of branches that exclude each other a thread that runs alone takes one, and lanes take all of them. What it takes
counts so many times at most: that many have been of use in gangs, whatever the threads took."""

_AFTER_LOAD = 15.0
"""What it takes longer where the loop loads from anywhere what decides, as in a table of hashes: nothing of the next
thread begins before that is there."""

_TAKEN_OUT = 25.0
"""What it takes to go on with a lane alone: its values go through memory, and the end of its loop is mispredicted."""

_LATE, _MOST_TAKEN_OUT = 32.0, 0.75
"""The iterations that remain for a lane then, and the most of a gang's lanes: where all go on alone once most loops
have begun, a search in a tree of boxes takes twice as long as with three quarters."""

_COMBINED = 8
"""Instructions that combine the operands that all lanes have for one atomic operation."""

_MEASURED_BYTES = 64
"""Of the vectors that costs were measured with."""

_TRIP_COUNT = 8
_MAX_DEPTH = 5


class UnprofitableError(UnsupportedError):
    """Lanes would be slower than one thread after another; the message says why."""


def explain_unprofitable(
    shapes: VectorShapes, size_of: Callable[[ir.Type], int], width: int,
    versioned: tuple[VectorShapes, Collection[Block]] | None = None,
) -> str:  # fmt: skip
    """Why a kernel with *shapes* is slower in gangs of *width* than one thread after another; empty if it is not.

    *versioned* are the shapes with versions for gangs that are coherent, as most are, and the blocks of the others."""
    estimate = _Estimate(shapes, size_of, width)
    scalar, vector = estimate.total()
    if versioned is not None:
        with_versions, rare = versioned
        _, vector = _Estimate(with_versions, size_of, width).total(rare)
    if vector <= scalar:
        return ""
    if vector <= scalar + estimate.of_idle_lanes:
        return "one lane does most of what there is to do"
    if vector <= scalar + estimate.of_other_branches:
        return "each thread takes one of many branches"
    return "its loads and stores are too far apart"


def estimate_lane(
    shapes: VectorShapes, size_of: Callable[[ir.Type], int], width: int, rows: Collection[Instruction]
) -> float:
    """The cost of a thread as a lane of gangs of *width* of a kernel with *shapes*; more if they are few. *rows* are
    accesses that are contiguous along another axis."""
    _, vector = _Estimate(shapes, size_of, width, rows).total()
    return vector * max(1.0, _SCALAR / _LANE / width)


def lanes_worth_taking_out(
    loops: Sequence[frozenset[Block]], shapes: VectorShapes, size_of: Callable[[ir.Type], int], width: int
) -> list[int]:  # fmt: skip
    """How many threads one after another take no longer for the rest of each of *loops* than a gang of *width*
    lanes."""
    estimate = _Estimate(shapes, size_of, width)
    found = []
    for scalar, vector in map(estimate.of_iteration, loops):
        gang = vector * width * _MEASURED_BYTES / vector_bytes()
        found.append(min(round(_LATE * gang / (_LATE * scalar + _TAKEN_OUT)), int(_MOST_TAKEN_OUT * width)))
    return found


class _Estimate:
    def __init__(
        self, shapes: VectorShapes, size_of: Callable[[ir.Type], int], width: int, rows: Collection[Instruction] = ()
    ) -> None:
        self._shapes = shapes
        self._size_of = size_of
        self._width = width
        self._rows = rows
        self._neighbours: dict[Block, dict[Instruction, Neighbours]] = {}
        self._speculated: dict[Instruction, SpeculatedStride] = speculate_strides(shapes)
        self._steps = unit_stride = UnitStrideLoops(shapes, size_of)
        self._short_loops = {
            loop for loop, header in shapes.order.headers().items() if count_iterations(loop, header, _SHORT)
        }
        self._unit_stride_loops = {
            loop
            for loop in innermost_loops(shapes)
            if loop not in self._short_loops and unit_stride.has_unit_stride(loop) and not self._is_in_record(loop)
        }
        self._running = RunningLanes(shapes, width, are_waves=False)
        self.of_idle_lanes = 0.0
        """What threads that run alone would take for code that only one lane of a gang runs, if all threads ran it."""
        self.of_other_branches = 0.0
        """The same for branches that exclude each other."""
        self._free = find_free(shapes, size_of)
        self._row_loads = {
            load
            for loop in find_row_loops(shapes, size_of)
            for load in loop.loads
            if frozenset({loop.block}) not in self._unit_stride_loops
        }
        self._left_apart = {
            loop
            for block in shapes.divergent
            for loop in shapes.order.loops[block]
            if any(target not in loop for target in shapes.successors(block))
        }

    def total(self, without: Collection[Block] = ()) -> tuple[float, float]:
        """The cost of a thread that runs alone, and of a lane, *without* some blocks."""
        vector = decisions = 0.0
        alone: dict[frozenset[Block], float] = {}
        scalar: dict[Block, float] = {}
        for block in self._shapes.order.blocks:
            if block in without:
                continue
            loops = self._shapes.order.loops[block]
            weight = float(_TRIP_COUNT ** min(len(loops), _MAX_DEPTH))
            apart = _APART ** min(sum(loop in self._left_apart for loop in loops), _MOST_APART)
            share, is_single = self._share(block), self._is_single(block)
            in_single = bool(loops) and all(map(self._is_single, loops[-1]))
            scalar_block, lane_block, waits = 0.0, 0.0, 0.0
            if block in self._shapes.divergent and not loops:
                decisions = max(decisions, _DECISION * math.log2(len(self._shapes.successors(block)) / 2) * share)
            for value in block.instructions:
                costs = self._costs(value, block)
                scalar_block += 0.0 if value in self._free else costs[0]
                by_lane = is_single and not in_single and value.opcode in ("load", "store")
                is_shared = by_lane or _is_for_active_lanes(value)
                lane_block += costs[1] * (share if is_shared else apart)
            is_vector = bool(loops) and loops[-1] in self._unit_stride_loops
            if is_vector:
                scalar_block /= _TRIP_COUNT
            if loops and block in self._shapes.divergent:
                leaves = any(target not in loops[-1] for target in self._shapes.successors(block))
                if leaves:
                    scalar_block += _LOOP_MISPREDICTION / _TRIP_COUNT
                    if is_decided_late(block, loops[-1], self._shapes, self._steps):
                        waits = _AFTER_LOAD * share * weight / _TRIP_COUNT
                elif not is_vector:
                    scalar_block += _BRANCH_MISPREDICTION
            if share < 1:
                weight *= _TRIP_COUNT if in_single else 1
                self.of_idle_lanes += scalar_block * weight * (1 - share)
                scalar_block *= share
            scalar[block] = scalar_block * weight + waits
            vector += lane_block * weight
            if loops:
                alone[loops[-1]] = alone.get(loops[-1], 0.0) + scalar_block
        waiting = sum(self._waits(loop, alone.get(loop, 0.0)) for loop in innermost_loops(self._shapes))
        longest = find_longest(self._shapes.order, self._shapes.successors, scalar)
        self.of_other_branches = max(sum(scalar.values()) - _BRANCHES * longest, 0.0)
        return sum(scalar.values()) - self.of_other_branches + waiting + decisions, vector

    def of_iteration(self, loop: frozenset[Block]) -> tuple[float, float]:
        """The cost of an iteration of *loop* for a thread that runs alone, and for a lane."""
        scalar = vector = 0.0
        depth = min(len(self._shapes.order.loops[block]) for block in loop)
        for block in loop:
            weight = float(_TRIP_COUNT ** min(len(self._shapes.order.loops[block]) - depth, _MAX_DEPTH))
            costs = [self._costs(value, block) for value in block.instructions]
            scalar += weight * sum(cost for cost, _ in costs)
            vector += weight * sum(cost for _, cost in costs)
        waits = _WAITING * latency(loop, self._shapes)
        return max(scalar, waits), vector

    def _is_in_record(self, loop: frozenset[Block]) -> bool:
        """Whether *loop* goes through neighbours in memory of which other lanes' are few elements behind, as through
        the colours of a pixel: it is short."""
        for block in loop:
            for value in block.instructions:
                if value.opcode in ("load", "store"):
                    nbytes = self._size_of(value.accessed)
                    shape = self._shapes.of(value.operands[-1], block)
                    is_near = shape is not VARYING and nbytes < abs(shape) <= MAX_STRIDE * nbytes
                    if is_near and self._steps.step(value.operands[-1], loop) == nbytes:
                        return True
        return False

    def _share(self, block: Block) -> float:
        """The part of a gang's lanes that can run *block*, behind ``if tx == 0`` one of them."""
        return self._running.of(block).bit_count() / self._width

    def _is_single(self, block: Block) -> bool:
        """Whether one lane of a gang at most can run *block*."""
        return self._share(block) * self._width <= 1

    def _waits(self, loop: frozenset[Block], cost: float) -> float:
        """Cycles that a thread which runs alone waits for results in *loop*, whose instructions *cost* so much."""
        if loop in self._unit_stride_loops:
            return 0.0
        depth = max(len(self._shapes.order.loops[block]) for block in loop)
        waiting = _WAITING * latency(loop, self._shapes) * max(map(self._share, loop))
        return max(waiting - cost, 0.0) * float(_TRIP_COUNT ** min(depth, _MAX_DEPTH))

    def _costs(self, value: Instruction, block: Block) -> tuple[float, float]:
        if value.opcode in ("phi", "alloca"):
            return 0.0, 0.0
        if value.opcode in ("load", "store") and not value.volatile and value.atomic is None:
            return self._access(value, block)
        if self._shapes.at_definition(value) is not VARYING:
            return _SCALAR, _SCALAR / self._width
        if value.opcode in ("sdiv", "udiv", "srem", "urem"):
            return _DIVISION, _FLOAT_DIVISION if divides_as_floats(value, self._width) else _DIVISION
        if value.opcode == "fdiv" or value.callee.startswith("llvm.sqrt."):
            return _ROOT, _LANE_ROOT
        if value.callee in spmd.WAVE_WIDE:  # threads that run alone exchange values through memory
            return _OPAQUE, _LANE
        if value.elementwise is not None:
            count = sum(1 for _ in value.elementwise.instructions())
            return _SCALAR * count, _LANE * count
        if is_uniform_load(value, block, self._shapes):
            return _SCALAR, _SCALAR / self._width
        if value.opcode == "atomicrmw":
            return self._update(value, block)
        if needs_active_lane(value):
            return _OPAQUE, _SCALARIZED
        return _SCALAR, _LANE

    def _update(self, value: Instruction, block: Block) -> tuple[float, float]:
        address = value.operands[0]
        alone = _OPAQUE if is_in_block_memory(address) else _LOCKED if _is_locked(value) else _REPLACED
        if is_combinable(value, block, self._shapes):
            return alone, _COMBINED * _LANE + alone / self._width
        if value.table is not None and self._shapes.of(address, block) is VARYING:
            return alone, _TABLED
        return alone, alone + _SCALARIZED - _OPAQUE

    def _access(self, value: Instruction, block: Block) -> tuple[float, float]:
        accessed = value.accessed
        address = value.operands[-1]
        loops = self._shapes.order.loops[block]
        step = self._steps.step(address, loops[-1]) if loops else 0
        unit_stride = step == self._size_of(accessed)
        scalar = _SCALAR if step == 0 or unit_stride or is_private_address(address) else _STRIDED_ACCESS
        shape = self._shapes.of(address, block)
        if shape is VARYING and isinstance(address, Instruction) and address in self._speculated:
            shape = self._speculated[address].shape
        if accessed == I1:
            return scalar, _SCALARIZED
        if shape is not VARYING and 0 <= shape <= MAX_STRIDE * self._size_of(accessed):
            return scalar, _LANE
        if shape == -self._size_of(accessed):  # and a shuffle
            return scalar, 2 * _LANE
        if value.opcode == "load" and find_small_table(value, block, self._shapes) is not None:
            return scalar, _LOOKED_UP
        if value in self._row_loads and value not in self._rows and self._width >= ROW:
            return scalar, _ROW_ELEMENT + _ROW_BYTE * self._size_of(accessed)
        is_narrow_store = value.opcode == "store" and self._size_of(accessed) < _LEAST_SCATTERED
        if (unit_stride and not self._is_near(address, loops)) or value in self._rows:
            apart = _NARROW_SCATTER if is_narrow_store else _GATHER
            return scalar, apart + _ROWS_PER_BYTE * max(self._size_of(accessed), _LEAST_OF_ROWS)
        if value.opcode == "load":
            is_chosen = block in self._shapes.masked and not has_mask_registers()
            return scalar, (_MASKED_GATHER if is_chosen else _GATHER) / self._count_neighbours(value, block)
        return scalar, _NARROW_SCATTER if is_narrow_store else _SCATTER / self._count_neighbours(value, block)

    def _count_neighbours(self, access: Instruction, block: Block) -> int:
        """How many neighbours in memory are accessed together with *access* and by it."""
        if block not in self._neighbours:
            self._neighbours[block] = find_neighbours(
                block, partial(self._is_apart, block), partial(self._most_at_once, block), self._size_of, _guess_nothing
            )
        group = self._neighbours[block].get(access)
        return 1 if group is None else len(group.members)

    def _is_apart(self, block: Block, access: Instruction) -> bool:
        if access.opcode not in ("load", "store") or access.volatile or access.atomic is not None:
            return False
        address = access.operands[-1]
        return self._shapes.of(address, block) is VARYING and not is_private_address(address)

    def _most_at_once(self, block: Block, access: Instruction) -> int:
        return 4 if access.opcode == "load" and block not in self._shapes.masked else 2

    def _is_near(self, address: Value, loops: tuple[frozenset[Block], ...]) -> bool:
        """Whether the row that the innermost of *loops* goes through by *address* is short, or again the same."""
        return loops[-1] in self._short_loops or self._is_repeated(address, loops)

    def _is_repeated(self, address: Value, loops: tuple[frozenset[Block], ...]) -> bool:
        """Whether the second innermost of *loops* does not change which row the innermost goes through by *address*."""
        if len(loops) < 2:
            return False
        waiting, seen = [address], {address}
        while waiting:
            value = waiting.pop()
            home = self._shapes.homes.get(value) if isinstance(value, Instruction) else None
            if not isinstance(value, Instruction) or home not in loops[-2]:
                continue
            if value.opcode == "load" or (value.opcode == "phi" and home not in loops[-1]):
                return False
            waiting += set(value.operands) - seen
            seen.update(value.operands)
        return True


def _guess_nothing(_: Instruction) -> None:
    """What an index probably is: of those that are held within a limit, nothing is known before gangs are written."""


def _is_for_active_lanes(value: Instruction) -> bool:
    """Whether *value* takes time for each lane that is active, and none for the others."""
    return needs_active_lane(value) and value.opcode not in ("load", "store", *DIVISIONS)


def _is_locked(update: Instruction) -> bool:
    """Whether processors have an instruction that does *update* and locks its cache line."""
    return update.operation in _WITH_LOCK and isinstance(update.type, ir.IntType)


_WITH_LOCK = ("add", "sub", "and", "or", "xor", "xchg")
