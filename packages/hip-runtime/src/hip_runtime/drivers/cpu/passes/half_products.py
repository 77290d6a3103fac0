"""Halves of products that have more bits than vectors hold, computed from halves of the factors.

Of ``for j in range(n): total += j`` LLVM makes ``n * (n - 1) / 2``, whose product it computes in 65 bits, and of a sum
of squares a product of three factors. With ``x = 2 * h + r``, where ``r`` is the last bit, half of ``x * y`` is
``h * y`` and, if ``r`` is set, half of ``y``; of the sum, 64 bits are all that the result has.
"""

from __future__ import annotations

from typing import NamedTuple

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I64


class _Wide(NamedTuple):
    """A number of more than 64 bits: the last 64, and the 64 before the last one."""

    low: Value
    half: Value


def halve_products(function: Function) -> bool:
    """Write such halves in *function* as sums of products of 64 bits; whether there were any."""
    found = False
    for block in function.blocks:
        for value in list(block.instructions):
            product = _halved(value)
            if product is not None:
                _Halves(block, value).replace_by(product)
                found = True
    return found


def _halved(value: Instruction) -> Instruction | None:
    """The product, of more than 64 bits, of which *value* is a half."""
    shifted = value.operands[0] if value.opcode == "trunc" and value.type == I64 else None
    if not isinstance(shifted, Instruction) or shifted.opcode != "lshr" or signed_number(shifted.operands[1]) != 1:
        return None
    product = shifted.operands[0]
    if isinstance(product, Instruction) and product.opcode == "mul" and _is_product(product):
        return product
    return None


def _is_product(value: Value) -> bool:
    """Whether *value*, of more than 64 bits, is computed of numbers of 64 by products alone."""
    if not isinstance(value, Instruction):
        return False
    if value.opcode == "zext":
        return bool(value.operands[0].type == I64)
    return value.opcode == "mul" and all(map(_is_product, value.operands))


class _Halves:
    """Computes in *block*, before *value* and for it."""

    def __init__(self, block: Block, value: Instruction) -> None:
        self._block = block
        self._value = value

    def replace_by(self, product: Instruction) -> None:
        """Have the value be half of *product*."""
        one, two = map(self._take, product.operands)
        self._value.opcode, self._value.flags = "add", ()
        self._value.operands = list(self._parts_of_half(one, two))

    def _take(self, value: Value) -> _Wide:
        assert isinstance(value, Instruction)
        if value.opcode == "zext":
            number = value.operands[0]
            return _Wide(number, self._compute("lshr", number, constant(I64, 1)))
        one, two = map(self._take, value.operands)
        return _Wide(self._compute("mul", one.low, two.low), self._compute("add", *self._parts_of_half(one, two)))

    def _parts_of_half(self, one: _Wide, two: _Wide) -> tuple[Value, Value]:
        """What half of the product of *one* and *two* is the sum of."""
        last = self._compute("and", one.low, constant(I64, 1))
        are_all = self._compute("sub", constant(I64, 0), last)
        return self._compute("mul", one.half, two.low), self._compute("and", are_all, two.half)

    def _compute(self, opcode: str, *operands: Value) -> Instruction:
        made = Instruction(I64, opcode, list(operands), f"{self._value.name}.{opcode}")
        self._block.instructions.insert(self._block.instructions.index(self._value), made)
        return made
