"""Tables that are small enough to be in registers: an array, at an index that is known to be small in each lane."""

from __future__ import annotations

from dataclasses import dataclass

from hip_runtime.drivers.cpu.analyses.small_numbers import count_low_zeros, find_most
from hip_runtime.drivers.cpu.analyses.type_sizes import number_bytes
from hip_runtime.drivers.cpu.analyses.varying_addresses import VaryingAddress, find_varying_address
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.object_code.permutations import Permutation, find_permutation


@dataclass(frozen=True)
class SmallTable:
    """It begins at what lanes have in common of *address*. The sum of *indices*, each without some low bits and times a
    number, is that of an element for the *permutation*; there are *count* that it may be."""

    permutation: Permutation
    address: VaryingAddress
    indices: tuple[tuple[Value, int, int], ...]
    count: int

    @property
    def values(self) -> tuple[Value, ...]:
        """What it is computed from."""
        return (*self.address.common, *(value for value, _, _ in self.indices))


def find_small_table(load: Instruction, block: Block, shapes: VectorShapes) -> SmallTable | None:
    """The table that lanes look up what *load* loads in, as seen from *block*; ``None`` if they load from elsewhere, or
    the processor has no instructions for as large a one."""
    size = number_bytes(load.type)
    permutation = find_permutation(size)
    address = find_varying_address(load, block, shapes) if permutation is not None else None
    if permutation is None or address is None:
        return None
    indices = [_in_elements(value, scale, size) for value, scale in address.varying]
    most = 0
    for index in indices:
        largest = find_most(index[0]) if index is not None else None
        if index is None or largest is None:
            return None
        most += (largest >> index[1]) * index[2]
    if most >= permutation.most:
        return None
    return SmallTable(permutation, address, tuple(index for index in indices if index is not None), most + 1)


def _in_elements(value: Value, scale: int, size: int) -> tuple[Value, int, int] | None:
    """*value* times *scale* bytes as whole elements of *size* bytes: without how many low bits, which are 0, and times
    what; ``None`` if it is not known to be such."""
    zeros = (scale & -scale).bit_length() - 1
    shift = max(size.bit_length() - 1 - zeros, 0)
    return (value, shift, (scale << shift) // size) if scale > 0 and shift <= count_low_zeros(value) else None
