"""Quotients that are only compared: ``i // width < height`` is ``i < height * width``.

Whether a thread's row is one of the array is then told without the row, by its place in the array.
"""

from __future__ import annotations

from dataclasses import dataclass

from hip_runtime.drivers.cpu.analyses.address_terms import AddressTerms, take_number_apart
from hip_runtime.drivers.cpu.analyses.divisions import REMAINDERS, Product, divide, divide_by_all
from hip_runtime.drivers.cpu.analyses.known_ranges import KnownRanges, constant
from hip_runtime.drivers.cpu.ir.model import Argument, Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I64

_NEXT = {"gt": "ge", "le": "lt"}
"""Comparisons with the number before one, and those with that."""

MOST_OFFSET = 1 << 16
"""What a bound differs from an argument by, at most."""

_MOST_NUMBER = 1 << 62
"""What a number of 64 bits with a sign has room for."""


@dataclass(frozen=True)
class _Bound:
    """*dividend* is compared with *limit*, an argument or 0, plus *offset*, times *by*."""

    dividend: Value
    predicate: str
    limit: Argument | None
    offset: int
    by: Product

    @property
    def product(self) -> Product:
        """What must not overflow, also if each argument is `MOST_OFFSET` more."""
        if self.limit is None:
            return self.by.times(Product(abs(self.offset)))
        return self.by.times(Product(1, (self.limit,)))


def compare_dividends(function: Function, ranges: KnownRanges) -> set[Product]:
    """Compare what quotients of *function* are quotients of, where that is not negative and they are compared with
    arguments or numbers, or sums of both; *ranges* are those of its values. Returns what must not overflow: products of
    arguments that are not negative, and up to `MOST_OFFSET` more."""
    products: set[Product] = set()
    for block in function.blocks:
        for value in list(block.instructions):
            bound = _find_bound(value, ranges)
            if bound is not None and bound.product.number <= _MOST_NUMBER:
                _compare(block, value, bound)
                products.add(bound.product)
    return products


def _compare(block: Block, value: Instruction, bound: _Bound) -> None:
    """Have *value*, in *block*, compare what *bound* does."""
    rest = divide(bound.dividend, REMAINDERS)
    if rest is not None and rest.by == bound.product and bound.limit is not None and not bound.offset:  # below it
        value.operands = [constant(I64, 0), constant(I64, 1)]
    else:
        made: list[Instruction] = []

        def make(opcode: str, left: Value, right: Value) -> Value:
            made.append(Instruction(I64, opcode, [left, right], "bound"))
            return made[-1]

        limit: Value = constant(I64, bound.offset)
        if bound.limit is not None:
            limit = make("add", bound.limit, limit) if bound.offset else bound.limit
        if bound.by.number != 1:
            limit = make("mul", limit, constant(I64, bound.by.number))
        for argument in bound.by.arguments:
            limit = make("mul", limit, argument)
        place = block.instructions.index(value)
        block.instructions[place:place] = made
        value.operands = [bound.dividend, limit]
    value.predicate, value.flags = bound.predicate, ()


def _find_bound(value: Instruction, ranges: KnownRanges) -> _Bound | None:
    """What *value* compares with what and how, but for the division, if it compares a quotient."""
    if value.opcode != "icmp" or value.operands[0].type != I64 or value.predicate in ("eq", "ne"):
        return None
    number, limit = map(take_number_apart, value.operands)
    sign, way = value.predicate[0], value.predicate[1:]
    if [scale for _, scale in number.terms] != [1] or (sign == "u" and min(number.offset, limit.offset) < 0):
        return None
    ((quotient, _),) = number.terms
    division = divide_by_all(quotient)
    dividend = None if division is None else ranges.of(division.divided)
    argument = _find_argument(limit)
    offset = limit.offset - number.offset + (way in _NEXT)
    if division is None or dividend is None or dividend[0] < 0 or (limit.terms and argument is None):
        return None
    if max(abs(number.offset), 0 if argument is None else abs(offset)) > MOST_OFFSET:
        return None
    return _Bound(division.divided, f"s{_NEXT.get(way, way)}", argument, offset, division.by)


def _find_argument(limit: AddressTerms) -> Argument | None:
    """The argument that *limit* is the sum of and a number, if it is that."""
    if [scale for _, scale in limit.terms] != [1]:
        return None
    ((value, _),) = limit.terms
    return value if isinstance(value, Argument) else None
