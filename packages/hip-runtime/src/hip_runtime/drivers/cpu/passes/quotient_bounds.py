"""Quotients that are only compared: ``i // width < height`` is ``i < height * width``.

Whether a thread's row is one of the array is then told without the row, by its place in the array.
"""

from __future__ import annotations

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.dense_rows import REMAINDERS, Product, divide, divide_by_all
from hip_runtime.drivers.cpu.analyses.known_ranges import KnownRanges, constant
from hip_runtime.drivers.cpu.ir.model import Argument, Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I64

_NEXT = {"gt": "ge", "le": "lt"}
"""Comparisons with the number before one, and those with that."""

_MOST_NUMBER = 1 << 62
"""What a number of 64 bits with a sign has room for."""


def compare_dividends(function: Function, ranges: KnownRanges) -> set[Product]:
    """Compare what quotients of *function* are quotients of, where that is not negative and they are compared with
    arguments or numbers; *ranges* are those of its values. Returns what must not overflow: products of arguments that
    are not negative."""
    products: set[Product] = set()
    for block in function.blocks:
        for value in list(block.instructions):
            bound = _find_bound(value, ranges)
            if bound is not None:
                _compare(block, value, *bound)
                products.add(bound[-1])
    return products


def _compare(block: Block, value: Instruction, dividend: Value, predicate: str, product: Product) -> None:
    """Have *value*, in *block*, compare *dividend* with *product*."""
    rest = divide(dividend, REMAINDERS)
    if rest is not None and rest.by == product:  # below it
        value.operands = [constant(I64, 0), constant(I64, 1)]
    else:
        place = block.instructions.index(value)
        limit: Value = constant(I64, product.number)
        made: list[Instruction] = []
        for factor in product.arguments:
            made.append(Instruction(I64, "mul", [factor, limit], "bound"))
            limit = made[-1]
        block.instructions[place:place] = made
        value.operands = [dividend, limit]
    value.predicate, value.flags = predicate, ()


def _find_bound(value: Instruction, ranges: KnownRanges) -> tuple[Value, str, Product] | None:
    """What *value* compares with what and how, but for the division, if it compares a quotient."""
    division = divide_by_all(value.operands[0]) if value.opcode == "icmp" else None
    if division is None or value.predicate in ("eq", "ne"):
        return None
    dividend, limit, way = ranges.of(division.divided), value.operands[1], value.predicate[1:]
    number = signed_number(limit)
    if number is not None:
        number += way in _NEXT
        way = _NEXT.get(way, way)
    if dividend is None or dividend[0] < 0 or way in _NEXT:
        return None
    if number is not None:
        product = division.by.times(Product(number))
    elif isinstance(limit, Argument):
        product = division.by.times(Product(1, (limit,)))
    else:
        return None
    return (division.divided, f"s{way}", product) if 0 <= product.number <= _MOST_NUMBER else None
