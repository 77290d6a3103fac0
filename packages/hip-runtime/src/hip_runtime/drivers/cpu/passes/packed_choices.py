"""Choices between constants that LLVM has packed into one integer, of which it shifts one out, as choices again.

Of ``5 if s == 0 else 2 if s == 1 else 3`` for bytes it makes ``197125 >> 8 * s``, in 24 bits. A vector compares and
chooses four times as many bytes at once as it shifts such integers.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1

_MOST = 8
"""Constants that are compared for: of more, a shift is quicker."""


def unpack_choices(function: Function) -> bool:
    """Write such choices in *function* as comparisons and selections; whether there were any."""
    found = False
    for block in function.blocks:
        for value in list(block.instructions):
            choice = _match(value)
            if choice is not None:
                _write(value, *choice, block)
                found = True
    return found


def _match(value: Instruction) -> tuple[Value, list[int]] | None:
    """The number that *value* chooses by, and what it is for each from 0 on, if it is such a choice."""
    shifted = _operand(value, "trunc")
    if not isinstance(value.type, ir.IntType) or shifted is None or shifted.opcode != "lshr":
        return None
    packed, amount = signed_number(shifted.operands[0]), shifted.operands[1]
    slot = _factor(amount)
    if packed is None or slot < value.type.width or shifted.type.width % slot:
        return None  # the last of unequal parts would be chosen, too
    assert isinstance(amount, Instruction)
    number = amount.operands[0]
    if isinstance(number, Instruction) and number.opcode == "zext":
        number = number.operands[0]
    count = shifted.type.width // slot
    if not 2 <= count <= _MOST or not isinstance(number.type, ir.IntType) or count > 1 << number.type.width:
        return None
    mask = (1 << value.type.width) - 1
    return number, [packed >> slot * place & mask for place in range(count)]


def _operand(value: Instruction, opcode: str) -> Instruction | None:
    operand = value.operands[0] if value.opcode == opcode else None
    return operand if isinstance(operand, Instruction) else None


def _factor(amount: Value) -> int:
    """What *amount* multiplies something by that it does not overflow by; 0 if it does not."""
    if not isinstance(amount, Instruction) or "nuw" not in amount.flags or amount.opcode not in ("shl", "mul"):
        return 0
    by = signed_number(amount.operands[1])
    if by is None or by < 0:
        return 0
    return by if amount.opcode == "mul" else 1 << by if by < 64 else 0


def _write(value: Instruction, number: Value, arms: list[int], block: Block) -> None:
    """Have *value*, in *block*, be the one of *arms* that *number* is the place of; any, if there is none there."""
    kind = value.type
    assert isinstance(kind, ir.IntType)
    assert isinstance(number.type, ir.IntType)
    made: list[Instruction] = []
    rest: Value = constant(kind, arms[-1])
    for place in reversed(range(len(arms) - 1)):
        is_there = Instruction(I1, "icmp", [number, constant(number.type, place)], f"{value.name}.is", predicate="eq")
        made.append(is_there)
        if place > 0:
            rest = Instruction(kind, "select", [is_there, constant(kind, arms[place]), rest], f"{value.name}.rest")
            made.append(rest)
    place = block.instructions.index(value)
    block.instructions[place:place] = made
    value.opcode, value.flags, value.operands = "select", (), [made[-1], constant(kind, arms[0]), rest]
