"""Rows that follow one another without a gap, and threads that find their row by a quotient.

``out[i // width, i % width]`` is the element *i* of an array whose rows have *width* elements, one behind the other.
That is not known when the kernel is compiled, as the distance of rows is an argument, but it is so for all arrays but
views. Where it is, lanes access neighbours, whatever *width* is, and a neighbour in the row before is *width* elements
before in all lanes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hip_runtime.drivers.cpu.analyses.address_terms import take_apart, take_number_apart
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Argument, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I64

_QUOTIENTS, _REMAINDERS = frozenset({"sdiv", "udiv"}), frozenset({"srem", "urem"})

Length = Argument | int
"""The elements of a row: an argument, or a number that the kernel has."""


@dataclass(frozen=True)
class DenseRow:
    """A distance of rows: *length* times *nbytes*, the size of an element."""

    length: Length
    nbytes: int


@dataclass(frozen=True)
class JoinedAddress:
    """The address of *access* where rows are dense: a sum of values, each times a number of bytes, and *offset* bytes.
    *stride* is the distance of rows that this depends on."""

    access: Instruction
    terms: tuple[tuple[Value, int], ...]
    offset: int
    stride: Argument
    row: DenseRow


def find_lengths(function: Function) -> set[Argument]:
    """The arguments that *function* divides by, itself or by what it chooses instead of 0."""
    found: set[Argument] = set()
    for value in function.instructions():
        if value.opcode in _QUOTIENTS | _REMAINDERS and value.type == I64:
            by = value.operands[1]
            choices = by.operands[1:] if isinstance(by, Instruction) and by.opcode == "select" else [by]
            found.update(choice for choice in choices if isinstance(choice, Argument))
    return found


def find_joined(function: Function, size_of: SizeOf) -> Iterator[JoinedAddress]:
    """The addresses of plain loads and stores of *function* that are simpler where rows are dense, with their terms in
    the order of the code."""
    values: list[Value] = [*function.arguments, *function.instructions()]
    places = {value: place for place, value in enumerate(values)}
    for value in function.instructions():
        if value.opcode in ("load", "store") and not value.volatile and value.atomic is None:
            kind = value.type if value.opcode == "load" else value.operands[0].type
            address = take_apart(value.operands[-1], size_of)
            terms = sorted(address.terms, key=lambda term: places.get(term[0], -1))
            joined = _join(value, terms, address.offset, size_of(kind))
            if joined is not None:
                yield joined


def _join(
    access: Instruction, address: Sequence[tuple[Value, int]], offset: int, nbytes: int
) -> JoinedAddress | None:  # fmt: skip
    for product, scale in address:
        row = _find_row(product) if scale == 1 else None
        if row is None:
            continue
        index, length, rows, stride = row
        rest = Counter({value: scale for value, scale in address if value is not product})
        left = nbytes + _cancel(rest, index, length)
        if left == 0:
            rest[stride] += rows
            terms = tuple((value, scale) for value, scale in rest.items() if scale)
            return JoinedAddress(access, terms, offset, stride, DenseRow(length, nbytes))
    return None


def _find_row(product: Value) -> tuple[Value, Length, int, Argument] | None:
    """What is divided, the length of rows, how many rows further, and their distance, if *product* is such a row times
    an argument."""
    if not isinstance(product, Instruction) or product.opcode != "mul":
        return None
    for row, stride in (product.operands, product.operands[::-1]):
        if not isinstance(stride, Argument) or stride.type != I64:
            continue
        number = take_number_apart(row)
        if len(number.terms) != 1:
            continue
        ((quotient, scale),) = number.terms
        divided = _split(quotient, _QUOTIENTS) if scale == 1 else None
        if divided is not None:
            return *divided, number.offset, stride
    return None


def _cancel(rest: Counter[Value], index: Value, length: Length) -> int:
    """How many bytes, times *length* and the quotient by that, the terms in *rest* have that depend on the quotient.
    These are removed, remainders by what they are without them: the *index*."""
    found = 0
    for value, scale in list(rest.items()):
        if _is_remainder(value, index, length):
            found -= scale
            del rest[value]
            rest[index] += scale
        elif _multiplies(value, index, length):
            found += scale
            del rest[value]
        elif isinstance(length, int) and _split(value, _QUOTIENTS) == (index, length) and scale % length == 0:
            found += scale // length
            del rest[value]
    return found


def _is_remainder(value: Value, index: Value, length: Length) -> bool:
    """Whether *value* is the remainder of *index* by *length*, or of a number that has the same."""
    split = _split(value, _REMAINDERS)
    if split is None or split[1] != length:
        return False
    if split[0] is index or not isinstance(length, int):
        return split[0] is index
    apart = take_number_apart(index).minus(take_number_apart(split[0]))
    is_power = not length & (length - 1)  # sums that wrap around have the same low bits
    return is_power and all(number % length == 0 for number in (apart.offset, *(scale for _, scale in apart.terms)))


def _multiplies(value: Value, index: Value, length: Length) -> bool:
    """Whether *value* is the product of *length* and the quotient of *index* by it."""
    if not isinstance(value, Instruction) or value.opcode != "mul" or length not in value.operands:
        return False
    other = value.operands[value.operands[0] is length]
    return _split(other, _QUOTIENTS) == (index, length)


def _split(value: Value, opcodes: frozenset[str]) -> tuple[Value, Length] | None:
    """What is divided by what, if *value* is a quotient, or a remainder, as *opcodes* say; LLVM writes those by a power
    of two as ``lshr`` and ``and``."""
    if not isinstance(value, Instruction) or value.type != I64:
        return None
    if value.opcode in opcodes:
        index, by = value.operands
        number = signed_number(by)
        return (index, number) if number else (index, by) if isinstance(by, Argument) else None
    power = signed_number(value.operands[1]) if value.opcode in ("lshr", "and") else None
    if power is None or (value.opcode == "lshr") != (opcodes is _QUOTIENTS):
        return None
    if value.opcode == "lshr":
        return value.operands[0], 1 << power
    return (value.operands[0], power + 1) if power > 0 and not power & (power + 1) else None
