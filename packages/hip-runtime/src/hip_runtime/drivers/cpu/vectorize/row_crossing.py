"""Gangs in loops that reach over the end of a row: the lanes before it run first, then those behind it.

What follows a coherent division (`coherent_values`) is written twice more, under masks, with the quotient of the row
that ends and with the next one. Without that, all lanes would divide, and gather and scatter. Outside of loops, gangs
end with the row instead (`row_split`).
"""

from __future__ import annotations

from dataclasses import dataclass

from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.ir.model import RAMP, Block, Value
from hip_runtime.drivers.cpu.llvmir import I1, I64, VOID


@dataclass(frozen=True)
class CrossedRow:
    """The *quotient* of the first lane, the *remainders* of the lanes that have it, and how many have *room* in the
    row, whose length is *divisor*; other *conditions* of a coherent division hold, too."""

    quotient: Value
    remainders: Value
    room: Value
    divisor: Value
    conditions: tuple[Value, ...]


def write_crossing(
    row: CrossedRow, name: str, before: Block, behind: Block, apart: Block, width: int
) -> tuple[list[Block], dict[Value, Value]]:
    """Blocks that branch to *before* for the lanes of a gang of *width* that are in *row*, and to *behind* for the
    others, if these are all in the next row; else to *apart*. Returns also what stands for the quotient and the
    remainders *behind* the end."""
    check, halves = Block(f"{name}.crossing"), Block(f"{name}.halves")
    holds: Value = check.append("icmp", I1, row.divisor, constant(I64, width), predicate="uge")
    for condition in row.conditions:
        holds = check.append("select", I1, condition, holds, constant(I1, 0))
    holds = check.append("freeze", I1, holds)
    check.append("br", VOID, holds, targets=[halves, apart])
    lanes = halves.append(RAMP, I64, constant(I64, 0), constant(I64, 1))
    is_before = halves.append("icmp", I1, lanes, row.room, predicate="ult")
    following = halves.append("add", I64, row.quotient, constant(I64, 1))
    # less than 0 in the lanes that are masked out, and from 0 on in the others
    start = halves.append("sub", I64, constant(I64, 0), row.room)
    remainders = halves.append(RAMP, I64, start, constant(I64, 1))
    halves.append("br", VOID, is_before, targets=[before, behind])
    return [check, halves], {row.quotient: following, row.remainders: remainders}
