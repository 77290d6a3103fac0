"""Rows that follow one another without a gap, and threads that find their row by a quotient.

``out[i // width, i % width]`` is the element *i* of an array whose rows have *width* elements, one behind the other.
That is not known when the kernel is compiled, as the distance of rows is an argument, but it is so for all arrays but
views. Where it is, lanes access neighbours, whatever *width* is, and a neighbour in the row before is *width* elements
before in all lanes. The same holds for rows in planes: ``out[i // width // height, i // width % height, i % width]``.

An address is a sum of values, each times a number and arguments. A quotient times the distance of rows, which is the
length of rows times a number, and the remainder times this number are together what was divided times it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hip_runtime.drivers.cpu.analyses.address_terms import take_apart, take_number_apart
from hip_runtime.drivers.cpu.analyses.divisions import (
    MOST_NESTED,
    QUOTIENTS,
    REMAINDERS,
    Division,
    Product,
    divide,
    divide_by_all,
    find_divided,
    in_order,
    length_of,
    product_of,
)
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Argument, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I64

Term = tuple[Value, tuple[Argument, ...]]
"""A value times arguments."""


@dataclass(frozen=True)
class JoinedAddress:
    """The address of *access* where rows are dense: a sum of terms, each times a number, and *offset* bytes. *rows* are
    the distances of rows that this depends on, and what they are."""

    access: Instruction
    terms: tuple[tuple[Term, int], ...]
    offset: int
    rows: Mapping[Argument, Product]


def find_lengths(function: Function) -> set[Product]:
    """The arguments that *function* divides by, themselves, or their products, or by what it chooses instead of 0."""
    found: set[Product] = set()
    for value in function.instructions():
        if value.opcode in QUOTIENTS | REMAINDERS and value.type == I64:
            lengths = map(product_of, _choices(value.operands[1]))
            found.update(length for length in lengths if length is not None and length.arguments and length.number > 0)
    return found


def find_joined(function: Function, size_of: SizeOf) -> Iterator[JoinedAddress]:
    """The addresses of plain loads and stores of *function* that are simpler where rows are dense, with their terms in
    the order of the code."""
    values: list[Value] = [*function.arguments, *function.instructions()]
    places = {value: place for place, value in enumerate(values)}
    for value in function.instructions():
        if value.opcode in ("load", "store") and not value.volatile and value.atomic is None:
            address = _Address(places)
            apart = take_apart(value.address, size_of)
            for term, scale in apart.in_order:
                address.add(term, scale)
            if address.join():
                terms = tuple((term, address.terms[term]) for term in address.in_order() if address.terms[term])
                yield JoinedAddress(value, terms, address.offset + apart.offset, address.rows)


class _Address:
    """A sum of terms, each times a number, and of *offset* bytes, where *rows* are dense; *places* are those of all
    values in the code."""

    def __init__(self, places: Mapping[Value, int]) -> None:
        self._places = places
        self.terms: Counter[Term] = Counter()
        self.offset = 0
        self.rows: dict[Argument, Product] = {}

    def in_order(self) -> list[Term]:
        """The terms in the order of the code."""
        return sorted(self.terms, key=lambda term: (self._places.get(term[0], -1), *(one.index for one in term[1])))

    def add(self, value: Value, scale: int) -> None:
        """Add *value* times *scale*: as terms by arguments if it is computed from a division, else as it is."""
        found = _multiply_out(value, ())
        if found is None:
            self.terms[value, ()] += scale
            return
        terms, offset = found
        for term, number in terms.items():
            self.terms[term] += number * scale
        self.offset += offset * scale

    def join(self) -> bool:
        """Replace quotients and remainders by what is divided; ``False`` if there are none that belong together."""
        while any(self._join(value, arguments) for value, arguments in self.in_order()):
            pass
        return bool(self.rows)

    def _join(self, quotient: Value, arguments: Sequence[Argument]) -> bool:
        """Do so for *quotient*, if it is one whose factor is the distance of rows."""
        division = divide_by_all(quotient)
        if division is None or len(arguments) != 1 or self.terms[quotient, tuple(arguments)] != 1:
            return False
        (distance,) = arguments
        dense, replaced = self._cancel(division, distance)
        if dense is None or self.rows.get(distance, dense) != dense:
            return False
        for term, divided in replaced.items():
            number = self.terms.pop(term)
            if divided is not None:
                self.terms[divided, term[1]] += number
        del self.terms[quotient, (distance,)]
        self.rows[distance] = dense
        return True

    def _cancel(self, division: Division, distance: Argument) -> tuple[Product | None, dict[Term, Value | None]]:
        """What *distance* must be so that the quotient times it and the terms that depend on the same quotient are none
        together, if it is not known to be something else, and by what numbers each of these is to be replaced."""
        left: Counter[tuple[Argument, ...]] = Counter()
        replaced: dict[Term, Value | None] = {}
        for (value, factors), number in self.terms.items():
            divided = find_divided(value, division)
            if divided is not None:
                rest = length_of(value).times(Product(number, factors))
                left[rest.arguments] += rest.number
                replaced[value, factors] = divided
            elif distance not in factors and divide_by_all(value) == division:
                left[factors] -= number
                replaced[value, factors] = None
        if len(left) != 1:
            return None, replaced
        ((rest_arguments, number),) = left.items()
        is_distance = number > 0 and distance not in rest_arguments
        return Product(number, rest_arguments) if is_distance else None, replaced


def _multiply_out(value: Value, factors: tuple[Argument, ...]) -> tuple[Counter[Term], int] | None:
    """*value* times *factors* as a sum of terms times numbers, and of a number; ``None`` if no term is computed from a
    division."""
    if len(factors) > MOST_NESTED:
        return None
    number = take_number_apart(value) if value.type == I64 else None
    terms: Counter[Term] = Counter()
    divides = False
    offset = 0
    for term, scale in number.in_order if number is not None else [(value, 1)]:
        inner = None
        for other, argument in _factors(term):
            inner = inner or _multiply_out(other, in_order(*factors, argument))
        divides |= inner is not None or divide(term, QUOTIENTS) is not None or divide(term, REMAINDERS) is not None
        for found, times in inner[0].items() if inner is not None else [((term, factors), 1)]:
            terms[found] += times * scale
        offset += inner[1] * scale if inner is not None else 0
    if number is not None and number.offset:
        if factors:
            terms[factors[0], factors[1:]] += number.offset
        else:
            offset += number.offset
    return (terms, offset) if divides else None


def _factors(value: Value) -> list[tuple[Instruction, Argument]]:
    """The two factors of *value*, if it is a product of a number and an argument."""
    if not isinstance(value, Instruction) or value.opcode != "mul":
        return []
    pairs = (value.operands, value.operands[::-1])
    return [(one, other) for one, other in pairs if isinstance(one, Instruction) and isinstance(other, Argument)]


def _choices(by: Value) -> list[Value]:
    """What *by* is, or one of which it is."""
    if isinstance(by, Instruction) and by.opcode == "select":
        return by.operands[1:]
    if isinstance(by, Instruction) and by.callee.startswith(("llvm.umax.", "llvm.smax.")):
        return by.arguments
    return [by]
