"""Bodies of workers that run gangs: neighbouring threads of a block as lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.abi.worker import Blocks, Body
from hip_runtime.drivers.cpu.analyses.cost_model import estimate_lane
from hip_runtime.drivers.cpu.analyses.divisions import Product
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.stride_arguments import assume_strides
from hip_runtime.drivers.cpu.analyses.type_sizes import measure_types
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.drivers.cpu.ir.model import Argument, Function, Instruction
from hip_runtime.drivers.cpu.ir.symbol_declarations import SymbolDeclarations
from hip_runtime.drivers.cpu.llvmir import I1, I64
from hip_runtime.drivers.cpu.passes.dense_indices import MOST_LENGTH, DenseVersion
from hip_runtime.drivers.cpu.passes.quotient_bounds import MOST_OFFSET
from hip_runtime.drivers.cpu.vectorize.coarsen import count_rows
from hip_runtime.drivers.cpu.vectorize.gang_function import GangFunction
from hip_runtime.drivers.cpu.vectorize.gang_loops import count_gangs, each_gang, most_gangs, run_gangs
from hip_runtime.drivers.cpu.vectorize.gang_options import GANG_FUNCTION, GangOptions
from hip_runtime.drivers.cpu.vectorize.gang_widths import make_gang
from hip_runtime.drivers.cpu.vectorize.suspension import NOT_SUSPENDED
from hip_runtime.drivers.cpu.vectorize.turns import Turns

_MANY_DOUBLES = 120
"""With this many instructions on 64-bit floats, gangs have half as many lanes: under register pressure, LLVM's compile
time grows faster than the gain from more lanes."""

_MANY_INSTRUCTIONS = 400
"""A kernel without a loop and with more instructions than this is only written under a mask. That costs less than a
tenth of its run time, and saves a third of its compile time."""

_MANY_IF_RARE = 80
"""The same for what runs where strides are not as guessed, loop or not: its loads and stores are gathers and scatters,
beside which a mask costs little."""

_WORTHWHILE = 0.5
"""Cycles per thread that guessed strides have to save: about half of an access that needs no gather."""

_MUCH_LESS = 0.9
"""What guessed strides leave of a kernel's cost, at most: it is compiled twice for them."""

_FEWER_DIVISIONS = 2
"""By what a version for dense arrays has to have fewer divisions if its gangs end with rows, or with planes of such."""

_MOST_VERSIONED = 1000
"""The most instructions of a kernel that is written a second time for guessed strides."""


class GangBody:
    """A worker's body that runs gangs of *width* threads along the axis of the lanes, or half or twice as many unless
    the width is *exact*; with a version for arguments that are what *strides* guesses, and for arrays whose rows are
    *dense*, if that accesses memory better.

    Where these are not as guessed, and gangs would be slower, threads run by what *alone* makes, if it is given.

    A call raises `UnsupportedError` if vectors cannot run the kernel or, with *check_cost*, if the cost model finds
    that they should not."""

    def __init__(
        self, function: Function, item: WorkItem, kind: ir.FunctionType, source: Any, layout: Any, width: int,
        check_cost: bool, exact: bool, strides: Mapping[Argument, int], dense: DenseVersion | None,
        alone: Callable[[], Body] | None,
    ) -> None:  # fmt: skip
        self._strides = strides
        self._dense = dense
        self._alone = alone
        self._function = function
        self._item = item
        self._kind = kind
        self._source = source
        self._size_of = measure_types(layout, item.module.context)
        doubles = sum(isinstance(value.type, ir.DoubleType) for value in _all_instructions(function))
        self._width = width if exact or doubles < _MANY_DOUBLES else max(width // 2, 1)
        self._widens = not exact
        self._check_cost = check_cost
        self._rows = self._multiple = 1
        self._guesses = False
        self.has_loop = False
        """Whether threads run a loop, once the body was written."""

    def __call__(
        self, builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value], blocks: Blocks
    ) -> None:  # fmt: skip
        """Run the threads of *blocks*, each of which *place* holds in its turn."""
        symbols = SymbolDeclarations(self._item.module, self._source)
        guessed = self._make_guessed(symbols)
        self._guesses = guessed is not None
        made = self._make(symbols, self._function, GANG_FUNCTION)
        if guessed is not None and not self._is_better(guessed, made):
            guessed, self._guesses = None, False
        if self._check_cost:
            (guessed or made).check_profitable()
        self._multiple = max(1 if gang.has_partial_gangs else gang.width for gang in (made, guessed or made))
        if guessed is None:
            self._run(builder, place, arguments, blocks, made)
            return
        with builder.if_else(self._are_as_guessed(builder, arguments)) as (holds, otherwise):
            with otherwise, remarks.muted():
                self._run_unlike(builder, place, arguments, blocks, made)
            with holds:
                self._run(builder, place, arguments, blocks, guessed)

    def _run_unlike(
        self, builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value], blocks: Blocks, made: GangFunction,
    ) -> None:  # fmt: skip
        """Run the threads of *blocks* where strides are not as guessed: in gangs such as *made*, or one by one."""
        if self._alone is not None and made.explain_unprofitable():
            self._alone()(builder, place, arguments, blocks)
        else:
            self._run(builder, place, arguments, blocks, made, is_rare=True)

    def _make(self, symbols: SymbolDeclarations, function: Function, name: str) -> GangFunction:
        make = partial(
            GangFunction, function, self._item, self._kind.args, symbols, self._size_of,
            options=GangOptions(name, exits_on_data=False, may_suspend=True),
        )  # fmt: skip
        return make_gang(make, self._width, self._widens)

    def _make_guessed(self, symbols: SymbolDeclarations) -> GangFunction | None:
        """The gang function for strides that are as guessed."""
        is_long = sum(1 for _ in self._function.instructions()) > _MOST_VERSIONED
        if not (self._strides or self._dense) or self._item.memory.totals is not None or is_long:
            return None
        return self._make(symbols, self._copy_as_guessed(), f"{GANG_FUNCTION}.guessed")

    def _copy_as_guessed(self) -> Function:
        """A copy of the kernel, as guessed."""
        return assume_strides(self._function if self._dense is None else self._dense.function, self._strides)

    def _is_better(self, guessed: GangFunction, made: GangFunction) -> bool:
        """Whether the guessed strides save as much as half an access, and enough of the whole; not where gangs of a
        dense array end with its rows, as something else depends on these, unless it is much less."""
        ends_with_rows = self._dense is not None and guessed.follows_rows
        if ends_with_rows and _FEWER_DIVISIONS * _count_divisions(guessed.shapes) > _count_divisions(made.shapes):
            return False
        costs = [estimate_lane(gang.likely_shapes, self._size_of, gang.width, ()) for gang in (guessed, made)]
        return costs[1] - costs[0] >= _WORTHWHILE and costs[0] <= _MUCH_LESS * costs[1]

    def _are_as_guessed(self, builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> ir.Value:
        holds: ir.Value = I1(1)
        for argument, number in self._strides.items():
            passed = arguments[argument.index - 1]  # the first one is the work item
            holds = builder.and_(holds, builder.icmp_unsigned("==", passed, I64(number)))
        return holds if self._dense is None else builder.and_(holds, _are_dense(builder, arguments, self._dense))

    def _run(
        self, builder: ir.IRBuilder, place: ir.Value, arguments: Sequence[ir.Value], blocks: Blocks, made: GangFunction,
        is_rare: bool = False,
    ) -> None:  # fmt: skip
        """Run the threads of *blocks* in gangs with the function *made*. If it *is_rare*, few launches do."""
        item = self._item
        width = self._width = made.width
        item.order.blocks_of_gang = -(-width // item.order.block[item.order.lane_axis]) if item.order.tile > 1 else 1
        self._rows = 1 if made.follows_rows else count_rows(made.shapes, made.early_exits, item, width)
        values = sum(1 for _ in self._function.instructions())
        self.has_loop = any(made.shapes.order.loops.values())
        is_large = values > _MANY_INSTRUCTIONS and not self.has_loop
        gang = made.build(self._rows, masked_only=is_large or (is_rare and values > _MANY_IF_RARE))
        suspension = made.suspension
        if suspension is None:
            with blocks.each():
                run_gangs(
                    builder, item, place, made,
                    lambda count: builder.call(gang, [place, *arguments, count, *NOT_SUSPENDED]), self._rows,
                )  # fmt: skip
            return
        gangs = partial(each_gang, builder, item, place, width, self._rows)
        item.order.takes_turns = True
        gangs_of_block = count_gangs(builder, item, width), most_gangs(item, width)
        turns = Turns(builder, item, place, suspension.nbytes, *gangs_of_block)
        turns.write(blocks, gangs, lambda *rest: builder.call(gang, [place, *arguments, *rest, I1(0)]))

    @property
    def width(self) -> int:
        """The lanes of a gang, once the body was written."""
        return self._width

    @property
    def multiple(self) -> int:
        """What the threads of a row have to be a multiple of, once the body was written."""
        return self._multiple

    def describe(self) -> str:
        """What was done, for the reason of a kernel's form."""
        where = f", in {self._rows} rows" if self._rows > 1 else ""
        turns = ", which take turns in a loop" if self._item.order.takes_turns else ""
        guesses = ", with a version for the distances that arrays probably have" if self._guesses else ""
        return f"{self._width * self._rows} threads at a time{where}{turns}{guesses}"


def _count_divisions(shapes: VectorShapes) -> int:
    return sum(value.opcode in DIVISIONS for block in shapes.order.blocks for value in block.instructions)


def _are_dense(builder: ir.IRBuilder, arguments: Sequence[ir.Value], dense: DenseVersion) -> ir.Value:
    holds: ir.Value = I1(1)
    for length in sorted(dense.lengths, key=lambda argument: argument.index):
        before = builder.sub(arguments[length.index - 1], I64(1))
        holds = builder.and_(holds, builder.icmp_unsigned("<", before, I64(MOST_LENGTH)))
    for stride, row in dense.rows.items():
        distance: ir.Value = I64(row.number)
        for argument in row.arguments:
            distance = builder.mul(distance, arguments[argument.index - 1])
        holds = builder.and_(holds, builder.icmp_unsigned("==", arguments[stride.index - 1], distance))
    for product in sorted(dense.products, key=Product.places):
        total: ir.Value = I64(product.number)
        for argument in product.arguments:
            factor = arguments[argument.index - 1]
            pair = builder.smul_with_overflow(total, builder.add(factor, I64(MOST_OFFSET)))
            total = builder.extract_value(pair, 0)
            is_natural = builder.icmp_unsigned("<=", factor, I64(MOST_LENGTH))
            holds = builder.and_(holds, builder.and_(builder.not_(builder.extract_value(pair, 1)), is_natural))
    return holds


def _all_instructions(function: Function) -> Iterator[Instruction]:
    """The instructions of *function*, and of each elementwise function that it calls."""
    yield from function.instructions()
    for callee in dict.fromkeys(value.elementwise for value in function.instructions()):
        if callee is not None:
            yield from callee.instructions()
