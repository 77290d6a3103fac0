"""Widens what only the first lanes of a wave are needed of to as many lanes, see `analyses.demanded_lanes`."""

from __future__ import annotations

from functools import cached_property

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.demanded_lanes import DemandedLanes, is_lanewise
from hip_runtime.drivers.cpu.analyses.running_lanes import RunningLanes
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING, Shape
from hip_runtime.drivers.cpu.ir.model import Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I32
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder
from hip_runtime.drivers.cpu.vectorize.widen import Widener


class FirstLanesWidener(Widener):
    """Writes the instructions of a block for a wave of which all lanes start.

    A vector of which only the first lanes are needed is computed with as many lanes, and extended by undefined ones,
    which LLVM takes away again.
    """

    _whole: VectorBuilder | None = None
    """What writes vectors of all lanes, while `lanes` writes one with fewer."""

    @cached_property
    def _demanded(self) -> DemandedLanes:
        return DemandedLanes(self.shapes, self.lanes.width)

    @property
    def running(self) -> RunningLanes:
        """Which lanes of the wave can run a block."""
        return self._demanded.running

    def vector(self, value: Value) -> ir.Value:
        """All lanes of a value, or the first ones, while the result has fewer."""
        if self._whole is None:
            return super().vector(value)
        few, self.lanes, self._whole = self.lanes, self._whole, None
        whole = super().vector(value)
        self.lanes, self._whole = few, self.lanes
        return few.shuffle(whole, few.step_vector(I32, 1))

    def _write_result(self, instruction: Instruction, shape: Shape) -> ir.Value | None:
        lanes, count = self.lanes, self._demanded.count(instruction)
        sources = self._demanded.sources(instruction)
        if (
            shape is not VARYING
            or count == lanes.width
            or self.lane is not None
            or (sources is None and not is_lanewise(instruction))
        ):
            return super()._write_result(instruction, shape)
        if sources is not None:
            part: ir.Value | None = lanes.shuffle(
                self.vector(instruction.arguments[1]), lanes.vector_of(I32, sources[:count])
            )
        else:
            self.lanes, self._whole = VectorBuilder(self.builder, count, lanes.entry), lanes
            part = super()._write_result(instruction, shape)
            self.lanes, self._whole = lanes, None
        return lanes.shuffle(part, lanes.vector_of(I32, [min(lane, count) for lane in range(lanes.width)]))


def has_shuffles(function: Function) -> bool:
    """Whether lanes exchange values in *function*."""
    return any(value.callee.startswith(spmd.SHUFFLE) for value in function.instructions())
