"""The values of a kernel for a gang, in the block that is being written: the base of a strided value, or all lanes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.linear_addresses import is_linear
from hip_runtime.drivers.cpu.analyses.running_lanes import RunningLanes
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.ir.symbol_declarations import SymbolDeclarations
from hip_runtime.drivers.cpu.llvmir import I32, allocate
from hip_runtime.drivers.cpu.vectorize.speculative_bases import SpeculativeBases
from hip_runtime.drivers.cpu.vectorize.suspension import Suspension
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder


class FindsVariants(Protocol):
    """Provides vector variants of functions, see `vectorize.vector_variants`."""

    def find(self, function: Function, width: int) -> ir.Function | None:
        """The variant of *function* for *width* lanes; ``None`` if there is none."""


class IsPending(Protocol):
    """Updates of memory that are done later, see `vectorize.tabled_updates`."""

    def settle(self) -> ir.Value | None:
        """Whether some of those that this was not asked of yet have no elements of tables; ``None`` if there are no
        such."""

    def catch_up(self) -> None:
        """Write them here, where that was not done yet."""


class GangValues:
    """Values of one gang. ``mask`` is that of the block that is being written, ``None`` if all lanes run it."""

    def __init__(
        self, lanes: VectorBuilder, shapes: VectorShapes, item: WorkItem, symbols: SymbolDeclarations,
        entry: ir.IRBuilder, arguments: list[ir.Value], privates: dict[Instruction, ir.Value], variants: FindsVariants,
        demotable: frozenset[Instruction] = frozenset(), lockstep: bool = False, suspension: Suspension | None = None,
    ) -> None:  # fmt: skip
        self.lanes = lanes
        self.builder = lanes.builder
        self.shapes = shapes
        self.item = item
        self.symbols = symbols
        self.entry = entry
        self.arguments = arguments
        self.privates = privates
        self.variants = variants
        self.demotable = demotable
        self.lockstep = lockstep
        """Whether each memory access has to be made for all lanes before the next one."""
        self.suspension = suspension
        """Where the gang stops, if it does."""
        self.mask: ir.Value | None = None
        self.block: Block
        self.lane: int | None = None
        """The only lane that runs this block, which is masked, if that is known. Its memory accesses, and whatever else
        may do harm in an inactive lane, are behind a branch, so that lane is active there."""
        self.values: dict[Instruction, ir.Value] = {}
        """Values that are available in this block: the base if the value is strided, all lanes if it varies."""
        self._spread: dict[Value, ir.Value] = {}
        self._divided: dict[tuple[Value, Value, bool], tuple[ir.Value, ir.Value]] = {}
        """Quotients and remainders of this block, by operands and whether these have a sign."""
        self.places: dict[Instruction, ir.Value] = {}
        """Atomic operations of this block that count on by one for each active lane: the number before."""
        self._variables: dict[tuple[Instruction, bool], ir.Value] = {}
        self._running: RunningLanes | None = None
        self._speculated = SpeculativeBases(shapes, lanes, self.place, self.scalar)

    def begin(self, block: Block, mask: ir.Value | None) -> None:
        """Start another block."""
        self.block, self.mask, self.lane = block, mask, self.only_lane(block)
        self.values, self._spread, self._divided, self.places = {}, {}, {}, {}
        self._speculated.begin(block)

    @contextmanager
    def in_branch(self) -> Iterator[None]:
        """Around code that may not run: values that are first read there are read again behind it."""
        values, spread, divided = dict(self.values), dict(self._spread), dict(self._divided)
        yield
        self.values, self._spread, self._divided = values, spread, divided

    @property
    def running(self) -> RunningLanes:
        """Which lanes of the gang can run a block."""
        if self._running is None:
            are_waves = self.shapes.lanes_consecutive and self.lanes.width == self.item.wave_size
            self._running = RunningLanes(self.shapes, self.lanes.width, are_waves)
        return self._running

    def only_lane(self, block: Block) -> int | None:
        """The lane that is the only one that can run *block*, which is masked, if that is known."""
        return self.running.only(block) if block in self.shapes.masked else None

    def runs(self, block: Block, mask: ir.Value) -> ir.Value:
        """Whether any lane runs *block*, whose mask is *mask*."""
        only = self.only_lane(block)
        return self.lanes.any(mask) if only is None else self.builder.extract_element(mask, I32(only))

    def variable(self, value: Instruction, varying: bool) -> ir.Value:
        """The stack slot that carries a value between blocks: its base, or all lanes."""
        found = self._variables.get((value, varying))
        if found is None:
            kind = self.lanes.type_of(value.type) if varying else value.type
            found = self._variables[value, varying] = self.place(value, kind, value.name)
        return found

    def place(self, value: Instruction, kind: ir.Type, name: str) -> ir.Value:
        """Memory for something of *kind* that belongs to *value*: in the gang's record, if it is kept there."""
        if self.suspension is not None:
            return self.suspension.place(self.entry, value, kind, name)
        return allocate(self.entry, kind, name)

    def scalar(self, value: Value) -> ir.Value:
        """The base of a value that is strided."""
        if not isinstance(value, Instruction):
            return self.symbols.leaf(value, self.arguments)
        if value.opcode == "alloca":
            return self.privates[value]
        known = self.values.get(value)
        if known is None:
            known = self.values[value] = self.builder.load(self.variable(value, False), typ=value.type)
        return known

    @property
    def pending(self) -> IsPending | None:
        """Updates of this block that were put off until another one."""
        return None

    def is_line(self, pointer: Value) -> bool:
        """Whether all lanes run this block, and *pointer* grows by the same number from lane to lane."""
        return self.mask is None and self.lanes.width > 1 and is_linear(pointer, self.block, self.shapes)

    def of_lane(self, value: Value, lane: int) -> ir.Value:
        """*value* in one lane."""
        shape = self.shapes.of(value, self.block)
        if shape is VARYING:
            return self.builder.extract_element(self.vector(value), I32(lane))
        return self.lanes.step(self.scalar(value), shape * lane)

    def vector(self, value: Value) -> ir.Value:
        """All lanes of a value."""
        known = self._spread.get(value)
        if known is not None:
            return known
        shape = self.shapes.of(value, self.block)
        if shape is not VARYING:
            known = self.lanes.spread(self.scalar(value), shape)
        else:
            assert isinstance(value, Instruction)
            known = None if self.shapes.leaves_masked_loop(value, self.block) else self.values.get(value)
            if known is None:
                known = self.builder.load(self.variable(value, True), typ=self.lanes.type_of(value.type))
        self._spread[value] = known
        return known
