"""Atomic operations of a gang's lanes that are done in the worker's table, see `update_tables`.

If the table has the elements of all active lanes, which one comparison of vectors tells, a lane takes a load, an
operation and a store. Neighbours often update the same element, as of a row that they are all a part of, and each of
these waits for what the last one has stored; so lanes that are far apart take turns.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import KeepsTables
from hip_runtime.drivers.cpu.abi.worker import counted
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.llvmir import I32, PTR, allocate
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues
from hip_runtime.drivers.cpu.vectorize.lane_operands import OfLane, element_address, prepare_operand
from hip_runtime.drivers.cpu.vectorize.scalarize import Scalarizer

_TURNS = 4
"""How many lanes take turns."""


class TabledUpdate(Scalarizer):
    """Writes *update*, which has a table among *tables*, for each active lane."""

    def __init__(self, code: GangValues, update: Instruction, tables: KeepsTables) -> None:
        super().__init__(code, update)
        self._tables = tables

    def write(self) -> None:
        """Write all of it."""
        code, builder, update = self._code, self._builder, self._instruction
        addresses = code.vector(update.operands[0])
        self._value = prepare_operand(code, update, 1)
        elements, all_fit = self._tables.find_elements(code, update, addresses)
        with builder.if_else(all_fit, likely=True) as (in_table, anywhere):
            with in_table:
                self._element: OfLane | None = self._spill(builder.trunc(elements, self._lanes.type_of(I32)))
                self._run_lanes()
            with anywhere:
                self._element = None
                self._address = self._spill(addresses)
                self._run_lanes()

    def _spill(self, whole: ir.Value) -> OfLane:
        """Store the vector *whole*; how to get its elements."""
        builder, code, kind = self._builder, self._code, whole.type.element
        kind = PTR if isinstance(kind, ir.PointerType) else kind
        place = allocate(code.entry, ir.ArrayType(kind, code.lanes.width), "operands")
        place.align = 64
        builder.store(whole, place, align=64)
        return lambda lane: builder.load(element_address(builder, place, kind, lane), typ=kind)

    def _run_all(self) -> None:
        width = self._lanes.width
        turns = min(_TURNS, width) if self._element is not None else 1
        builder, each = self._builder, width // turns
        with counted(builder, "turn", I32(0), I32(each), rolled=True) as first:
            for turn in range(turns):
                self._run_lane(builder.add(first, I32(turn * each), flags=("nuw", "nsw")))

    def _run_lane(self, lane: ir.Value) -> None:
        code, update = self._code, self._instruction
        if self._element is not None:
            self._tables.update_element(code, update, self._element(lane), self._value(lane))
        else:
            self._tables.update(code, update, [self._address(lane), self._value(lane)])
