"""Divides integers as such where a kernel divides them as float64 and drops the fraction: ``int(i / hip.blockDim.x)``.

That is how C's integer division is often written in Python. As float64 the row of a thread found so differs from lane
to lane for all that is known; as an integer division it is known to be the same in a block, or in most gangs.

The two are equal where the dividend is below 2**53, so that it is exact as float64. If ``a = q * b + r``, then
``a / b`` is at least ``1 / b`` from the next integer, which relative to ``a / b`` is ``1 / a``, more than it is rounded
by. If the divisor is not exact, it is at least 2**53, and both quotients are 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.analyses.magnitudes import find_magnitude, float_number, is_positive
from hip_runtime.drivers.cpu.ir.model import Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I64
from hip_runtime.drivers.cpu.passes.remove_unused import remove_unused

_EXACT = 1 << 53
"""Integers below it are exact as float64."""

_LONGEST_SHIFT = 52
"""Powers of two up to this one have an inverse that LLVM multiplies by."""


@dataclass(frozen=True)
class _Quotient:
    """*dividend*, whose magnitude is at most *most*, divided by *divisor*, which is positive, as float64."""

    dividend: Value
    divisor: Value
    most: int


def divide_as_integers(function: Function) -> bool:
    """Write the divisions of *function* by what is positive so, and decide the tests whether their results fit; whether
    there were any."""
    quotients: dict[Value, _Quotient] = {
        value: found for value in function.instructions() if (found := _find_quotient(value)) is not None
    }
    replaced: dict[Value, Value] = {}
    for block in function.blocks if quotients else ():
        for value in list(block.instructions):
            value.operands = [replaced.get(operand, operand) for operand in value.operands]
            found = quotients.get(value.operands[0]) if value.operands else None
            if value.opcode == "fptosi" and found is not None and _holds(value.type, found):
                made = _write(value, found)
                place = block.instructions.index(value)
                block.instructions[place : place + 1] = made
                replaced[value] = made[-1]
            elif value.opcode == "fcmp" and found is not None and (known := _decide(value, found)) is not None:
                replaced[value] = constant(I1, known)
            elif value.opcode == "select" and (chosen := signed_number(value.operands[0])) is not None:
                replaced[value] = value.operands[1 if chosen else 2]
    if not replaced:
        return False
    for value in function.instructions():
        value.operands = [replaced.get(operand, operand) for operand in value.operands]
    remove_unused(function)
    return True


def _find_quotient(value: Instruction) -> _Quotient | None:
    if value.opcode not in ("fdiv", "fmul") or not isinstance(value.type, ir.DoubleType):
        return None
    dividend, divisor = _find_integer(value.operands[0]), _find_divisor(value)
    if dividend is None or divisor is None or not is_positive(divisor):
        return None
    most = find_magnitude(dividend)
    return _Quotient(dividend, divisor, most) if most is not None and most < _EXACT else None


def _find_integer(value: Value) -> Value | None:
    """The integer that *value* is as float64. It has a sign, or is known not to need it."""
    if not isinstance(value, Instruction) or value.opcode not in ("sitofp", "uitofp"):
        return None
    (integer,) = value.operands
    return integer if value.opcode == "sitofp" or "nneg" in value.flags else None


def _find_divisor(value: Instruction) -> Value | None:
    """What *value* divides by; LLVM multiplies by the inverse of a power of two instead."""
    number = float_number(value.operands[1])
    if number is not None and value.opcode == "fmul":
        fraction, exponent = math.frexp(number)
        number = 1 / number if fraction == 0.5 and -_LONGEST_SHIFT < exponent < 1 else None
    if number is not None:
        return constant(I64, int(number)) if number.is_integer() and 0 < number < _EXACT else None
    return _find_integer(value.operands[1]) if value.opcode == "fdiv" else None


def _holds(kind: ir.Type, quotient: _Quotient) -> bool:
    """Whether integers of type *kind* can be *quotient*."""
    return isinstance(kind, ir.IntType) and quotient.most < 1 << (kind.width - 1)


def _write(value: Instruction, quotient: _Quotient) -> list[Instruction]:
    """The instructions that compute *quotient* in place of *value*, the last of which is it."""
    made: list[Instruction] = []

    def make(kind: ir.Type, opcode: str, operands: list[Value], suffix: str) -> Value:
        made.append(Instruction(kind, opcode, operands, value.name + suffix, location=value.location))
        return made[-1]

    widened = [
        part if part.type == I64 else make(I64, "sext", [part], f".{name}")
        for part, name in ((quotient.dividend, "dividend"), (quotient.divisor, "divisor"))
    ]
    whole = make(I64, "sdiv", widened, ".quotient")
    if value.type != I64:
        make(value.type, "trunc", [whole], ".narrow")
    return made


def _decide(test: Instruction, quotient: _Quotient) -> bool | None:
    """The result of *test*, which compares *quotient* with a constant, if the quotient's magnitude decides it."""
    limit = float_number(test.operands[1])
    if limit is None or math.isnan(limit):
        return None
    if test.predicate in ("ord", "uno"):
        return test.predicate == "ord"
    if abs(limit) <= quotient.most or test.predicate[1:] not in ("gt", "ge", "lt", "le"):
        return None
    return (test.predicate[1] == "l") == (limit > 0)
