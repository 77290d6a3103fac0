"""Addresses at indices that neighbours share, as of ``pixels[i // 2]``: from lane to lane such an index stays or grows
by one, so that the elements of all lanes are a few neighbours in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.integer_division import grows_without_sign
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.type_sizes import number_bytes
from hip_runtime.drivers.cpu.analyses.varying_addresses import VaryingAddress, find_varying_address
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.object_code.permutations import find_permutation

_MOST_DIVISOR = 32
"""Of larger ones, gangs mostly have one quotient, which `coherent_values` has versions for."""


@dataclass(frozen=True)
class DividedAddress:
    """What lanes have in common of *address*, and elements whose number is that of *quotient*, converted by
    *conversions* one after another. It divides a number that grows by *stride* from lane to lane by *divisor*;
    *is_aligned* if the first lane's is a multiple."""

    address: VaryingAddress
    quotient: Instruction
    conversions: tuple[Instruction, ...]
    stride: int
    divisor: int
    is_aligned: bool

    @property
    def dividend(self) -> Value:
        """The number that is divided."""
        return self.quotient.operands[0]

    @property
    def values(self) -> tuple[Value, ...]:
        """What it is computed from."""
        return (*self.address.common, self.dividend)

    def most_steps(self, lanes: int) -> int:
        """By how many elements the last one of so many *lanes* is at most beyond the first one."""
        rest = 0 if self.is_aligned else self.divisor - 1
        return (rest + self.stride * (lanes - 1)) // self.divisor


def find_divided_address(load: Instruction, block: Block, shapes: VectorShapes) -> DividedAddress | None:
    """The address that lanes *load* from, as seen from *block*, if it is such a one and can be loaded as such."""
    address = find_varying_address(load, block, shapes)
    if address is None or len(address.varying) != 1:
        return None
    ((index, size),) = address.varying
    if size != number_bytes(load.type):
        return None
    quotient, conversions = _peel(index)
    divisor = _divisor_of(quotient)
    if quotient is None or divisor is None or shapes.leaves_masked_loop(quotient, block):
        return None
    dividend = quotient.operands[0]
    stride = shapes.of(dividend, block)
    if stride is VARYING or not 0 < stride <= divisor or not _grows(quotient, shapes):
        return None
    reach = shapes.reaches_over(dividend, stride)
    is_aligned = quotient.opcode != "udiv" and reach is not None and 1 << reach >= divisor
    found = DividedAddress(address, quotient, conversions, stride, divisor, is_aligned)
    return found if is_aligned or _can_permute(load, found) else None


def _grows(quotient: Instruction, shapes: VectorShapes) -> bool:
    """Whether what *quotient* divides, which is strided, is more in each lane than in the one before."""
    dividend, home = quotient.operands[0], shapes.homes[quotient]
    if quotient.opcode == "ashr":
        return shapes.never_wraps(dividend, home)
    return grows_without_sign(dividend, home, shapes)


def _can_permute(load: Instruction, address: DividedAddress) -> bool:
    """Whether the processor can give lanes elements of *load* in an order that is known when it runs."""
    permutation = find_permutation(number_bytes(load.type))
    return permutation is not None and address.most_steps(permutation.lanes) < permutation.elements


def _peel(index: Value) -> tuple[Instruction | None, tuple[Instruction, ...]]:
    """The quotient that *index* is, and how it is converted, the first conversion first; none if it is another."""
    conversions: list[Instruction] = []
    while isinstance(index, Instruction) and index.opcode in ("sext", "zext"):
        conversions.insert(0, index)
        (index,) = index.operands
    if not isinstance(index, Instruction):
        return None, ()
    keeps_order = index.opcode != "ashr" or all(conversion.opcode == "sext" for conversion in conversions)
    return (index if keeps_order else None), tuple(conversions)


def _divisor_of(quotient: Instruction | None) -> int | None:
    """The constant that *quotient* divides by, from 2 on; ``None`` if it divides by none, or a large one."""
    number = signed_number(quotient.operands[1]) if quotient is not None and quotient.opcode in _DIVISIONS else None
    if quotient is None or number is None or number < 1:
        return None
    divisor = number if quotient.opcode == "udiv" else 1 << min(number, _MOST_DIVISOR)
    return divisor if 2 <= divisor <= _MOST_DIVISOR else None


_DIVISIONS = frozenset({"ashr", "lshr", "udiv"})
