"""Addresses as sums, so that it is known by how many bytes two of them differ.

Numbers of 64 bits wrap around as addresses do, so sums of theirs are taken apart whatever they may overflow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Argument, Constant, Instruction, Symbol, Value
from hip_runtime.drivers.cpu.llvmir import I64

_MOST_STEPS = 64
"""Instructions that are looked at for one address: what is behind them stays whole."""

Guess = Callable[[Instruction], Value | None]
"""What an index probably is, if it is not what it says."""


@dataclass(frozen=True)
class AddressTerms:
    """An address: a sum of values, each times a number of bytes, and *offset* bytes."""

    terms: frozenset[tuple[Value, int]]
    offset: int

    @property
    def in_order(self) -> list[tuple[Value, int]]:
        """The terms in an order that is the same in each process, and for equal sums: that of the values' names."""
        return sorted(self.terms, key=lambda term: _name(term[0]))

    @property
    def number(self) -> int | None:
        """The number that it is, if it depends on no value."""
        return None if self.terms else self.offset

    def minus(self, other: AddressTerms) -> AddressTerms:
        """By what it differs from *other*."""
        rest = Counter(dict(self.terms))
        rest.subtract(dict(other.terms))
        terms = frozenset((value, scale) for value, scale in rest.items() if scale)
        return AddressTerms(terms, self.offset - other.offset)


def _name(value: Value) -> str:
    assert isinstance(value, Instruction | Argument | Symbol | Constant)
    return value.text if isinstance(value, Constant) else value.name


def take_apart(pointer: Value, size_of: SizeOf, guess: Guess | None = None) -> AddressTerms:
    """*pointer* as a sum, in which indices are what they are by a *guess*."""
    return _Sum(size_of, guess).of(pointer)


def take_number_apart(value: Value) -> AddressTerms:
    """*value*, of 64 bits, as a sum of such, times factors, and an offset."""
    return _Sum(lambda kind: 0, None).of_number(value)


class _Sum:
    def __init__(self, size_of: SizeOf, guess: Guess | None) -> None:
        self._size_of = size_of
        self._guess = guess
        self._terms: Counter[Value] = Counter()
        self._offset = 0
        self._steps = 0

    def of(self, pointer: Value) -> AddressTerms:
        while isinstance(pointer, Instruction) and pointer.opcode == "getelementptr" and self._add_step(pointer):
            pointer = pointer.operands[0]
        self._terms[pointer] += 1
        return self._collect()

    def of_number(self, value: Value) -> AddressTerms:
        self._add(value, 1)
        return self._collect()

    def _collect(self) -> AddressTerms:
        return AddressTerms(frozenset((value, scale) for value, scale in self._terms.items() if scale), self._offset)

    def _add_step(self, pointer: Instruction) -> bool:
        """Add what *pointer* is behind its base, if it has one index of 64 bits, or is that of an element of a
        structure of such that are all alike."""
        kind = pointer.source_type
        assert kind is not None
        first, *rest = pointer.operands[1:]
        if not rest and first.type == I64:
            self._add(first, self._size_of(kind))
            return True
        elements: Sequence[ir.Type] = getattr(kind, "elements", ())
        member = signed_number(rest[0]) if len(rest) == 1 else None
        if member is None or signed_number(first) != 0 or len(set(map(str, elements))) != 1:
            return False
        self._offset += member * self._size_of(elements[0])
        return True

    def _add(self, value: Value, scale: int) -> None:
        """Add *value*, of 64 bits, times *scale*."""
        number = signed_number(value)
        self._steps += 1
        if number is not None:
            self._offset += number * scale
        elif not isinstance(value, Instruction) or self._steps > _MOST_STEPS:
            self._terms[value] += scale
        elif self._guess is not None and (guessed := self._guess(value)) is not None:
            self._add(guessed, scale)
        elif value.opcode == "add" or (value.opcode == "or" and "disjoint" in value.flags):
            for operand in value.operands:
                self._add(operand, scale)
        elif value.opcode == "sub":
            self._add(value.operands[0], scale)
            self._add(value.operands[1], -scale)
        elif value.opcode == "mul" and (factor := signed_number(value.operands[1])) is not None:
            self._add(value.operands[0], scale * factor)
        elif value.opcode == "shl" and (bits := signed_number(value.operands[1])) is not None and 0 <= bits < 64:
            self._add(value.operands[0], scale << bits)
        else:
            self._terms[value] += scale
