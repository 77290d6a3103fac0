"""Quotients and remainders of the indices of threads, written so that what follows from them is seen.

LLVM computes ``i % 90`` of an index of 64 bits below 315,000 with 32 bits, and ``i // 90 % 70`` with 16: quicker for
lanes that divide, but most gangs are in one row, and neither are neighbours known to be in one then, nor rows to follow
one another. It does not know either that ``i - i // 90 * 90`` is a remainder, which is not negative, so that it keeps
what Python does for rows and columns that are.
"""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.cfg import order_function
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.known_ranges import KnownRanges, constant
from hip_runtime.drivers.cpu.ir.model import Constant, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I64
from hip_runtime.drivers.cpu.passes.remove_unused import remove_unused
from hip_runtime.drivers.cpu.passes.written_remainders import write_remainder


def write_index_divisions(function: Function) -> bool:
    """Write divisions by numbers of indices, and of what such left, with 64 bits and without a sign, and remainders as
    such. Returns whether there may be any."""
    if not any(_divides_by_number(value) for value in function.instructions()):
        return False
    writer = _Writer()
    for block in order_function(function).blocks:
        block.instructions = [made for value in block.instructions for made in writer.write(value)]
    for value in function.instructions():  # a phi may have what is computed behind it
        value.operands = [writer.replaced.get(operand, operand) for operand in value.operands]
    remove_unused(function)
    return True


def _divides_by_number(value: Instruction) -> bool:
    return value.opcode in DIVISIONS and isinstance(value.operands[1], Constant)


_SUMS = frozenset({"add", "sub", "mul", "shl", "or", "zext", "sext", "freeze", "phi"}) | DIVISIONS
_INDICES = frozenset(name(axis) for axis in spmd.AXES for name in (spmd.thread_idx, intrinsics.global_idx))


class _Writer:
    """*replaced* has what stands for instructions that are left out."""

    def __init__(self) -> None:
        self.replaced: dict[Value, Value] = {}
        self._ranges = KnownRanges()
        self._indices: set[Value] = set()
        self._wide: dict[Value, Value] = {}
        """The number of 64 bits that one of fewer bits is."""

    def write(self, value: Instruction) -> list[Instruction]:
        """What *value* becomes."""
        value.operands = [self.replaced.get(operand, operand) for operand in value.operands]
        if value.callee in _INDICES or (value.opcode in _SUMS and not self._indices.isdisjoint(value.operands)):
            self._indices.add(value)
        if value.opcode == "phi":
            return [value]
        if value.opcode == "call" and len(value.ranges) == 2 and value.ranges[0] < value.ranges[1]:
            self._ranges.learn(value, (value.ranges[0], value.ranges[1] - 1))
            return [value]
        write_remainder(value)
        known = self._ranges.simplify(value)
        if known is not None:
            self.replaced[value] = known
            return []
        if value.type == I64 and value.opcode in DIVISIONS:
            self._drop_sign(value)
        return self._widen(value)

    def _drop_sign(self, division: Instruction) -> None:
        """Have *division*, of an index, be one without a sign, if nothing that it divides is negative."""
        dividend, divisor = division.operands
        is_natural = self._is_natural(dividend, I64.width) and self._is_natural(divisor, I64.width)
        if division.opcode.startswith("s") and dividend in self._indices and is_natural:
            division.opcode, division.flags = f"u{division.opcode[1:]}", ()

    def _is_natural(self, value: Value, bits: int) -> bool:
        """Whether *value* is not negative, and is that as a number of so many *bits*, too."""
        found = self._ranges.of(value)
        return found is not None and found[0] >= 0 and found[1] < 1 << bits - 1

    def _widen(self, value: Instruction) -> list[Instruction]:
        """*value*, or the same with 64 bits and then that."""
        operand = value.operands[0] if value.operands else value
        whole = self._wide.get(operand, operand)
        if whole.type != I64 or (operand not in self._wide and operand not in self._indices):
            return [value]
        if not isinstance(value.type, ir.IntType) or value.type.width > I64.width:
            return [value]
        if value.opcode == "trunc":
            if "nuw" in value.flags or self._is_natural(whole, value.type.width):
                self._wide[value] = whole
        elif value.opcode == "zext" or (value.opcode == "sext" and self._is_natural(whole, operand.type.width)):
            self._wide[value] = whole
            if value.type == I64:
                self.replaced[value] = whole
                return []
        elif value.opcode in DIVISIONS and value.type != I64:
            return self._divide(value, whole)
        return [value]

    def _divide(self, division: Instruction, dividend: Value) -> list[Instruction]:
        """*division*, or that of *dividend*, which is the same with 64 bits, and its lower bits, if nothing is
        negative."""
        divisor = division.operands[1]
        by: Value | None = self._wide.get(divisor)
        if isinstance(divisor, Constant) and divisor.number is not None:
            by = constant(I64, divisor.number)
        bits = division.type.width
        is_natural = self._is_natural(dividend, bits) and (signed_number(divisor) or 0) > 0
        is_signed = division.opcode.startswith("s")
        if by is None or (is_signed and not is_natural):
            return [division]
        name = f"{division.name}.wide"
        made = Instruction(I64, f"u{division.opcode[1:]}", [dividend, by], name, location=division.location)
        self._wide[division] = made
        self._indices.add(made)
        self._ranges.decide(made)
        if is_signed:  # without a sign it stays narrow for comparisons, which take less time so
            division.opcode, division.operands, division.flags = "trunc", [made], ("nuw",)
        return [made, division]
