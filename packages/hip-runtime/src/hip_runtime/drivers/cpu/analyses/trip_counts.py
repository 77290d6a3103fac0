"""How often loops run whose counters do not depend on data, such as the steps of a tree that double.

LLVM finds the same by trying, but does not tell; here it decides whether a loop is worth unrolling.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value


def count_iterations(loop: frozenset[Block], header: Block, most: int) -> int | None:
    """How often *loop* runs, which is entered at *header* and left at one block; ``None`` if that depends on anything
    but constants, or if it is more than *most* times."""
    leaving = [block for block in loop if any(target not in loop for target in block.successors)]
    if len(leaving) != 1 or leaving[0].terminator.opcode != "br":
        return None
    end = leaving[0].terminator
    numbers: dict[Instruction, int | None] = {}
    for phi in header.phis:
        numbers[phi] = _number_from(phi, numbers, lambda source: source not in loop)
    for iteration in range(1, most + 1):
        values = dict(numbers)
        goes_on = _evaluate(end.operands[0], values)
        if goes_on is None:
            return None
        if end.targets[0 if goes_on else 1] not in loop:
            return iteration
        numbers = {phi: _number_from(phi, values, lambda source: source in loop) for phi in header.phis}
    return None


def _number_from(
    phi: Instruction, values: dict[Instruction, int | None], comes_from: Callable[[Block], bool]
) -> int | None:  # fmt: skip
    """What *phi* becomes on the only edge from a block for which *comes_from* holds."""
    arriving = [value for value, source in zip(phi.operands, phi.targets, strict=True) if comes_from(source)]
    return _evaluate(arriving[0], values) if len(arriving) == 1 else None


def _evaluate(value: Value, values: dict[Instruction, int | None]) -> int | None:
    """The signed number that *value* is, where *values* are known."""
    if not isinstance(value, Instruction):
        return signed_number(value)
    if value not in values:
        values[value] = None  # for values that depend on themselves
        values[value] = _compute(value, values)
    return values[value]


def _compute(value: Instruction, values: dict[Instruction, int | None]) -> int | None:
    if not isinstance(value.type, ir.IntType) or value.opcode not in _KNOWN:
        return None
    operands = []
    for operand in value.operands:
        number = _evaluate(operand, values)
        if number is None or not isinstance(operand.type, ir.IntType):
            return None
        operands.append(number)
    bits = value.operands[-1].type.width
    unsigned = [number & ((1 << bits) - 1) for number in operands]
    if value.opcode == "icmp":
        compared = unsigned if value.predicate[0] == "u" else operands
        return -int(_COMPARISONS[value.predicate.lstrip("us")](*compared))
    if value.opcode == "select":
        return operands[1] if operands[0] else operands[2]
    result = _apply(value.opcode, operands, unsigned, bits)
    return None if result is None else _wrap(result, value.type.width)


def _apply(opcode: str, operands: list[int], unsigned: list[int], bits: int) -> int | None:
    """The result of *opcode* before it wraps around; ``None`` where LLVM's is undefined."""
    if opcode in _ARITHMETIC:
        return int(_ARITHMETIC[opcode](*operands))
    if opcode in ("zext", "sext", "trunc"):
        return unsigned[0] if opcode == "zext" else operands[0]
    if opcode in _SHIFTS:
        if not 0 <= operands[1] < bits:
            return None
        return int(_SHIFTS[opcode](unsigned[0] if opcode == "lshr" else operands[0], operands[1]))
    if operands[1] == 0:
        return None
    if opcode == "udiv":
        return unsigned[0] // unsigned[1]
    if opcode == "urem":
        return unsigned[0] % unsigned[1]
    quotient = abs(operands[0]) // abs(operands[1])
    quotient = -quotient if (operands[0] < 0) != (operands[1] < 0) else quotient
    return quotient if opcode == "sdiv" else operands[0] - quotient * operands[1]


def _wrap(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor,
}  # fmt: skip
_SHIFTS: dict[str, Callable[[int, int], int]] = {
    "shl": operator.lshift, "lshr": operator.rshift, "ashr": operator.rshift,
}  # fmt: skip
_KNOWN = {*_ARITHMETIC, *_SHIFTS, "zext", "sext", "trunc", "udiv", "urem", "sdiv", "srem", "icmp", "select"}
