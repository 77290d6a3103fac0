"""How an instruction grows along an axis, from how its operands do: base + coefficient * position.

LLVM calls this scalar evolution. What the axis is, and where a value may wrap around, is up to who asks:
`vector_shapes` asks for the lanes of a gang, `unit_stride_loops` for the iterations of a loop, and the versions of a
region for bounds for the threads of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.sources import are_all
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Constant, Instruction, Value

Coefficient = int | None
"""By how much a value grows per position; ``None`` if not by a constant."""

AFFINE = frozenset({"add", "sub", "or", "mul", "shl", "zext", "sext", "trunc", "freeze", "getelementptr"})
"""Opcodes whose results are affine if their operands are, and, for products, if one of these is a constant."""

_SAME = frozenset({"zext", "sext", "trunc", "freeze"})
_LONGEST_SHIFT = 63


def coefficient(instruction: Instruction, operands: Sequence[Coefficient], size_of: SizeOf) -> Coefficient:
    """The coefficient of *instruction*, if its operands have those in *operands*, computed without regard to overflow.

    An opcode that is not `AFFINE` gives ``None``, unless all its operands are the same everywhere.
    """
    opcode = instruction.opcode
    if opcode in ("add", "sub", "or") and not (opcode == "or" and "disjoint" not in instruction.flags):
        left, right = operands
        if left is None or right is None:
            return None
        return left - right if opcode == "sub" else left + right
    if opcode in ("mul", "shl"):
        return _product(instruction, operands)
    if opcode in _SAME:
        return operands[0]
    if opcode == "getelementptr":
        return _pointer(instruction, operands, size_of)
    return 0 if all(operand == 0 for operand in operands) else None


def signed_number(value: Value) -> int | None:
    """The number that *value* is, with its sign, if it is an integer constant."""
    if not isinstance(value, Constant) or value.number is None or not isinstance(value.type, ir.IntType):
        return None
    bits = value.type.width
    return value.number - (1 << bits) if value.number >> (bits - 1) & 1 else value.number


def _product(instruction: Instruction, operands: Sequence[Coefficient]) -> Coefficient:
    left, right = instruction.operands
    if instruction.opcode == "mul":
        for factor, other in ((signed_number(right), operands[0]), (signed_number(left), operands[1])):
            if factor is not None and other is not None:
                return factor * other
    else:
        bits = signed_number(right)
        if bits is not None and operands[0] is not None and 0 <= bits < _LONGEST_SHIFT:
            return operands[0] << bits
    return 0 if tuple(operands) == (0, 0) else None


def _pointer(instruction: Instruction, operands: Sequence[Coefficient], size_of: SizeOf) -> Coefficient:
    kind = instruction.source_type
    assert kind is not None
    total = operands[0]
    for number, (index, step) in enumerate(zip(instruction.operands[1:], operands[1:], strict=True)):
        if total is None or step is None:
            return None
        if number and isinstance(kind, ir.ArrayType):
            kind = kind.element
        elif number:
            member = index.number if isinstance(index, Constant) else None
            if step or member is None or not hasattr(kind, "elements"):
                return None if any(operands) else 0
            kind = kind.elements[member]
            continue
        total += step * size_of(kind)
    return total


def is_affine(value: Value, is_index: Callable[[Instruction], bool]) -> bool:
    """Whether *value* is affine in what *is_index* says are indices; its coefficients may be known at run time only."""

    def judge(value: Value) -> bool | list[Value]:
        if is_constant(value, is_index):
            return True
        assert isinstance(value, Instruction)
        return is_index(value) or _affine_operands(value, is_index)

    return are_all(value, judge)


def _affine_operands(value: Instruction, is_index: Callable[[Instruction], bool]) -> list[Value] | bool:
    """The operands of *value* that have to be affine if it is; ``False`` if it is not whatever they are."""
    if value.opcode in ("zext", "sext"):
        (operand,) = value.operands
        widens_index = isinstance(operand, Instruction) and is_index(operand)
        return value.operands if value.opcode == "sext" or widens_index or "nneg" in value.flags else False
    if value.opcode in ("mul", "shl"):
        left, right = value.operands
        if is_constant(right, is_index):
            return [left]
        return [right] if value.opcode == "mul" and is_constant(left, is_index) else False
    adds = value.opcode in ("add", "sub") or (value.opcode == "or" and "disjoint" in value.flags)
    return value.operands if adds else False


def is_constant(value: Value, is_index: Callable[[Instruction], bool]) -> bool:
    """Whether *value* depends on no index."""

    def judge(value: Value) -> bool | list[Value]:
        return not isinstance(value, Instruction) or (not is_index(value) and value.operands)

    return are_all(value, judge)
