"""Tables that are small enough to be in registers: an array, at an index that is known to be small in each lane."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.address_terms import take_apart
from hip_runtime.drivers.cpu.analyses.private_arrays import is_private_address
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.small_numbers import count_low_zeros, find_most
from hip_runtime.drivers.cpu.analyses.type_sizes import number_bytes
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.object_code.permutations import Permutation, find_permutation


@dataclass(frozen=True)
class SmallTable:
    """It begins at *base*, an address, plus *offset* bytes and *terms*, values with their factors, which are the same
    in all lanes. The sum of *indices*, each without some low bits and times a number, is that of an element for the
    *permutation*; there are *count* that it may be."""

    permutation: Permutation
    base: Value
    terms: tuple[tuple[Value, int], ...]
    offset: int
    indices: tuple[tuple[Value, int, int], ...]
    count: int

    @property
    def values(self) -> tuple[Value, ...]:
        """What it is computed from."""
        return (self.base, *(value for value, _ in self.terms), *(value for value, _, _ in self.indices))


def find_small_table(load: Instruction, block: Block, shapes: VectorShapes) -> SmallTable | None:
    """The table that lanes look up what *load* loads in, as seen from *block*; ``None`` if they load from elsewhere, or
    the processor has no instructions for as large a one."""
    (pointer,) = load.operands
    size = number_bytes(load.type)
    permutation = find_permutation(size)
    is_plain = not (load.volatile or load.atomic or load.meets_tables) and not is_private_address(pointer)
    if permutation is None or not is_plain or shapes.of(pointer, block) is not VARYING:
        return None
    address = take_apart(pointer, shapes.size_of)
    bases = [value for value, _ in address.terms if isinstance(value.type, ir.PointerType)]
    if len(bases) != 1 or shapes.of(bases[0], block) != 0:
        return None
    varying = [term for term in address.in_order if shapes.of(term[0], block) != 0]
    indices = [_in_elements(value, scale, size) for value, scale in varying]
    most = 0
    for index in indices:
        largest = find_most(index[0]) if index is not None else None
        if index is None or largest is None:
            return None
        most += (largest >> index[1]) * index[2]
    if most >= permutation.most:
        return None
    terms = tuple(term for term in address.in_order if term[0] is not bases[0] and term not in varying)
    steps = tuple(index for index in indices if index is not None)
    return SmallTable(permutation, bases[0], terms, address.offset, steps, most + 1)


def _in_elements(value: Value, scale: int, size: int) -> tuple[Value, int, int] | None:
    """*value* times *scale* bytes as whole elements of *size* bytes: without how many low bits, which are 0, and times
    what; ``None`` if it is not known to be such."""
    zeros = (scale & -scale).bit_length() - 1
    shift = max(size.bit_length() - 1 - zeros, 0)
    return (value, shift, (scale << shift) // size) if scale > 0 and shift <= count_low_zeros(value) else None
