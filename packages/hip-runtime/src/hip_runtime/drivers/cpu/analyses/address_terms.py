"""Addresses as sums, so that it is known by how many bytes two of them differ.

Numbers of 64 bits wrap around as addresses do, so sums of theirs are taken apart whatever they may overflow.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Instruction, Value

_I64 = ir.IntType(64)
_MOST_STEPS = 64
"""Instructions that are looked at for one address: what is behind them stays whole."""


@dataclass(frozen=True)
class AddressTerms:
    """An address: a sum of values, each times a number of bytes, and *offset* bytes."""

    terms: frozenset[tuple[Value, int]]
    offset: int


def take_apart(pointer: Value, size_of: SizeOf) -> AddressTerms:
    """*pointer* as a sum."""
    return _Sum(size_of).of(pointer)


class _Sum:
    def __init__(self, size_of: SizeOf) -> None:
        self._size_of = size_of
        self._terms: Counter[Value] = Counter()
        self._offset = 0
        self._steps = 0

    def of(self, pointer: Value) -> AddressTerms:
        while self._is_address(pointer):
            assert isinstance(pointer, Instruction)
            assert pointer.source_type is not None
            self._add(pointer.operands[1], self._size_of(pointer.source_type))
            pointer = pointer.operands[0]
        self._terms[pointer] += 1
        return AddressTerms(frozenset((value, scale) for value, scale in self._terms.items() if scale), self._offset)

    @staticmethod
    def _is_address(pointer: Value) -> bool:
        """Whether *pointer* is an address with one index."""
        return (
            isinstance(pointer, Instruction)
            and pointer.opcode == "getelementptr"
            and len(pointer.operands) == 2
            and pointer.operands[1].type == _I64
        )

    def _add(self, value: Value, scale: int) -> None:
        """Add *value*, of 64 bits, times *scale*."""
        number = signed_number(value)
        self._steps += 1
        if number is not None:
            self._offset += number * scale
        elif not isinstance(value, Instruction) or self._steps > _MOST_STEPS:
            self._terms[value] += scale
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
