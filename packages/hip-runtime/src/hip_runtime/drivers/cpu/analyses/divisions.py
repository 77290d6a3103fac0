"""Quotients and remainders by numbers, by arguments, and by products of both."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hip_runtime.drivers.cpu.analyses.address_terms import take_number_apart
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.ir.model import Argument, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I64

QUOTIENTS, REMAINDERS = frozenset({"sdiv", "udiv"}), frozenset({"srem", "urem"})

MOST_NESTED = 4
"""Products of products, and quotients of quotients, that are looked into."""


@dataclass(frozen=True)
class Product:
    """*number* times *arguments*, which are in order: the distance of rows, in bytes, or their length."""

    number: int
    arguments: tuple[Argument, ...] = ()

    def places(self) -> tuple[int, ...]:
        """The number and the places of the arguments: what to sort products by."""
        return self.number, *(argument.index for argument in self.arguments)

    def times(self, other: Product) -> Product:
        """Their product."""
        return Product(self.number * other.number, in_order(*self.arguments, *other.arguments))


@dataclass(frozen=True)
class Division:
    """What is *divided*, by what, and whether as numbers with a sign: those that are negative have another quotient and
    another remainder then."""

    divided: Value
    by: Product
    is_signed: bool


def divide(value: Value, opcodes: frozenset[str]) -> Division | None:
    """What is divided by what, if *value* is a quotient, or a remainder, as *opcodes* say; LLVM writes those by a power
    of two as ``lshr`` and ``and``."""
    if not isinstance(value, Instruction) or value.type != I64:
        return None
    if value.opcode in opcodes:
        index, by = value.operands
        length = product_of(by)
        return None if length is None else Division(index, length, value.opcode[0] == "s")
    power = signed_number(value.operands[1]) if value.opcode in ("lshr", "and") else None
    if power is None or (value.opcode == "lshr") != (opcodes is QUOTIENTS):
        return None
    if value.opcode == "lshr":
        return Division(value.operands[0], Product(1 << power), False) if 0 <= power < I64.width else None
    is_mask = power > 0 and not power & (power + 1)
    return Division(value.operands[0], Product(power + 1), False) if is_mask else None


def product_of(by: Value, deepest: int = MOST_NESTED) -> Product | None:
    """*by* as a product of numbers and arguments, if it is one and no number is 0."""
    if isinstance(by, Argument):
        return Product(1, (by,))
    number = signed_number(by)
    if number is not None:
        return Product(number) if number else None
    if not isinstance(by, Instruction) or by.opcode != "mul" or not deepest:
        return None
    left, right = (product_of(operand, deepest - 1) for operand in by.operands)
    return None if left is None or right is None else left.times(right)


def divide_by_all(value: Value, deepest: int = MOST_NESTED) -> Division | None:
    """What is divided, and by what in all, if *value* is a quotient, or one of a quotient."""
    division = divide(value, QUOTIENTS)
    inner = divide_by_all(division.divided, deepest - 1) if division is not None and deepest else None
    if division is None or inner is None or inner.is_signed != division.is_signed:
        return division
    return Division(inner.divided, inner.by.times(division.by), division.is_signed)


def find_divided(value: Value, division: Division) -> Value | None:
    """What *value* is the remainder of, if that, or a number that has the same remainder, is what *division* divides
    and its quotient by, both with a sign or both without."""
    split = divide(value, REMAINDERS)
    if split is None or split.is_signed != division.is_signed:
        return None
    inner = divide_by_all(split.divided)
    if inner is not None and replace(inner, by=inner.by.times(split.by)) == division:
        return split.divided
    if split.by != division.by:
        return None
    if split.divided is division.divided:
        return split.divided
    length = split.by.number
    if split.is_signed or split.by.arguments or length & (length - 1):
        return None
    # sums that wrap around have the same low bits
    apart = take_number_apart(division.divided).minus(take_number_apart(split.divided))
    is_multiple = all(number % length == 0 for number in (apart.offset, *(scale for _, scale in apart.terms)))
    return division.divided if is_multiple else None


def length_of(remainder: Value) -> Product:
    """By what *remainder*, which is one, is divided."""
    division = divide(remainder, REMAINDERS)
    assert division is not None
    return division.by


def in_order(*arguments: Argument) -> tuple[Argument, ...]:
    return tuple(sorted(arguments, key=lambda argument: argument.index))
