"""How often loops run whose counters do not depend on data, such as the steps of a tree that double.

LLVM finds the same by trying, but does not tell; here it decides whether a loop is worth unrolling.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.cfg import Order
from hip_runtime.drivers.cpu.analyses.sources import operands_first
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value

Numbers = dict[Instruction, int | None]
"""The signed numbers that values are, ``None`` where that depends on data."""

NOTHING: Mapping[Instruction, int | None] = MappingProxyType({})


def expect_iterations(order: Order, most: int) -> dict[frozenset[Block], int]:
    """How often each loop of *order* runs for each time that it is entered, where that is at most *most* times and
    depends on constants and on the counters of loops around it alone: then it is as often as in their middle."""
    found: dict[frozenset[Block], int] = {}
    counters: Numbers = {}
    for loop, header in order.headers().items():
        iterations = count_iterations(loop, header, most, counters)
        if iterations is not None:
            found[loop] = iterations
            counters |= _numbers_in_iteration(loop, header, iterations // 2, counters)
    return found


def count_iterations(
    loop: frozenset[Block], header: Block, most: int, known: Mapping[Instruction, int | None] = NOTHING
) -> int | None:
    """How often *loop* runs, which is entered at *header*, unless it is left early; ``None`` if that depends on more
    than constants and *known* values, or if it is more than *most* times."""
    leaving = [block for block in loop if any(target not in loop for target in block.successors)]
    if len(leaving) > 1:  # each iteration ends at one of them, or there is nothing to be known
        leaving = [block for block in leaving if header in block.successors]
    if len(leaving) != 1 or leaving[0].terminator.opcode != "br":
        return None
    end = leaving[0].terminator
    for iteration, values in enumerate(_values_by_iteration(loop, header, most, known), 1):
        goes_on = _evaluate(end.operands[0], values)
        if goes_on is None:
            return None
        if end.targets[0 if goes_on else 1] not in loop:
            return iteration
    return None


def _numbers_in_iteration(
    loop: frozenset[Block], header: Block, iteration: int, known: Mapping[Instruction, int | None]
) -> Numbers:  # fmt: skip
    """The numbers of the phis of *header* in an iteration of *loop*, counted from 0."""
    *_, values = _values_by_iteration(loop, header, iteration + 1, known)
    return {phi: values[phi] for phi in header.phis}


def _values_by_iteration(
    loop: frozenset[Block], header: Block, most: int, known: Mapping[Instruction, int | None]
) -> Iterator[Numbers]:
    """What is known in each of the first *most* iterations of *loop*, where others may be added."""
    values: Numbers = dict(known)
    numbers = {phi: _number_from(phi, values, lambda source: source not in loop) for phi in header.phis}
    for _ in range(most):
        values = {**known, **numbers}
        yield values
        numbers = {phi: _number_from(phi, values, lambda source: source in loop) for phi in header.phis}


def _number_from(
    phi: Instruction, values: Numbers, comes_from: Callable[[Block], bool]
) -> int | None:  # fmt: skip
    """What *phi* becomes on the only edge from a block for which *comes_from* holds."""
    arriving = [value for value, source in zip(phi.operands, phi.targets, strict=True) if comes_from(source)]
    return _evaluate(arriving[0], values) if len(arriving) == 1 else None


def _evaluate(value: Value, values: Numbers) -> int | None:
    """The signed number that *value* is, where *values* are known."""
    for part in operands_first(value, values, _known_from):
        values[part] = _compute(part, values) if _known_from(part) else None
    return values[value] if isinstance(value, Instruction) else signed_number(value)


def _known_from(value: Instruction) -> Sequence[Value]:
    """The operands that tell the number that *value* is; none, if that depends on data."""
    return value.operands if isinstance(value.type, ir.IntType) and value.opcode in _KNOWN else ()


def _compute(value: Instruction, values: Numbers) -> int | None:
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
