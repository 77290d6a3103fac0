"""Stores in steps that together store all elements of a row, as both parts of complex numbers or the colours of pixels.

Each of them alone leaves out what lies in between: a store under a mask, for which AMD's processors take long in code
for AVX2. All together are whole vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.neighbours import Neighbours, find_neighbours
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.vectorize.strided_accesses import store_interleaved

if TYPE_CHECKING:
    from hip_runtime.drivers.cpu.vectorize.memory_accesses import MemoryAccesses


def find_filled_rows(code: MemoryAccesses) -> dict[Instruction, Neighbours]:
    """Such stores of the block that *code* writes for all lanes, each with those that it fills a row with."""

    def suits(value: Instruction) -> bool:
        is_plain = value.opcode == "store" and not (value.volatile or value.atomic or value.meets_tables)
        return is_plain and code.step_of(value) > 1

    found = find_neighbours(code.block, suits, code.step_of, code.shapes.size_of, lambda _: None)
    return {store: group for store, group in found.items() if len(group.members) == code.step_of(store)}


def store_row(code: MemoryAccesses, row: Neighbours) -> None:
    """Store what all stores of *row* do, if lanes are in steps; else one after the other."""
    builder, lanes = code.builder, code.lanes
    values = [code.vector(member.operands[0]) for member in row.members]
    bases = [code.base_of(member.operands[1]) for member in row.members]
    align = row.members[0].align or 1
    unknown = [holds for _, holds in bases if not (isinstance(holds, ir.Constant) and holds.constant)]
    if not unknown:
        store_interleaved(lanes, values, bases[0][0], align)
        return
    all_hold = unknown[0]
    for holds in unknown[1:]:
        all_hold = builder.and_(all_hold, holds)
    places = [code.vector(member.operands[1]) for member in row.members]
    with builder.if_else(all_hold) as (speculated, otherwise):
        with speculated:
            store_interleaved(lanes, values, bases[0][0], align)
        with otherwise:
            for member, value, place in zip(row.members, values, places, strict=True):
                lanes.scatter(value, place, None, member.align or 1)
