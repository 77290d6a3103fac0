"""The shapes of values in the gangs of a function, and where in their block these gangs are."""

from __future__ import annotations

from hip_runtime.drivers.cpu.abi.work_item import NumberedWorkItem, WorkItem
from hip_runtime.drivers.cpu.analyses.alignments import Alignments, splits_gangs
from hip_runtime.drivers.cpu.analyses.clamps import InsideShapes, has_clamps
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.vector_shapes import LaneShapes, VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.passes.if_conversion import convert_ifs, has_small_ifs
from hip_runtime.drivers.cpu.vectorize.early_exit import assume_early_exits
from hip_runtime.drivers.cpu.vectorize.gang_lanes import align_lanes, fit_waves
from hip_runtime.drivers.cpu.vectorize.gang_options import GangOptions
from hip_runtime.drivers.cpu.vectorize.private_memory import PrivateMemory


class GangShapes:
    """The values of *function*, which is changed, in gangs of *width* threads of *item*."""

    def __init__(self, function: Function, item: WorkItem, size_of: SizeOf, width: int, options: GangOptions) -> None:
        self._graph = function
        self.item = item
        self._size_of = size_of
        self.width = width
        self._options = options
        self.privates = PrivateMemory(function, size_of, width, options.name)
        self.shapes, self.early_exits = self._analyse()
        """The shapes in gangs of which no lane takes an early exit, and the early exits."""

    @property
    def follows_rows(self) -> bool:
        """Whether a gang ends where a row does, and the next one begins there."""
        return self._options.follows_rows

    @property
    def has_partial_gangs(self) -> bool:
        """Whether a row may end with a gang that is not full. Where lanes of a gang may return at once, which takes the
        same code, a length that is known at run time only may be any."""
        item = self.item
        if self.follows_rows or self._options.ends_anywhere or item.order.block[item.order.lane_axis] % self.width != 0:
            return True
        return item.order.lengths is not None and (bool(self.early_exits) or item.order.multiple == 1)

    @property
    def may_split(self) -> bool:
        """Whether gangs that reach over the end of a row may be split, see `row_split`."""
        if isinstance(self.item, NumberedWorkItem) or self._options.lockstep:
            return False
        aligned = align_lanes(self.item, self.width, self._lanes_are_neighbours)
        values = list(self._graph.instructions())
        return any(value.opcode in DIVISIONS for value in values) and not any(
            splits_gangs(value, aligned) for value in values
        )

    @property
    def likely_shapes(self) -> VectorShapes:
        """The shapes in most gangs, in which no index is clamped."""
        return self._shapes(self.early_exits, kind=InsideShapes) if has_clamps(self._graph) else self.shapes

    def _shapes(
        self, early_exits: dict[Block, Block], function: Function | None = None, kind: type[VectorShapes] = VectorShapes
    ) -> VectorShapes:
        """The shapes in *function*, or in the whole graph."""
        graph = self._graph if function is None else function
        kind = LaneShapes if self._options.is_alone else kind
        neighbours = self._lanes_are_neighbours
        aligned = Alignments(self.width, {}) if self.follows_rows else align_lanes(self.item, self.width, neighbours)
        along = self.item.order.along
        return kind(graph, early_exits, self._size_of, self.privates.stride, neighbours, along, aligned)

    @property
    def _lanes_are_neighbours(self) -> bool:
        """Whether the lanes of a gang are neighbours in their wave."""
        return not self.follows_rows and fit_waves(self.item, self.width)

    def _analyse(self) -> tuple[VectorShapes, dict[Block, Block]]:
        """The shapes if no lane takes an early exit, and the early exits, with the target that lanes continue at."""
        if has_small_ifs(self._graph) and convert_ifs(self._graph, self._shapes({}).divergent):
            record(f"convert_ifs {self._options.name}", self._graph)
        return assume_early_exits(self._shapes, self._options.exits_on_data)

    def _record(self, stage: str) -> None:
        record(f"{stage} {self._options.name}", self._graph, self._describe)

    def _describe(self, value: Instruction) -> str:
        """The shape of *value*, for dumps."""
        home = self.shapes.homes.get(value)
        exits = home in self.early_exits and value.is_terminator
        return "early exit" if exits else self.shapes.describe(value)
