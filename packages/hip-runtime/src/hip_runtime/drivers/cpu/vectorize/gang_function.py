"""Functions that run neighbouring threads of a block as lanes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import NumberedWorkItem, WorkItem
from hip_runtime.drivers.cpu.abi.worker import counted
from hip_runtime.drivers.cpu.analyses.alignments import Alignments, splits_gangs
from hip_runtime.drivers.cpu.analyses.clamps import InsideShapes, has_clamps
from hip_runtime.drivers.cpu.analyses.coherent_divisions import find_coherent_width
from hip_runtime.drivers.cpu.analyses.cost_model import UnprofitableError, explain_unprofitable
from hip_runtime.drivers.cpu.analyses.double_width import gains_by_double_width
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.grid_stride_loops import MAX_LANES
from hip_runtime.drivers.cpu.analyses.loops_left_late import find_loops_left_late
from hip_runtime.drivers.cpu.analyses.register_pressure import fills_registers_in_loops
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.vector_shapes import LaneShapes, VectorShapes
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.drivers.cpu.ir.clone import copy_blocks
from hip_runtime.drivers.cpu.ir.debug_locations import keep_lines
from hip_runtime.drivers.cpu.ir.loop_metadata import rolled
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction
from hip_runtime.drivers.cpu.ir.symbol_declarations import SymbolDeclarations
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, PTR, VOID, allocate
from hip_runtime.drivers.cpu.passes.if_conversion import convert_ifs, has_small_ifs
from hip_runtime.drivers.cpu.vectorize.brought_conditions import bring_conditions
from hip_runtime.drivers.cpu.vectorize.coarsen import CoarsenedFunction, count_rows
from hip_runtime.drivers.cpu.vectorize.coherent import CoherentBranches, sink_conditions
from hip_runtime.drivers.cpu.vectorize.coherent_values import CoherentValues
from hip_runtime.drivers.cpu.vectorize.early_exit import assume_early_exits
from hip_runtime.drivers.cpu.vectorize.few_lanes import FewLanes, each_lane, find_data_check
from hip_runtime.drivers.cpu.vectorize.first_lanes import FirstLanesWidener, has_shuffles
from hip_runtime.drivers.cpu.vectorize.gang_lanes import align_lanes, fit_waves, place_in_row
from hip_runtime.drivers.cpu.vectorize.predicated_function import PredicatedFunction
from hip_runtime.drivers.cpu.vectorize.private_memory import PrivateMemory
from hip_runtime.drivers.cpu.vectorize.remaining_lanes import write_remaining
from hip_runtime.drivers.cpu.vectorize.row_loops import read_rows
from hip_runtime.drivers.cpu.vectorize.row_parts import gains_by_width, write_parts
from hip_runtime.drivers.cpu.vectorize.row_split import RowSplit, split_rows
from hip_runtime.drivers.cpu.vectorize.shared_cells import CellGangs, CellWidener
from hip_runtime.drivers.cpu.vectorize.suspension import Suspension, find_suspension
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder
from hip_runtime.drivers.cpu.vectorize.vector_variants import Variants
from hip_runtime.drivers.cpu.vectorize.widen import Widener

GANG_FUNCTION = "spmd.gang"


class GangFunction:
    """A function that runs the gang whose first thread the work item holds. Its last argument is the number of threads
    from there to the end of the row; the others have the types *kinds*, the work item first.

    *demotable* are atomic operations of *function* on the block's own memory. *lockstep* makes each memory access for
    all lanes before the next one. *exits_on_data*: see `early_exit`. If it *may_suspend*, three arguments follow: the
    address of the gang's record, whether it was suspended, and whether it pauses behind the loop, which it only ever
    does if *kernel_arguments* says how many of the arguments are the kernel's; see `suspension`. If it *follows_rows*,
    a gang runs the threads up to the end of a row and returns how many those were, and the next one begins there; see
    `row_split`. *is_alone*: a gang is a single thread, for which all is uniform. *ends_anywhere*: only so many threads
    of a row run as is known at run time. *cells*: how gangs access shared memory, if as
    `shared_cells` does.
    """

    def __init__(
        self, function: Function, item: WorkItem, kinds: Sequence[ir.Type], symbols: SymbolDeclarations,
        size_of: SizeOf, width: int, demotable: frozenset[Instruction] = frozenset(), name: str = GANG_FUNCTION,
        lockstep: bool = False, exits_on_data: bool = True, may_suspend: bool = False,
        kernel_arguments: int | None = None, follows_rows: bool = False, is_alone: bool = False,
        ends_anywhere: bool = False, cells: CellGangs | None = None,
    ) -> None:  # fmt: skip
        self.follows_rows = follows_rows
        self._ends_anywhere = ends_anywhere
        self._is_alone = is_alone
        self._cells = cells
        self._may_suspend = may_suspend
        self._kernel_arguments = kernel_arguments
        self.suspension: Suspension | None = None
        """Where the gangs stop, once the function was written."""
        self._graph = function
        self._item = item
        self._symbols = symbols
        self._size_of = size_of
        self._variants = Variants(item, symbols, size_of)
        self.width = width
        self._demotable = demotable
        self._lockstep = lockstep
        self._exits_on_data = exits_on_data
        result = I32 if follows_rows else VOID
        self._kind = ir.FunctionType(result, [*kinds, I32, *([PTR, I1, I1] if may_suspend else [])])
        self._name = name
        self._split: RowSplit | None = None
        self._half: GangFunction | None = None
        self.privates = PrivateMemory(function, size_of, width, name)
        self.shapes, self.early_exits = self._analyse()
        """The shapes in gangs of which no lane takes an early exit, and the early exits."""

    def prefers_double_width(self) -> bool:
        """Whether the block has gangs of twice the width, and these are better."""
        threads = self._item.order.extents[0]
        if 2 * self.width > min(MAX_LANES, threads):
            return False
        fills_gangs = threads % (2 * self.width) == 0 and not self._may_split
        rows = count_rows(self.shapes, self.early_exits, self._item, 2 * self.width)
        return self.privates.fits_registers(2 * self.width) and gains_by_double_width(
            self.shapes, self._size_of, self.width, rows, fills_gangs
        )

    def width_for_rows(self, least: int) -> int | None:
        """The most lanes, fewer than now but at least so many, that are in one row of an array mostly, where lanes are
        apart else; ``None`` if there is no such width, or only the launch tells how long rows are."""
        return find_coherent_width(self.shapes, self.width, least)

    def prefers_half_width(self) -> bool:
        """Whether gangs of half the width are better."""
        return fills_registers_in_loops(self.shapes, self._size_of, self.width)

    def follow_rows(self, widens: bool) -> GangFunction | None:
        """The same function for gangs that begin where rows do, of twice the width if it *widens* and that is better;
        ``None`` if they cannot, or gain nothing."""
        if not self._may_split or count_rows(self.shapes, self.early_exits, self._item, self.width) > 1:
            return None
        has_room = find_coherent_width(self.shapes, 2 * self.width, self.width) is None
        gains = widens and has_room and gains_by_width(self.shapes, self._item, self._size_of, self.width)
        width = 2 * self.width if gains else self.width
        trial = self._copy(width, "trial", follows_rows=True)
        trial.version_coherent()
        if trial._split is None or trial._find_suspension() is not None:
            return None
        made = self._copy(width, "", follows_rows=True)
        if width > self.width:
            made._half = self._copy(self.width, "half", follows_rows=True)
        return made

    def check_profitable(self) -> None:
        """Raise `UnprofitableError` if these gangs are slower than one thread after another."""
        reason = self.explain_unprofitable()
        if reason:
            raise UnprofitableError(reason)

    def explain_unprofitable(self) -> str:
        """Why these gangs are slower than one thread after another; empty if they are not."""
        reason = explain_unprofitable(self.likely_shapes, self._size_of, self.width)
        if reason and not self.privates.has_arrays:  # whose layout can be changed only once
            trial = self._copy(self.width, "trial", follows_rows=self.follows_rows)
            rare = trial.version_coherent()
            if rare:
                reason = explain_unprofitable(self.shapes, self._size_of, self.width, (trial.shapes, rare))
        return reason

    def _copy(self, width: int, name: str, is_alone: bool = False, follows_rows: bool = False) -> GangFunction:
        """A function of gangs of *width* that has a graph of its own, as writing one changes that."""
        copies = copy_blocks(self._graph.blocks)
        graph = replace(self._graph, blocks=list(copies.blocks.values()))
        demotable = frozenset(copies.values[value] for value in self._demotable if value in copies.values)
        parameters = self._kind.args[: len(graph.arguments)]
        return GangFunction(
            graph, self._item, parameters, self._symbols, self._size_of, width, demotable,
            f"{self._name}.{name}" if name else self._name, self._lockstep, self._exits_on_data, self._may_suspend,
            self._kernel_arguments, follows_rows, is_alone, self._ends_anywhere,
        )  # fmt: skip

    @property
    def has_partial_gangs(self) -> bool:
        """Whether a row may end with a gang that is not full. Where lanes of a gang may return at once, which takes the
        same code, a length that is known at run time only may be any."""
        item = self._item
        if self.follows_rows or self._ends_anywhere or item.order.block[item.order.lane_axis] % self.width != 0:
            return True
        return item.order.lengths is not None and (bool(self.early_exits) or item.order.multiple == 1)

    def build(self, rows: int = 1, masked_only: bool = False) -> ir.Function:
        """Write the function, for as many *rows* at once as `count_rows` allows. *masked_only* leaves out the version
        for full gangs if there is a masked one."""
        remarks.begin(self._name, self.width, rows)
        function = ir.Function(self._item.module, self._kind, self._name)
        for attribute in ("alwaysinline", "nounwind"):
            function.attributes.add(attribute)
        self._entry = ir.IRBuilder(function.append_basic_block("entry"))
        self._builder = builder = ir.IRBuilder(function.append_basic_block("gang"))
        if self._item.has_lines:
            keep_lines(builder)
        self._lanes = VectorBuilder(builder, self.width, self._entry)
        first, done = builder.block, builder.append_basic_block("done")
        count = function.args[len(self._graph.arguments)]
        arguments = list(function.args[: len(self._graph.arguments)])
        not_full, under_mask = map(builder.append_basic_block, ("not.full", "under.mask"))
        mask_place = allocate(self._entry, self._lanes.no_lanes().type, "gang.mask")
        has_partial_gang = self.has_partial_gangs
        has_full_gangs = self._item.order.extents[0] >= self.width and not (
            masked_only and (self.early_exits or has_partial_gang)
        )
        privates = self.privates.place(self._entry)
        builder.position_at_end(under_mask)
        if self.follows_rows:
            self._taken = allocate(self._entry, I32, "taken.lanes")
            self._entry.store(I32(self.width), self._taken)
        if self._half is not None:
            builder.store(builder.call(self._half.build(), function.args), self._taken)
            builder.branch(done)
        elif self.early_exits or has_partial_gang or not has_full_gangs:
            if self.follows_rows:
                builder.store(self._lanes.at_most(count), self._taken)
            mask = builder.load(mask_place, typ=self._lanes.no_lanes().type)
            self._write_masked(arguments, privates, mask, rows)
            builder.branch(done)
        else:
            builder.unreachable()
        builder.position_at_end(first)
        builder.store(self._lanes.first_lanes(count), mask_place)
        if has_full_gangs:
            full = builder.append_basic_block("full")
            enough = builder.icmp_unsigned(">=", count, I32(self.width))
            if self._may_suspend:  # then it was
                enough = builder.or_(enough, function.args[-2])
            builder.cbranch(enough, full, not_full) if has_partial_gang else builder.branch(full)
            builder.position_at_end(full)
            self._write_full(arguments, self.privates.place_again(self._entry, privates), rows, done, not_full)
        else:
            builder.branch(not_full)
        builder.position_at_end(not_full)
        if self.suspension is not None and self.suspension.behind_loop is not None:
            goes_on = builder.append_basic_block("goes.on")
            builder.cbranch(self.suspension.pauses, done, goes_on)
            builder.position_at_end(goes_on)
        if self._split is None or self._half is not None:
            builder.branch(under_mask)
        else:
            self._write_parts(self._split, [*arguments, count], mask_place, done, under_mask)
        if self.suspension is not None:
            self._entry.store(I8(0), self.suspension.record)
        self._entry.branch(first)
        builder.position_at_end(done)
        if self.follows_rows:
            builder.ret(builder.load(self._taken, typ=I32))
        else:
            builder.ret_void()
        return function

    def _write_full(
        self, arguments: list[ir.Value], privates: dict[Instruction, ir.Value], rows: int, done: ir.Block,
        otherwise: ir.Block,
    ) -> None:  # fmt: skip
        """Write the version for full gangs, all rows at once. It changes the graph, so it has to be written last."""
        if rows == 1:
            lane = self._make_lane()
            self.version_coherent()
            self._suspend()
            self._read_rows()
            few = None if lane is None else self._find_few()
            is_wave = self.width == self._item.wave_size and has_shuffles(self._graph)
            kind = FirstLanesWidener if is_wave else Widener
            widener = self._make_widener(self.shapes, arguments, privates, self.suspension, kind)
            late = self._find_left_late()
            function = PredicatedFunction(widener, None, done, self.early_exits, otherwise, few, late)
            function.write()
            self._write_remaining(function)
            if few is not None and lane is not None:
                self._write_few(few, lane, arguments, done)
            return
        self._read_rows()
        wideners = [self._make_widener(self.shapes, arguments, privates)]
        for row in range(1, rows):
            item = place_in_row(self._builder, self._entry, self._item, arguments[0], row)
            wideners.append(self._make_widener(self.shapes, [item, *arguments[1:]]))
        CoarsenedFunction(wideners, done, self.early_exits, otherwise).write()

    def _make_lane(self) -> GangFunction | None:
        """The function for a single thread that passes a check of data, if there is one that few may pass. It makes the
        check again, with what it loads then: other threads may have written that since."""
        if self._lockstep or isinstance(self._item, NumberedWorkItem):
            return None
        check = find_data_check(self.shapes, self.early_exits, self.width)
        return None if check is None else self._copy(1, "lane", is_alone=True)

    def _find_few(self) -> FewLanes | None:
        check = find_data_check(self.shapes, self.early_exits, self.width)
        if check is None or self.suspension is not None:
            return None
        start = self._builder.append_basic_block("few.lanes")
        return FewLanes(check, start, allocate(self._entry, ir.IntType(self.width), "few.bits"))

    def _find_left_late(self) -> dict[Block, int]:
        """The headers of loops in which few lanes may remain, with how many these are."""
        if self._lockstep or self._cells is not None or self.width == 1 or isinstance(self._item, NumberedWorkItem):
            return {}
        return find_loops_left_late(self.shapes, self._size_of, self.width)

    def _write_remaining(self, function: PredicatedFunction) -> None:
        """Write what runs the lanes that remain in the loops of *function*."""

        def make_widener(loop: Function, arguments: list[ir.Value], lane: VectorBuilder) -> Widener:
            shapes = LaneShapes(loop, {}, self._size_of, self.privates.stride, lanes_consecutive=False)
            return Widener(lane, shapes, self._item, self._symbols, self._entry, arguments, {}, self._variants)

        with remarks.muted():
            for few in function.few_remain:
                write_remaining(function, few, self._graph, make_widener)

    def _write_few(self, few: FewLanes, lane: GangFunction, arguments: list[ir.Value], done: ir.Block) -> None:
        builder = self._builder
        with remarks.muted():
            function = lane.build()
        builder.position_at_end(few.start)
        bits = builder.load(few.bits, typ=ir.IntType(self.width))
        with each_lane(self._lanes, self._item, arguments[0], bits, done):
            builder.call(function, [*arguments, I32(1), *self._entry.function.args[len(arguments) + 1 :]])

    def _read_rows(self) -> None:
        """Load several elements at once where lanes read rows of their own."""
        is_settled = self._lockstep or self.suspension is not None or self._split is not None
        if not is_settled and read_rows(self._graph, self.shapes, self._size_of, self.width, self.early_exits):
            self.shapes = self._shapes(self.early_exits)
            self._record("read_rows")

    def _suspend(self) -> None:
        """Suspend full gangs where that is better."""
        found = self._find_suspension()
        if found is not None:
            found.record, found.resumes, found.pauses = self._entry.function.args[-3:]
            self.suspension = found

    def _find_suspension(self) -> Suspension | None:
        if not self._may_suspend or self._item.order.tile > 1:
            return None
        return find_suspension(self.shapes, self._size_of, self.width, self._kernel_arguments)

    @property
    def _may_split(self) -> bool:
        """Whether gangs that reach over the end of a row may be split, see `row_split`."""
        if isinstance(self._item, NumberedWorkItem) or self._lockstep:
            return False
        aligned = align_lanes(self._item, self.width, self._lanes_are_neighbours)
        values = list(self._graph.instructions())
        return any(value.opcode in DIVISIONS for value in values) and not any(
            splits_gangs(value, aligned) for value in values
        )

    def version_coherent(self) -> Collection[Block]:
        """Version what follows coherent divisions and branches; the blocks of gangs whose lanes part."""
        self._record("vector_shapes")
        if bring_conditions(self.shapes):
            self.shapes = self._shapes(self.early_exits)
            self._record("bring_conditions")
        values = CoherentValues(self._graph, self.early_exits, self.width)
        branches = CoherentBranches(self._graph, self.early_exits)
        # divisions once more: branches leave loops that all lanes are in
        order: Sequence[CoherentValues | CoherentBranches] = (values, branches, values)
        for number, coherent in enumerate(order):
            while coherent.version_next(self.shapes):
                self.shapes = self._shapes(self.early_exits)
                self._record("coherent")
            self._copy_demotable(coherent.copied)
            if number == 0 and values.guards and self.follows_rows:
                self._split = split_rows(
                    self._graph, values.guards, self.width, self.early_exits, partial(self._shapes, {}),
                    exits=self._half is not None,
                )  # fmt: skip
                self._copy_demotable({} if self._split is None else self._split.copied)
                self.shapes = self._shapes(self.early_exits)
                self._record("split_rows")
        if sink_conditions(self._graph, self.shapes):
            self.shapes = self._shapes(self.early_exits)
            self._record("sink_conditions")
        return values.apart | branches.apart

    def _copy_demotable(self, copied: Mapping[Instruction, Instruction]) -> None:
        """Demote the copies of instructions that are demoted."""
        made = {copy for copy, original in copied.items() if original in self._demotable}
        self._demotable = self._demotable | made

    def _write_parts(
        self, split: RowSplit, arguments: Sequence[ir.Value], mask_place: ir.Value, done: ir.Block, otherwise: ir.Block
    ) -> None:  # fmt: skip
        def make_widener(function: Function, passed: list[ir.Value]) -> Widener:
            widener = self._make_widener(self._shapes({}, function), passed, {})
            widener.is_partial = True
            return widener

        write_parts(
            split, self._lanes, self._item, self._entry, arguments, make_widener, mask_place, self._taken, done,
            otherwise,
        )  # fmt: skip

    def _record(self, stage: str) -> None:
        record(f"{stage} {self._name}", self._graph, self._describe)

    def _describe(self, value: Instruction) -> str:
        """The shape of *value*, for dumps."""
        home = self.shapes.homes.get(value)
        exits = home in self.early_exits and value.is_terminator
        return "early exit" if exits else self.shapes.describe(value)

    def _write_masked(
        self, arguments: list[ir.Value], privates: dict[Instruction, ir.Value], mask: ir.Value, rows: int
    ) -> None:  # fmt: skip
        """Write the version for the lanes of *mask*, one row after another."""
        builder, layout = self._builder, self._item.layout
        after = builder.append_basic_block("masked.done")
        widener = self._make_widener(self._shapes({}), arguments, privates)
        widener.is_partial = True
        if rows == 1:
            PredicatedFunction(widener, mask, after, {}, None).write()
            builder.position_at_end(after)
            return
        axis = self._item.order.axes[1]
        first = layout.load(builder, arguments[0], "thread", axis)
        with counted(builder, "row", I32(0), I32(rows), [rolled(builder.module)]) as row:
            layout.store(builder, builder.add(first, row), arguments[0], "thread", axis)
            PredicatedFunction(widener, mask, after, {}, None).write()
            builder.position_at_end(after)

    def _make_widener(
        self, shapes: VectorShapes, arguments: list[ir.Value], privates: dict[Instruction, ir.Value] | None = None,
        suspension: Suspension | None = None, kind: type[Widener] = Widener,
    ) -> Widener:  # fmt: skip
        privates = self.privates.place(self._entry) if privates is None else privates
        kind = CellWidener if self._cells is not None else kind
        widener = kind(
            self._lanes, shapes, self._item, self._symbols, self._entry, arguments, privates, self._variants,
            self._demotable, self._lockstep, suspension,
        )  # fmt: skip
        if isinstance(widener, CellWidener) and self._cells is not None:
            widener.gangs = self._cells
        return widener

    @property
    def likely_shapes(self) -> VectorShapes:
        """The shapes in most gangs, in which no index is clamped."""
        return self._shapes(self.early_exits, kind=InsideShapes) if has_clamps(self._graph) else self.shapes

    def _shapes(
        self, early_exits: dict[Block, Block], function: Function | None = None, kind: type[VectorShapes] = VectorShapes
    ) -> VectorShapes:
        """The shapes in *function*, or in the whole graph."""
        graph = self._graph if function is None else function
        kind = LaneShapes if self._is_alone else kind
        neighbours = self._lanes_are_neighbours
        aligned = Alignments(self.width, {}) if self.follows_rows else align_lanes(self._item, self.width, neighbours)
        along = self._item.order.along
        return kind(graph, early_exits, self._size_of, self.privates.stride, neighbours, along, aligned)

    @property
    def _lanes_are_neighbours(self) -> bool:
        """Whether the lanes of a gang are neighbours in their wave."""
        return not self.follows_rows and fit_waves(self._item, self.width)

    def _analyse(self) -> tuple[VectorShapes, dict[Block, Block]]:
        """The shapes if no lane takes an early exit, and the early exits, with the target that lanes continue at."""
        if has_small_ifs(self._graph) and convert_ifs(self._graph, self._shapes({}).divergent):
            record(f"convert_ifs {self._name}", self._graph)
        return assume_early_exits(self._shapes, self._exits_on_data)
