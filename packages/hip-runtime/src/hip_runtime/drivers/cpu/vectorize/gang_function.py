"""Functions that run neighbouring threads of a block as lanes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import NumberedWorkItem, WorkItem
from hip_runtime.drivers.cpu.abi.worker import counted
from hip_runtime.drivers.cpu.analyses.coherent_divisions import find_coherent_width
from hip_runtime.drivers.cpu.analyses.cost_model import UnprofitableError, explain_unprofitable
from hip_runtime.drivers.cpu.analyses.loops_left_late import find_loops_left_late
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.vector_shapes import LaneShapes, VectorShapes
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.drivers.cpu.ir.clone import copy_blocks
from hip_runtime.drivers.cpu.ir.debug_locations import keep_lines
from hip_runtime.drivers.cpu.ir.loop_metadata import rolled
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction
from hip_runtime.drivers.cpu.ir.symbol_declarations import SymbolDeclarations
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, PTR, VOID, allocate
from hip_runtime.drivers.cpu.vectorize.brought_conditions import bring_conditions
from hip_runtime.drivers.cpu.vectorize.coarsen import CoarsenedFunction, count_rows
from hip_runtime.drivers.cpu.vectorize.coherent import CoherentBranches, sink_conditions
from hip_runtime.drivers.cpu.vectorize.coherent_values import CoherentValues
from hip_runtime.drivers.cpu.vectorize.few_lanes import FewLanes, each_lane, find_data_check
from hip_runtime.drivers.cpu.vectorize.first_lanes import FirstLanesWidener, has_shuffles
from hip_runtime.drivers.cpu.vectorize.gang_lanes import place_in_row
from hip_runtime.drivers.cpu.vectorize.gang_options import GangOptions
from hip_runtime.drivers.cpu.vectorize.gang_shapes import GangShapes
from hip_runtime.drivers.cpu.vectorize.predicated_function import PredicatedFunction
from hip_runtime.drivers.cpu.vectorize.remaining_lanes import write_remaining
from hip_runtime.drivers.cpu.vectorize.row_loops import read_rows
from hip_runtime.drivers.cpu.vectorize.row_parts import gains_by_width, write_parts
from hip_runtime.drivers.cpu.vectorize.row_split import RowSplit, split_rows
from hip_runtime.drivers.cpu.vectorize.shared_cells import CellWidener
from hip_runtime.drivers.cpu.vectorize.suspension import Suspension, find_suspension
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder
from hip_runtime.drivers.cpu.vectorize.vector_variants import Variants
from hip_runtime.drivers.cpu.vectorize.widen import Widener


@dataclass(frozen=True)
class _Frame:
    """What the versions of a function have in common: its arguments, the work item first; the *count* of threads to the
    end of the row; memory for the *mask* of these, and for private arrays. The blocks between the versions: where a
    gang is *done*, where it goes if it is *not_full*, and where it runs *under_mask*."""

    arguments: list[ir.Value]
    count: ir.Value
    mask: ir.Value
    privates: dict[Instruction, ir.Value]
    done: ir.Block
    not_full: ir.Block
    under_mask: ir.Block


class GangFunction(GangShapes):
    """A function that runs the gang whose first thread the work item holds. Its last argument, but for those that
    *options* tell of, is the number of threads from there to the end of the row; the others have the types *kinds*, the
    work item first.
    """

    def __init__(
        self, function: Function, item: WorkItem, kinds: Sequence[ir.Type], symbols: SymbolDeclarations,
        size_of: SizeOf, width: int, options: GangOptions,
    ) -> None:  # fmt: skip
        super().__init__(function, item, size_of, width, options)
        self.suspension: Suspension | None = None
        """Where the gangs stop, once the function was written."""
        self._symbols = symbols
        self._variants = Variants(item, symbols, size_of)
        self._demotable = options.demotable
        result = I32 if options.follows_rows else VOID
        self._kind = ir.FunctionType(result, [*kinds, I32, *([PTR, I1, I1] if options.may_suspend else [])])
        self._split: RowSplit | None = None
        self._half: GangFunction | None = None

    def follow_rows(self, widens: bool) -> GangFunction | None:
        """The same function for gangs that begin where rows do, of twice the width if it *widens* and that is better;
        ``None`` if they cannot, or gain nothing."""
        if not self.may_split or count_rows(self.shapes, self.early_exits, self.item, self.width) > 1:
            return None
        has_room = find_coherent_width(self.shapes, 2 * self.width, self.width) is None
        gains = widens and has_room and gains_by_width(self.shapes, self.item, self._size_of, self.width)
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
        options = replace(
            self._options, name=f"{self._options.name}.{name}" if name else self._options.name, demotable=demotable,
            is_alone=is_alone, follows_rows=follows_rows, cells=None,  # which are of gangs at multiples of this width
        )  # fmt: skip
        parameters = self._kind.args[: len(graph.arguments)]
        return GangFunction(graph, self.item, parameters, self._symbols, self._size_of, width, options)

    def _has_full_gangs(self, masked_only: bool) -> bool:
        """Whether there is a version for full gangs; with *masked_only*, not where there is a masked one."""
        has_masked = bool(self.early_exits) or self.has_partial_gangs
        return self.item.order.extents[0] >= self.width and not (masked_only and has_masked)

    def build(self, rows: int = 1, masked_only: bool = False) -> ir.Function:
        """Write the function, for as many *rows* at once as `count_rows` allows. *masked_only* leaves out the version
        for full gangs if there is a masked one."""
        remarks.begin(self._options.name, self.width, rows)
        function = self._declare()
        builder = self._builder
        first = builder.block
        frame = self._begin(function)
        has_full_gangs = self._has_full_gangs(masked_only)
        self._write_under_mask(frame, rows, has_full_gangs)
        builder.position_at_end(first)
        builder.store(self._lanes.first_lanes(frame.count), frame.mask)
        if has_full_gangs:
            self._write_if_full(frame, rows)
        else:
            builder.branch(frame.not_full)
        self._write_not_full(frame)
        if self.suspension is not None:
            self._entry.store(I8(0), self.suspension.record)
        self._entry.branch(first)
        builder.position_at_end(frame.done)
        if self.follows_rows:
            builder.ret(builder.load(self._taken, typ=I32))
        else:
            builder.ret_void()
        return function

    def _declare(self) -> ir.Function:
        """The function, with two blocks: one for what is allocated, and one to begin in."""
        function = ir.Function(self.item.module, self._kind, self._options.name)
        for attribute in ("alwaysinline", "nounwind"):
            function.attributes.add(attribute)
        self._entry = ir.IRBuilder(function.append_basic_block("entry"))
        self._builder = ir.IRBuilder(function.append_basic_block("gang"))
        if self.item.has_lines:
            keep_lines(self._builder)
        self._lanes = VectorBuilder(self._builder, self.width, self._entry)
        return function

    def _begin(self, function: ir.Function) -> _Frame:
        done, not_full, under_mask = map(self._builder.append_basic_block, ("done", "not.full", "under.mask"))
        count = len(self._graph.arguments)
        mask = allocate(self._entry, self._lanes.no_lanes().type, "gang.mask")
        privates = self.privates.place(self._entry)
        if self.follows_rows:
            self._taken = allocate(self._entry, I32, "taken.lanes")
            self._entry.store(I32(self.width), self._taken)
        return _Frame(list(function.args[:count]), function.args[count], mask, privates, done, not_full, under_mask)

    def _write_under_mask(self, frame: _Frame, rows: int, has_full_gangs: bool) -> None:
        """Write what runs the lanes of a mask: this function under it, or that for gangs of half the width."""
        builder = self._builder
        builder.position_at_end(frame.under_mask)
        if self._half is not None:
            builder.store(builder.call(self._half.build(), builder.function.args), self._taken)
            builder.branch(frame.done)
        elif self.early_exits or self.has_partial_gangs or not has_full_gangs:
            if self.follows_rows:
                builder.store(self._lanes.at_most(frame.count), self._taken)
            self._write_masked(frame, builder.load(frame.mask, typ=self._lanes.no_lanes().type), rows)
            builder.branch(frame.done)
        else:
            builder.unreachable()

    def _write_if_full(self, frame: _Frame, rows: int) -> None:
        """Write the question whether a gang is full, and what runs it if it is."""
        builder = self._builder
        full = builder.append_basic_block("full")
        enough = builder.icmp_unsigned(">=", frame.count, I32(self.width))
        if self._options.may_suspend:  # then it was
            enough = builder.or_(enough, builder.function.args[-2])
        if self.has_partial_gangs:
            builder.cbranch(enough, full, frame.not_full)
        else:
            builder.branch(full)
        builder.position_at_end(full)
        privates = self.privates.place_again(self._entry, frame.privates)
        if rows == 1:
            self._write_full(frame, privates)
        else:
            self._write_full_rows(frame, privates, rows)

    def _write_not_full(self, frame: _Frame) -> None:
        """Write what a gang does that is not full, or of which a lane took an early exit."""
        builder = self._builder
        builder.position_at_end(frame.not_full)
        if self.suspension is not None and self.suspension.behind_loop is not None:
            goes_on = builder.append_basic_block("goes.on")
            builder.cbranch(self.suspension.pauses, frame.done, goes_on)
            builder.position_at_end(goes_on)
        if self._split is None or self._half is not None:
            builder.branch(frame.under_mask)
        else:
            self._write_parts(self._split, frame)

    # The versions for full gangs change the graph, so they are written last.

    def _write_full(self, frame: _Frame, privates: dict[Instruction, ir.Value]) -> None:
        """Write the version for full gangs of one row."""
        lane = self._make_lane()
        self.version_coherent()
        self._suspend()
        self._read_rows()
        few = None if lane is None else self._find_few()
        is_wave = self.width == self.item.wave_size and has_shuffles(self._graph)
        kind = FirstLanesWidener if is_wave else Widener
        widener = self._make_widener(self.shapes, frame.arguments, privates, self.suspension, kind)
        late = self._find_left_late()
        function = PredicatedFunction(widener, None, frame.done, self.early_exits, frame.not_full, few, late)
        function.write()
        self._write_remaining(function)
        if few is not None and lane is not None:
            self._write_few(few, lane, frame)

    def _write_full_rows(self, frame: _Frame, privates: dict[Instruction, ir.Value], rows: int) -> None:
        """Write the version for full gangs of several *rows*, all at once."""
        self._read_rows()
        wideners = [self._make_widener(self.shapes, frame.arguments, privates)]
        for row in range(1, rows):
            item = place_in_row(self._builder, self._entry, self.item, frame.arguments[0], row)
            wideners.append(self._make_widener(self.shapes, [item, *frame.arguments[1:]]))
        CoarsenedFunction(wideners, frame.done, self.early_exits, frame.not_full).write()

    def _make_lane(self) -> GangFunction | None:
        """The function for a single thread that passes a check of data, if there is one that few may pass. It makes the
        check again, with what it loads then: other threads may have written that since."""
        if self._options.lockstep or isinstance(self.item, NumberedWorkItem):
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
        if (
            self._options.lockstep
            or self._options.cells is not None
            or self.width == 1
            or isinstance(self.item, NumberedWorkItem)
        ):
            return {}
        return find_loops_left_late(self.shapes, self._size_of, self.width)

    def _write_remaining(self, function: PredicatedFunction) -> None:
        """Write what runs the lanes that remain in the loops of *function*."""

        def make_widener(loop: Function, arguments: list[ir.Value], lane: VectorBuilder) -> Widener:
            shapes = LaneShapes(loop, {}, self._size_of, self.privates.stride, lanes_consecutive=False)
            return Widener(lane, shapes, self.item, self._symbols, self._entry, arguments, {}, self._variants)

        with remarks.muted():
            for few in function.loops.few_remain:
                write_remaining(function, few, self._graph, make_widener)

    def _write_few(self, few: FewLanes, lane: GangFunction, frame: _Frame) -> None:
        builder, arguments = self._builder, frame.arguments
        with remarks.muted():
            function = lane.build()
        builder.position_at_end(few.start)
        bits = builder.load(few.bits, typ=ir.IntType(self.width))
        with each_lane(self._lanes, self.item, arguments[0], bits, frame.done):
            builder.call(function, [*arguments, I32(1), *self._entry.function.args[len(arguments) + 1 :]])

    def _read_rows(self) -> None:
        """Load several elements at once where lanes read rows of their own."""
        is_settled = self._options.lockstep or self.suspension is not None or self._split is not None
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
        if not self._options.may_suspend or self.item.order.tile > 1:
            return None
        return find_suspension(self.shapes, self._size_of, self.width, self._options.kernel_arguments)

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

    def _write_parts(self, split: RowSplit, frame: _Frame) -> None:
        def make_widener(function: Function, passed: list[ir.Value]) -> Widener:
            widener = self._make_widener(self._shapes({}, function), passed, {})
            widener.is_partial = True
            return widener

        write_parts(
            split, self._lanes, self.item, self._entry, [*frame.arguments, frame.count], make_widener, frame.mask,
            self._taken, frame.done, frame.under_mask,
        )  # fmt: skip

    def _write_masked(self, frame: _Frame, mask: ir.Value, rows: int) -> None:
        """Write the version for the lanes of *mask*, one row after another."""
        builder, layout = self._builder, self.item.layout
        after = builder.append_basic_block("masked.done")
        widener = self._make_widener(self._shapes({}), frame.arguments, frame.privates)
        widener.is_partial = True
        if rows == 1:
            PredicatedFunction(widener, mask, after, {}, None).write()
            builder.position_at_end(after)
            return
        axis = self.item.order.axes[1]
        first = layout.load(builder, frame.arguments[0], "thread", axis)
        with counted(builder, "row", I32(0), I32(rows), [rolled(builder.module)]) as row:
            layout.store(builder, builder.add(first, row), frame.arguments[0], "thread", axis)
            PredicatedFunction(widener, mask, after, {}, None).write()
            builder.position_at_end(after)

    def _make_widener(
        self, shapes: VectorShapes, arguments: list[ir.Value], privates: dict[Instruction, ir.Value] | None = None,
        suspension: Suspension | None = None, kind: type[Widener] = Widener,
    ) -> Widener:  # fmt: skip
        privates = self.privates.place(self._entry) if privates is None else privates
        kind = CellWidener if self._options.cells is not None else kind
        widener = kind(
            self._lanes, shapes, self.item, self._symbols, self._entry, arguments, privates, self._variants,
            self._demotable, self._options.lockstep, suspension,
        )  # fmt: skip
        if isinstance(widener, CellWidener) and self._options.cells is not None:
            widener.gangs = self._options.cells
        return widener
