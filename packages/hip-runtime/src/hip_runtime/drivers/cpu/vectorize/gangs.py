"""The threads of a block in groups of lanes along x."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.abi.worker import counted
from hip_runtime.drivers.cpu.analyses.cost_model import check_profitable
from hip_runtime.drivers.cpu.analyses.grid_stride_loops import MOST_LANES, has_grid_stride_loop
from hip_runtime.drivers.cpu.analyses.stack_usage import private_type
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf, measure_types
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.debug_locations import keep_lines
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Function, Instruction
from hip_runtime.drivers.cpu.ir.symbols import Symbols
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.llvmir import I32, PTR, VOID, allocate
from hip_runtime.drivers.cpu.vectorize.coarsen import CoarsenedFunction, count_rows
from hip_runtime.drivers.cpu.vectorize.coherent import CoherentBranches
from hip_runtime.drivers.cpu.vectorize.early_exit import find_early_exit
from hip_runtime.drivers.cpu.vectorize.predicated_function import PredicatedFunction
from hip_runtime.drivers.cpu.vectorize.variants import Variants
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder
from hip_runtime.drivers.cpu.vectorize.widen import Widener
from hip_runtime.errors import UnsupportedError

GANG_FUNCTION = "spmd.group"


_MANY_DOUBLES = 120
"""Instructions on numbers of 64 bits from which on half as many lanes are taken: LLVM's time for registers that are not
enough grows faster than what more lanes gain."""

_MANY = 400
"""Instructions of a kernel without a loop from which on it is written once, under a mask. That costs less than a tenth
of its time then, and saves a third of the compiler's."""


class GangBody:
    """A body of a worker that runs *width* threads along x at a time, or half or twice as many where these are not
    *exact*.

    Raises, when it is called, `UnsupportedError` where that cannot be done, or, with *judge*, should not: see
    `cost_model`."""

    def __init__(
        self, function: Function, item: WorkItem, kind: ir.FunctionType, source: Any, layout: Any, width: int,
        judge: bool = False, exact: bool = True,
    ) -> None:  # fmt: skip
        self._function = function
        self._item = item
        self._kind = kind
        self._source = source
        self._size_of = measure_types(layout, item.module.context)
        doubles = sum(isinstance(value.type, ir.DoubleType) for value in _all_instructions(function))
        self._width = width if exact or doubles < _MANY_DOUBLES else max(width // 2, 1)
        self._widens = not exact
        self._judge = judge
        self._rows = 1

    def __call__(self, builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value]) -> None:
        item = self._item
        symbols = Symbols(item.module, self._source)
        make = partial(GangFunction, self._function, item, self._kind.args, symbols, self._size_of)
        made = make_gang(make, self._width, self._widens)
        width = self._width = made.width
        if self._judge:
            check_profitable(made.shapes, self._size_of, width)
        self._rows = count_rows(made.shapes, made.early_exits, item, width)
        values = sum(1 for _ in self._function.instructions())
        has_loop = any(made.shapes.order.loops.values())
        group = made.build(self._rows, once=values > _MANY and not has_loop)
        with each_gang(builder, item, place, width, self._rows) as count:
            builder.call(group, [place, *arguments, count])

    def describe(self) -> str:
        """What was done, as a part of the reason for a kernel's form."""
        where = f", in {self._rows} rows" if self._rows > 1 else ""
        return f"{self._width * self._rows} threads at a time{where}"


def _all_instructions(function: Function) -> Iterator[Instruction]:
    """Those of *function*, and of the elementwise functions that it calls, each once."""
    yield from function.instructions()
    for callee in {value.elementwise for value in function.instructions()}:
        if callee is not None:
            yield from callee.instructions()


@contextmanager
def each_gang(builder: ir.IRBuilder, item: WorkItem, place: ir.Value, width: int, rows: int = 1) -> Iterator[ir.Value]:
    """A loop over the groups of a block, of *rows* rows each. Inside, the work item *place* holds the first thread of
    the group; gives how many threads its row has from there on.

    LLVM may write out the loop over rows: what several of them load, as in a stencil, it loads once then.
    """
    extent = item.block[0]
    with (
        counted(builder, "thread.z", I32(0), I32(item.block[2])) as z,
        counted(builder, "thread.y", I32(0), I32(item.block[1] // rows)) as row,
        counted(builder, "group", I32(0), I32(-(-extent // width)), rolled=True) as number,
    ):
        first = builder.mul(number, I32(width), flags=("nuw", "nsw"))
        y = builder.mul(row, I32(rows), flags=("nuw", "nsw"))
        for axis, index in enumerate((first, y, z)):
            item.layout.store(builder, index, place, "thread", axis)
        yield builder.sub(I32(extent), first, flags=("nuw", "nsw"))


def make_gang(make: Callable[[int], GangFunction], width: int, widens: bool) -> GangFunction:
    """What *make* makes for *width* lanes, or for twice as many where it *widens* and these are better."""
    made = make(width)
    return make(2 * width) if widens and made.is_better_wide() else made


class GangFunction:
    """A function that runs the group whose first thread the work item holds; its last argument is how many threads
    there are from there on, those in front of it are of the types *kinds*, the work item first.

    *demotable* are atomic operations of *function* on memory of the block alone. *lockstep* lets all lanes do each
    access to memory together.
    """

    def __init__(
        self, function: Function, item: WorkItem, kinds: Sequence[ir.Type], symbols: Symbols, size_of: SizeOf,
        width: int, demotable: frozenset[Instruction] = frozenset(), name: str = GANG_FUNCTION,
        lockstep: bool = False,
    ) -> None:  # fmt: skip
        self._graph = function
        self._item = item
        self._symbols = symbols
        self._size_of = size_of
        self._variants = Variants(item, symbols, size_of)
        self.width = width
        self._demotable = demotable
        self._in_step = lockstep
        self._kind = ir.FunctionType(VOID, [*kinds, I32])
        self._name = name
        self.shapes, self.early_exits = self._analyse()
        """How values differ in groups of which all lanes go on, and the branches that say so."""

    def is_better_wide(self) -> bool:
        """Whether there are twice as many threads to run at a time, and a reason to."""
        if 2 * self.width > min(MOST_LANES, self._item.block[0]):
            return False
        if any(value.opcode == "alloca" for value in self._graph.instructions()):
            return False
        return has_grid_stride_loop(self.shapes, self._size_of, self.width)

    def build(self, rows: int = 1, once: bool = False) -> ir.Function:
        """Write it, for *rows* rows at once: only where `count_rows` says that they can be. With *once* there is no
        code for groups of which all lanes exist, if there is one for others."""
        function = ir.Function(self._item.module, self._kind, self._name)
        for attribute in ("alwaysinline", "nounwind"):
            function.attributes.add(attribute)
        self._entry = ir.IRBuilder(function.append_basic_block("entry"))
        self._builder = builder = ir.IRBuilder(function.append_basic_block("group"))
        if self._item.has_lines:
            keep_lines(builder)
        self._lanes = VectorBuilder(builder, self.width)
        first, done = builder.block, builder.append_basic_block("done")
        *arguments, count = function.args
        under_mask = builder.append_basic_block("under.mask")
        mask_place = allocate(self._entry, self._lanes.no_lanes().type, "group.mask")
        partial = self._item.block[0] % self.width > 0
        whole = self._item.block[0] >= self.width and not (once and (self.early_exits or partial))
        privates = self._place_private()
        builder.position_at_end(under_mask)
        if self.early_exits or partial or not whole:
            mask = builder.load(mask_place, typ=self._lanes.no_lanes().type)
            self._write_masked(arguments, privates, mask, rows)
            builder.branch(done)
        else:
            builder.unreachable()
        builder.position_at_end(first)
        builder.store(self._lanes.first_lanes(count), mask_place)
        if whole:
            full = builder.append_basic_block("full")
            enough = builder.icmp_unsigned(">=", count, I32(self.width))
            builder.cbranch(enough, full, under_mask) if partial else builder.branch(full)
            builder.position_at_end(full)
            self._write_whole(arguments, privates, rows, done, under_mask)
        else:
            builder.branch(under_mask)
        self._entry.branch(first)
        builder.position_at_end(done)
        builder.ret_void()
        return function

    def _write_whole(
        self, arguments: list[ir.Value], privates: dict[Instruction, ir.Value], rows: int, done: ir.Block,
        otherwise: ir.Block,
    ) -> None:  # fmt: skip
        """All rows at once, for groups of which all lanes exist. Changes the graph: nothing is written from it behind
        this."""
        if rows == 1:
            self._version_coherent()
            PredicatedFunction(
                self._code(self.shapes, arguments, privates), None, done, self.early_exits, otherwise
            ).write()
            return
        codes = [self._code(self.shapes, arguments, privates)]
        codes += [self._code(self.shapes, self._for_row(arguments, row)) for row in range(1, rows)]
        CoarsenedFunction(codes, done, self.early_exits, otherwise).write()

    def _version_coherent(self) -> None:
        """Write ways that all lanes take together twice."""
        self._record("vector_shapes")
        together = CoherentBranches(self._graph, self.early_exits)
        while together.version_next(self.shapes):
            self.shapes = self._shapes(self.early_exits)
            self._record("coherent")
        demotable = set(self._demotable)
        demotable.update(copy for copy, original in together.copied.items() if original in demotable)
        self._demotable = frozenset(demotable)

    def _record(self, stage: str) -> None:
        record(f"{stage} {self._name}", self._graph, self._describe)

    def _describe(self, value: Instruction) -> str:
        """How *value* differs among lanes, for who looks on."""
        home = self.shapes.homes.get(value)
        exits = home in self.early_exits and value.is_terminator
        return "early exit" if exits else self.shapes.describe(value)

    def _write_masked(
        self, arguments: list[ir.Value], privates: dict[Instruction, ir.Value], mask: ir.Value, rows: int
    ) -> None:  # fmt: skip
        """One row after another, for the lanes of *mask*."""
        builder, layout = self._builder, self._item.layout
        after = builder.append_basic_block("masked.done")
        code = self._code(self._shapes({}), arguments, privates)
        if rows == 1:
            PredicatedFunction(code, mask, after, {}, None).write()
            builder.position_at_end(after)
            return
        first = layout.load(builder, arguments[0], "thread", 1)
        with counted(builder, "row", I32(0), I32(rows), rolled=True) as row:
            layout.store(builder, builder.add(first, row), arguments[0], "thread", 1)
            PredicatedFunction(code, mask, after, {}, None).write()
            builder.position_at_end(after)

    def _code(
        self, shapes: VectorShapes, arguments: list[ir.Value], privates: dict[Instruction, ir.Value] | None = None
    ) -> Widener:
        privates = self._place_private() if privates is None else privates
        return Widener(
            self._lanes, shapes, self._item, self._symbols, self._entry, arguments, privates, self._variants,
            self._demotable, self._in_step,
        )  # fmt: skip

    def _for_row(self, arguments: list[ir.Value], row: int) -> list[ir.Value]:
        """*arguments* with a work item for another row."""
        builder, layout = self._builder, self._item.layout
        item = allocate(self._entry, layout.type, "row.item")
        builder.store(builder.load(arguments[0], typ=layout.type), item)
        index = layout.load(builder, item, "thread", 1)
        layout.store(builder, builder.add(index, I32(row), flags=("nuw", "nsw")), item, "thread", 1)
        return [item, *arguments[1:]]

    def _shapes(self, early_exits: dict[Block, Block]) -> VectorShapes:
        item = self._item
        rows_fit = item.block[0] % self.width == 0 or item.block[1] * item.block[2] == 1
        follow = item.wave_size % self.width == 0 and rows_fit
        return VectorShapes(self._graph, early_exits, self._size_of, self._private_bytes, follow)

    def _analyse(self) -> tuple[VectorShapes, dict[Block, Block]]:
        """The shapes where all lanes take the guards that there are, and these."""
        early_exits: dict[Block, Block] = {}
        while True:
            shapes = self._shapes(early_exits)
            found = find_early_exit(shapes, early_exits)
            if found is None:
                return shapes, early_exits
            early_exits[found[0]] = found[1]

    def _private_bytes(self, alloca: Instruction) -> int:
        align = max(alloca.align, 1)
        return max(-(-self._size_of(private_type(alloca)) // align) * align, 1)

    def _place_private(self) -> dict[Instruction, ir.Value]:
        places = {}
        for alloca in (value for value in self._graph.instructions() if value.opcode == "alloca"):
            if not isinstance(alloca.operands[0], Constant) or alloca.type != PTR:
                raise UnsupportedError("private memory of a size that is known only at run time")
            nbytes = self._private_bytes(alloca) * self.width
            place = allocate(self._entry, ir.ArrayType(ir.IntType(8), nbytes), "private")
            place.align = max(alloca.align, 64)
            places[alloca] = place
        return places
