"""Whether threads as lanes are quicker than one after another: an estimate from the kernel alone.

Costs are cycles for one thread, as they were measured on a processor with vectors of 512 bits; only their ratios
matter. What is inside of a loop counts eight times. Where LLVM makes vectors of the loop of a single thread, threads
that run one after another are as quick as lanes, and what a thread finds in a row need not be gathered.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.effects import needs_a_lane
from hip_runtime.drivers.cpu.analyses.stride_speculation import SpeculatedStride, speculate_strides
from hip_runtime.drivers.cpu.analyses.unit_stride_loops import UnitStrideLoops
from hip_runtime.drivers.cpu.analyses.vector_shapes import VARYING, VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction
from hip_runtime.drivers.cpu.llvmir import I1
from hip_runtime.errors import UnsupportedError

_ALONE, _TOGETHER = 0.27, 0.06
"""Cycles of an instruction for one thread, alone and as one of the lanes."""

_FAR = 1.0
"""A load or store of one thread in a loop, at another place in each round."""

_GATHER, _SCATTER, _GATHER_ROW = 1.5, 2.0, 3.5
"""A load or a store of lanes apart from each other; and one of which each lane goes along a row of its own: as many
lines of the cache are in use as there are lanes."""

_DIVISION = 2.0
_EACH_ALONE, _EACH = 5.0, 5.5
"""What is done for one lane after another: for one thread, and as one of the lanes."""

_LEFT, _PARTED = 10.0, 4.0
"""A branch that the processor foresees wrongly: where a loop ends, and elsewhere in it."""

_ROUNDS = 8
_DEEPEST = 5


class UnprofitableError(UnsupportedError):
    """Lanes would be slower than threads one after another; says why."""


def check_profitable(shapes: VectorShapes, size_of: Callable[[ir.Type], int], width: int) -> None:
    """Raise `UnprofitableError` where *width* lanes are the worse way to run a kernel with *shapes*."""
    reason = explain_unprofitable(shapes, size_of, width)
    if reason:
        raise UnprofitableError(reason)


def explain_unprofitable(shapes: VectorShapes, size_of: Callable[[ir.Type], int], width: int) -> str:
    """Why threads one after another are the better way to run a kernel with *shapes*; empty where *width* lanes are."""
    alone, together = _Estimate(shapes, size_of, width).total()
    return "" if together <= alone else "what its threads load and store lies too far apart"


class _Estimate:
    def __init__(self, shapes: VectorShapes, size_of: Callable[[ir.Type], int], width: int) -> None:
        self._shapes = shapes
        self._size_of = size_of
        self._width = width
        self._speculated: dict[Instruction, SpeculatedStride] = speculate_strides(shapes)
        self._strides = rows = UnitStrideLoops(shapes, size_of)
        innermost = {loops[-1] for loops in shapes.order.loops.values() if loops}
        self._rows = {loop for loop in innermost if rows.is_row(loop)}

    def total(self) -> tuple[float, float]:
        """What one thread costs that runs alone, and as one of the lanes."""
        alone = together = 0.0
        for block in self._shapes.order.blocks:
            loops = self._shapes.order.loops[block]
            weight = float(_ROUNDS ** min(len(loops), _DEEPEST))
            one, lane = 0.0, 0.0
            for value in block.instructions:
                costs = self._costs(value, block)
                one, lane = one + costs[0], lane + costs[1]
            if loops and loops[-1] in self._rows:
                one /= _ROUNDS
            if loops and block in self._shapes.divergent:
                leaves = any(target not in loops[-1] for target in self._shapes.successors(block))
                one += _LEFT / _ROUNDS if leaves else _PARTED
            alone, together = alone + one * weight, together + lane * weight
        return alone, together

    def _costs(self, value: Instruction, block: Block) -> tuple[float, float]:
        if value.opcode in ("phi", "alloca"):
            return 0.0, 0.0
        if value.opcode in ("load", "store") and not value.volatile and value.atomic is None:
            return self._access(value, block)
        if self._shapes.own(value) is not VARYING:
            return _ALONE, _ALONE / self._width
        if value.opcode in ("sdiv", "udiv", "srem", "urem"):
            return _DIVISION, _DIVISION
        if value.callee in spmd.WAVE_WIDE:  # alone it goes through memory, for all lanes at one place
            return _EACH_ALONE, _TOGETHER
        if value.elementwise is not None:
            count = sum(1 for _ in value.elementwise.instructions())
            return _ALONE * count, _TOGETHER * count
        if needs_a_lane(value):
            return _EACH_ALONE, _EACH
        return _ALONE, _TOGETHER

    def _access(self, value: Instruction, block: Block) -> tuple[float, float]:
        held = value.type if value.opcode == "load" else value.operands[0].type
        place = value.operands[-1]
        loops = self._shapes.order.loops[block]
        step = self._strides.step(place, loops[-1]) if loops else 0
        in_row = step == self._size_of(held)
        alone = _ALONE if step == 0 or in_row else _FAR
        shape = self._shapes.of(place, block)
        if shape is VARYING and isinstance(place, Instruction) and place in self._speculated:
            shape = self._speculated[place].shape
        if held == I1:
            return alone, _EACH
        if shape is not VARYING and 0 <= shape <= MOST_STEP * self._size_of(held):
            return alone, _TOGETHER
        if in_row:
            return alone, _GATHER_ROW
        return alone, _GATHER if value.opcode == "load" else _SCATTER


MOST_STEP = 4
"""Bytes of an element, and the distance in elements, for which what lies between lanes is loaded with them."""
