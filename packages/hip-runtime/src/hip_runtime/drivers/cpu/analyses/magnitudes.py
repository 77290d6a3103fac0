"""How large numbers can be that a kernel computes from its indices, and whether they are computed from these alone."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi.intrinsics import EXTENTS
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.sources import are_all
from hip_runtime.drivers.cpu.ir.model import Argument, Constant, Instruction, Value

_DEEPEST = 16
"""Instructions that an integer is followed through."""

_INDICES = frozenset(name(axis) for name in (spmd.thread_idx, spmd.block_idx) for axis in spmd.AXES)
_ARITHMETIC = frozenset({"add", "sub", "mul", "shl", "or", "zext", "sext", "freeze"})

_WIDEST = 32
"""Bits of integers whose magnitude is known from their type."""


def find_magnitude(value: Value) -> int | None:
    """A number that the magnitude of the integer *value*, which has a sign, does not exceed; ``None`` if all that is
    known is that it has 64 bits."""
    return _Magnitudes().find(value, _DEEPEST)


class _Magnitudes:
    def __init__(self) -> None:
        self._known: dict[tuple[Value, int], int | None] = {}
        """Those of results, by as many instructions as were followed: sums of sums are met again and again."""

    def find(self, value: Value, depth: int) -> int | None:
        number = signed_number(value)
        if number is not None:
            return abs(number)
        bits = value.type.width
        by_type = 1 << (bits - 1) if bits <= _WIDEST else None
        found = self._of_result(value, depth - 1) if isinstance(value, Instruction) and depth else None
        if found is None or found >= 1 << (bits - 1):  # it may have wrapped around
            return by_type
        return found

    def _of_result(self, value: Instruction, depth: int) -> int | None:
        if (value, depth) not in self._known:
            self._known[value, depth] = self._derive(value, depth)
        return self._known[value, depth]

    def _derive(self, value: Instruction, depth: int) -> int | None:
        if value.ranges:
            pairs = list(zip(value.ranges[::2], value.ranges[1::2], strict=True))
            if any(first >= end for first, end in pairs):  # it wraps around, as of what is not 0
                return None
            return max(max(abs(first), abs(end - 1)) for first, end in pairs)
        if value.opcode == "zext":
            bits = value.operands[0].type.width
            unsigned = (1 << bits) - 1 if bits <= _WIDEST else None
            return self.find(value.operands[0], depth) if "nneg" in value.flags else unsigned
        if value.opcode in ("sext", "freeze"):
            return self.find(value.operands[0], depth)
        if value.opcode in ("sdiv", "srem", "urem"):
            return self._of_division(value, depth)
        if value.opcode not in ("add", "sub", "mul", "shl"):
            return None
        left, right = (self.find(operand, depth) for operand in value.operands)
        if left is None or right is None:
            return None
        if value.opcode == "shl":
            return left << min(right, 64) if signed_number(value.operands[1]) is not None else None
        return left * right if value.opcode == "mul" else left + right

    def _of_division(self, value: Instruction, depth: int) -> int | None:
        """That of a quotient with a sign, or of a remainder, by a number."""
        by = signed_number(value.operands[1]) or 0
        if not by or (value.opcode == "urem" and by < 0):  # without a sign, that is a large number
            return None
        if value.opcode != "sdiv":
            return abs(by) - 1
        dividend = self.find(value.operands[0], depth)
        return None if dividend is None else dividend // abs(by)


def is_positive(value: Value) -> bool:
    """Whether the integer *value* is known to be more than 0."""
    number = signed_number(value)
    if number is not None:
        return number > 0
    if not isinstance(value, Instruction):
        return False
    if value.opcode in ("zext", "sext"):
        return is_positive(value.operands[0])
    return bool(value.ranges) and len(value.ranges) == 2 and 0 < value.ranges[0] < value.ranges[1]


def is_of_launch(value: Value) -> bool:
    """Whether *value* is computed from arguments of the kernel and the shapes of grid and blocks alone: the same in all
    threads."""
    return _computes(value, lambda leaf: isinstance(leaf, Argument) or leaf.callee in EXTENTS)


def computes_from_indices(value: Value) -> bool:
    """Whether *value* is computed from the indices of the thread and its block and what `is_of_launch` alone."""
    return _computes(value, lambda leaf: isinstance(leaf, Argument) or leaf.callee in EXTENTS | _INDICES)


def _computes(value: Value, is_leaf: Callable[[Any], bool]) -> bool:
    def judge(value: Value) -> bool | list[Value]:
        if isinstance(value, Constant) or (isinstance(value, (Argument, Instruction)) and is_leaf(value)):
            return True
        return value.operands if isinstance(value, Instruction) and value.opcode in _ARITHMETIC else False

    return are_all(value, judge)


def float_number(value: Value) -> float | None:
    """The number that *value* is, if it is a constant of type float64."""
    if not isinstance(value, Constant) or not isinstance(value.type, ir.DoubleType):
        return None
    if value.text.startswith("0x"):
        (number,) = struct.unpack(">d", int(value.text, 16).to_bytes(8, "big"))
        return float(number)
    try:
        return float(value.text)
    except ValueError:  # undefined, or an expression
        return None
