"""Quotients and remainders that LLVM computes with fewer bits than their operands have, as those are known to be small.

``i % 90`` of an index of 64 bits below 315,000 is a remainder of 32 bits, and ``i // 90 % 70`` one of 16: quicker for
lanes that divide, but what follows from them is no longer seen. Here they are written with 64 bits again.
"""

from __future__ import annotations

from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.ir.model import Constant, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I64
from hip_runtime.drivers.cpu.passes.remove_unused import remove_unused

_DIVISIONS = frozenset({"udiv", "urem"})


def widen_divisions(function: Function) -> None:
    """Write those of *function* whose results are extended to 64 bits with so many, and leave out the others if nothing
    uses them."""
    wide: dict[Value, Value] = {}
    for block in function.blocks:
        block.instructions = [made for value in block.instructions for made in _widen(value, wide)]
    if not wide:
        return
    extended = {value: found for value, found in wide.items() if value.type == I64}
    for value in function.instructions():
        value.operands = [extended.get(operand, operand) for operand in value.operands]
    remove_unused(function)


def _widen(value: Instruction, wide: dict[Value, Value]) -> list[Instruction]:
    """*value*, and behind it the same with 64 bits, if it is such a division; *wide* gets what has the same number in
    64 bits."""
    if not value.operands:
        return [value]
    operand = value.operands[0]
    if value.opcode == "trunc" and "nuw" in value.flags and (operand.type == I64 or operand in wide):
        wide[value] = wide.get(operand, operand)
    elif value.opcode == "zext" and operand in wide:
        wide[value] = wide[operand]
    elif value.opcode in _DIVISIONS and value.type != I64 and operand in wide:
        by = _extend(value.operands[1], wide)
        if by is not None:
            made = Instruction(I64, value.opcode, [wide[operand], by], f"{value.name}.wide", location=value.location)
            wide[value] = made
            return [value, made]
    return [value]


def _extend(divisor: Value, wide: dict[Value, Value]) -> Value | None:
    """The number *divisor* with 64 bits, if it is known."""
    if isinstance(divisor, Constant):
        return None if divisor.number is None else constant(I64, divisor.number)
    return wide.get(divisor)
