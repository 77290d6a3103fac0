"""Static cost model: whether a gang of lanes is faster than one thread after another.

Costs are cycles per thread, measured on a processor with 512-bit vectors; only their ratios matter. A loop is assumed
to iterate eight times, or sixty-four if one thread goes through what a block works on. If LLVM vectorises the loop of
a single thread, threads that run one after another are as fast as lanes, and contiguous accesses of a thread need no
gather."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS, needs_active_lane
from hip_runtime.drivers.cpu.analyses.free_instructions import find_free
from hip_runtime.drivers.cpu.analyses.instruction_costs import LANE, SCALAR, InstructionCosts
from hip_runtime.drivers.cpu.analyses.late_decisions import is_decided_late
from hip_runtime.drivers.cpu.analyses.longest_path import find_longest
from hip_runtime.drivers.cpu.analyses.recurrences import innermost_loops, latency
from hip_runtime.drivers.cpu.analyses.running_lanes import RunningLanes
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction
from hip_runtime.drivers.cpu.object_code.host_machine import vector_bytes
from hip_runtime.errors import UnsupportedError

_APART, _MOST_APART = 1.5, 2
"""How many times as many iterations as its own a lane takes part in, in a loop that lanes leave apart from each other;
of such loops in one another, so many count: what their threads have to do in all differs less."""

_WAITING = 0.9
"""The part of the time that a thread which runs alone waits for the result of the last iteration: meanwhile the
processor executes some of the next thread."""

_LOOP_MISPREDICTION, _BRANCH_MISPREDICTION = 10.0, 4.0
"""A mispredicted branch of a thread that runs alone: at a loop's exit, and elsewhere in a loop."""

_AFTER_LOAD = 15.0
"""What it takes longer where the loop loads from anywhere what decides, as in a table of hashes: nothing of the next
thread begins before that is there."""

_DECISION = 10.0
"""Each comparison of a ``switch`` behind the first: it halves the cases that are left, and half are mispredicted."""

_BRANCHES = 4
"""Of branches that exclude each other a thread that runs alone takes one, and lanes take all of them. What it takes
counts so many times at most: that many have been of use in gangs, whatever the threads took."""

_TAKEN_OUT = 25.0
"""What it takes to go on with a lane alone: its values go through memory, and the end of its loop is mispredicted."""

_LATE, _MOST_TAKEN_OUT = 32.0, 0.75
"""The iterations that remain for a lane then, and the most of a gang's lanes: where all go on alone once most loops
have begun, a search in a tree of boxes takes twice as long as with three quarters."""

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
    return vector * max(1.0, SCALAR / LANE / width)


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
        self._width = width
        self._instructions = InstructionCosts(shapes, size_of, width, rows)
        self._running = RunningLanes(shapes, width, are_waves=False)
        self.of_idle_lanes = 0.0
        """What threads that run alone would take for code that only one lane of a gang runs, if all threads ran it."""
        self.of_other_branches = 0.0
        """The same for branches that exclude each other."""
        self._free = find_free(shapes, size_of)
        self._left_apart = {
            loop
            for block in shapes.divergent
            for loop in shapes.order.loops[block]
            if any(target not in loop for target in shapes.successors(block))
        }

    def total(self, without: Collection[Block] = ()) -> tuple[float, float]:
        """The cost of a thread that runs alone, and of a lane, *without* some blocks."""
        vector = 0.0
        alone: dict[frozenset[Block], float] = {}
        scalar: dict[Block, float] = {}
        blocks = [block for block in self._shapes.order.blocks if block not in without]
        for block in blocks:
            loops = self._shapes.order.loops[block]
            weight = float(_TRIP_COUNT ** min(len(loops), _MAX_DEPTH))
            apart = _APART ** min(sum(loop in self._left_apart for loop in loops), _MOST_APART)
            share, is_single = self._share(block), self._is_single(block)
            in_single = bool(loops) and all(map(self._is_single, loops[-1]))
            scalar_block = lane_block = 0.0
            for value in block.instructions:
                costs = self._instructions.of(value, block)
                scalar_block += 0.0 if value in self._free else costs[0]
                by_lane = is_single and not in_single and value.opcode in ("load", "store")
                is_shared = by_lane or _is_for_active_lanes(value)
                lane_block += costs[1] * (share if is_shared else apart)
            if loops and loops[-1] in self._instructions.unit_stride_loops:
                scalar_block /= _TRIP_COUNT
            mispredicted, waits = self._mispredictions(block)
            scalar_block, waits = scalar_block + mispredicted, waits * share * weight
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
        decisions = max((self._decisions(block) for block in blocks if block in self._shapes.divergent), default=0.0)
        return sum(scalar.values()) - self.of_other_branches + waiting + decisions, vector

    def _mispredictions(self, block: Block) -> tuple[float, float]:
        """What the branch at the end of *block* takes longer in an iteration of a loop if it is mispredicted; and until
        what decides it is loaded."""
        loops = self._shapes.order.loops[block]
        if not loops or block not in self._shapes.divergent:
            return 0.0, 0.0
        if any(target not in loops[-1] for target in self._shapes.successors(block)):
            is_late = is_decided_late(block, loops[-1], self._shapes, self._instructions.steps)
            return _LOOP_MISPREDICTION / _TRIP_COUNT, _AFTER_LOAD / _TRIP_COUNT if is_late else 0.0
        return 0.0 if loops[-1] in self._instructions.unit_stride_loops else _BRANCH_MISPREDICTION, 0.0

    def _decisions(self, block: Block) -> float:
        """What the comparisons at the end of *block*, outside of loops, take longer if they are mispredicted."""
        if self._shapes.order.loops[block]:
            return 0.0
        return _DECISION * math.log2(len(self._shapes.successors(block)) / 2) * self._share(block)

    def of_iteration(self, loop: frozenset[Block]) -> tuple[float, float]:
        """The cost of an iteration of *loop* for a thread that runs alone, and for a lane."""
        scalar = vector = 0.0
        depth = min(len(self._shapes.order.loops[block]) for block in loop)
        for block in loop:
            weight = float(_TRIP_COUNT ** min(len(self._shapes.order.loops[block]) - depth, _MAX_DEPTH))
            costs = [self._instructions.of(value, block) for value in block.instructions]
            scalar += weight * sum(cost for cost, _ in costs)
            vector += weight * sum(cost for _, cost in costs)
        waits = _WAITING * latency(loop, self._shapes)
        return max(scalar, waits), vector

    def _share(self, block: Block) -> float:
        """The part of a gang's lanes that can run *block*, behind ``if tx == 0`` one of them."""
        return self._running.of(block).bit_count() / self._width

    def _is_single(self, block: Block) -> bool:
        """Whether one lane of a gang at most can run *block*."""
        return self._share(block) * self._width <= 1

    def _waits(self, loop: frozenset[Block], cost: float) -> float:
        """Cycles that a thread which runs alone waits for results in *loop*, whose instructions *cost* so much."""
        if loop in self._instructions.unit_stride_loops:
            return 0.0
        depth = max(len(self._shapes.order.loops[block]) for block in loop)
        waiting = _WAITING * latency(loop, self._shapes) * max(map(self._share, loop))
        return max(waiting - cost, 0.0) * float(_TRIP_COUNT ** min(depth, _MAX_DEPTH))


def _is_for_active_lanes(value: Instruction) -> bool:
    """Whether *value* takes time for each lane that is active, and none for the others."""
    return needs_active_lane(value) and value.opcode not in ("load", "store", *DIVISIONS)
