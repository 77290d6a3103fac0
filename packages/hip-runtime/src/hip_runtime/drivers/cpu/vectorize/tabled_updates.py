"""Atomic operations of a gang's lanes that are done in the worker's table, see `update_tables`.

If the tables have the elements of all active lanes, which comparisons of vectors tell, a lane takes a load, an
operation and a store for each of several operations (`analyses.joint_updates`), before the next lane does all of
these. Neighbours often update the same element, as of a row that they are all a part of, and each of these waits for
what the last one has stored; so lanes that are far apart take turns.

A load between such operations may be of memory that they update. If a table has that, or if a table has not all of the
elements, which are updated in memory, the load is made after those before it, and the lanes are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.worker import counted
from hip_runtime.drivers.cpu.abi.worker_memory import KeepsTables
from hip_runtime.drivers.cpu.ir.loop_metadata import rolled
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.llvmir import I1, I32, PTR, allocate
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues
from hip_runtime.drivers.cpu.vectorize.lane_operands import OfLane, element_address, prepare_operand
from hip_runtime.drivers.cpu.vectorize.scalarize import Scalarizer

_TURNS = 4
"""How many lanes take turns."""


@dataclass
class _Part:
    """One of the *updates*: what it is done with, and where."""

    update: Instruction
    value: OfLane
    addresses: ir.Value
    elements: ir.Value
    """Their numbers in the table, if that has them."""
    fits: ir.Value
    """Whether it has those of all active lanes."""


class TabledUpdates(Scalarizer):
    """Writes *updates*, which have tables among *tables* and follow one another in a block, for each active lane."""

    def __init__(self, code: GangValues, updates: Sequence[Instruction], tables: KeepsTables) -> None:
        super().__init__(code, updates[0])
        self.updates = updates
        self._tables = tables
        self._parts: list[_Part] = []
        self._settled = 0
        self._elements: list[OfLane] | None = None
        self._memories: list[ir.Value] = []
        self._slow: tuple[_Part, OfLane]
        self._done: ir.Value | None = None
        """How many of them were done ahead of the last one, in a variable."""

    def take(self, update: Instruction) -> None:
        """Take on *update*, the next of them; the last one is done at once, with those that were not yet."""
        code = self._code
        if not self._parts and len(self.updates) > 1:
            self._done = allocate(code.entry, I32, "done")
            self._builder.store(I32(0), self._done)
        addresses = code.vector(update.operands[0])
        value = prepare_operand(code, update, 1)
        self._parts.append(_Part(update, value, addresses, *self._tables.find_elements(code, update, addresses)))
        if len(self._parts) == len(self.updates):
            self._finish()

    @property
    def is_pending(self) -> bool:
        """Whether some were taken on that may not be done yet."""
        return 0 < len(self._parts) < len(self.updates)

    def settle(self) -> ir.Value | None:
        """Whether some of those that were taken on since this was asked have no elements of tables, if there are any:
        they have to be done before memory is accessed that is updated then, where no table tells so."""
        unsettled, self._settled = self._parts[self._settled :], len(self._parts)
        return self._builder.not_(self._all_fit(unsettled)) if unsettled else None

    def catch_up(self) -> None:
        """Do those that were taken on and not done yet, wherever their elements are."""
        for number, part in enumerate(self._parts):
            with self._builder.if_then(self._is_open(number)):
                self._slow = part, self._spill(part.addresses)
                self._run_lanes()
        if self._done is not None:
            self._builder.store(I32(len(self._parts)), self._done)

    def _finish(self) -> None:
        builder, code = self._builder, self._code
        all_fit = self._all_fit(self._parts)
        with builder.if_else(builder.and_(self._is_open(0), all_fit), likely=True) as (in_table, anywhere):
            with in_table:
                kind = self._lanes.type_of(I32)
                self._elements = [self._spill(builder.trunc(part.elements, kind)) for part in self._parts]
                self._memories = [self._tables.find_memory(code, part.update) for part in self._parts]
                self._run_lanes()
            with anywhere:
                self._elements = None
                self.catch_up()

    def _all_fit(self, parts: Sequence[_Part]) -> ir.Value:
        all_fit: ir.Value = I1(1)
        for part in parts:
            all_fit = self._builder.and_(all_fit, part.fits)
        return all_fit

    def _is_open(self, number: int) -> ir.Value:
        """Whether that with *number* is not done yet."""
        if self._done is None:
            return I1(1)
        return self._builder.icmp_unsigned("<=", self._builder.load(self._done, typ=I32), I32(number))

    def _spill(self, whole: ir.Value) -> OfLane:
        """Store the vector *whole*; how to get its elements. That of a single lane is not stored: LLVM 22 aborts where
        it finds a load of an address to be of a vector of one."""
        builder, code, kind = self._builder, self._code, whole.type.element
        if code.lanes.width == 1:
            only = builder.extract_element(whole, I32(0))
            return lambda _: only
        kind = PTR if isinstance(kind, ir.PointerType) else kind
        place = allocate(code.entry, ir.ArrayType(kind, code.lanes.width), "operands")
        place.align = 64
        builder.store(whole, place, align=64)
        return lambda lane: builder.load(element_address(builder, place, kind, lane), typ=kind)

    def _run_lanes(self) -> None:
        code, lanes = self._code, self._lanes
        if self._elements is None and code.mask is not None and code.lane is None:  # seldom: one loop is enough
            self._run_active(self._builder.bitcast(code.mask, ir.IntType(lanes.width)))
        else:
            super()._run_lanes()

    def _run_all(self) -> None:
        width = self._lanes.width
        turns = min(_TURNS, width) if self._elements is not None else 1
        builder, each = self._builder, width // turns
        with counted(builder, "turn", I32(0), I32(each), [rolled(builder.module)]) as first:
            for turn in range(turns):
                self._run_lane(builder.add(first, I32(turn * each), flags=("nuw", "nsw")))

    def _run_lane(self, lane: ir.Value) -> None:
        code = self._code
        if self._elements is None:
            part, address = self._slow
            self._tables.update(code, part.update, [address(lane), part.value(lane)])
            return
        for part, memory, element in zip(self._parts, self._memories, self._elements, strict=True):
            self._tables.update_element(code, part.update, memory, element(lane), part.value(lane))
