"""Integers of 24 bits and the like as such of 32 or 64, which vectors can hold.

LLVM packs what branches choose by a small number, as ``5 if s == 0 else 2 if s == 1 else 3``, into one integer, of
which it shifts out as many bits as the result has.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Function, Instruction, Value

_WIDTHS = (1, 8, 16, 32, 64)
"""Bits of integers that vectors hold."""

_BITWISE = frozenset({"lshr", "and", "or", "xor", "select", "phi"})
"""What has no bits beyond those of an odd width where the operands have none."""

_CONVERSIONS = frozenset({"zext", "trunc"})

_UNSIGNED = frozenset({"eq", "ne", "ult", "ule", "ugt", "uge"})

_UNKNOWN = frozenset({"undef", "poison"})


def widen_odd_integers(function: Function) -> bool:
    """Write the integers of odd widths in *function* with more bits, which are 0; whether there were any. Nothing is
    changed if some are computed otherwise than LLVM does for such choices."""
    blocks = {value: block for block in function.blocks for value in block.instructions}
    found = [value for value in blocks if any(map(_is_odd, [value, *value.operands]))]
    if not found or not all(map(_can_be_wider, found)):
        return False
    widths = {
        value: value.type.width
        for value in [*found, *(operand for one in found for operand in one.operands)]
        if isinstance(value.type, ir.IntType)
    }
    for value in found:
        value.operands = [_widen_constant(operand) for operand in value.operands]
        if value.opcode in ("zext", "trunc"):
            _convert(value, widths, blocks[value])
        elif _is_odd(value):
            value.type = _wider(value.type)
    return True


def _is_odd(value: Value) -> bool:
    kind = value.type
    return isinstance(kind, ir.IntType) and kind.width not in _WIDTHS and kind.width < _WIDTHS[-1]


def _can_be_wider(value: Instruction) -> bool:
    if not all(_is_told(operand) for operand in value.operands if _is_odd(operand)):
        return False
    if value.opcode == "icmp":
        return value.predicate in _UNSIGNED
    if value.opcode in ("shl", "mul", "add"):
        return "nuw" in value.flags
    return value.opcode in _CONVERSIONS | _BITWISE


def _is_told(value: Value) -> bool:
    """Whether *value* is computed, or a number, or any."""
    if isinstance(value, Constant):
        return value.text in _UNKNOWN or signed_number(value) is not None
    return isinstance(value, Instruction)


def _convert(value: Instruction, widths: dict[Value, int], block: Block) -> None:
    """Have *value*, in *block*, which converts integers of *widths*, give those bits of its operand that both have."""
    (source,) = value.operands
    bits = min(widths[source], widths[value])
    kind = value.type = _wider(value.type)
    before, after = _wider(source.type).width, kind.width
    if before < after or (before > after and bits == after):
        value.opcode, value.flags = "zext" if before < after else "trunc", ()
        return
    if before > after:
        cut = Instruction(kind, "trunc", [source], f"{value.name}.cut")
        block.instructions.insert(block.instructions.index(value), cut)
        source = cut
    value.opcode, value.flags = "and", ()
    value.operands = [source, constant(kind, (1 << bits) - 1)]


def _widen_constant(value: Value) -> Value:
    if not isinstance(value, Constant) or not _is_odd(value):
        return value
    return constant(_wider(value.type), (signed_number(value) or 0) % (1 << value.type.width))


def _wider(kind: ir.Type) -> ir.IntType:
    assert isinstance(kind, ir.IntType)
    return ir.IntType(next(width for width in _WIDTHS if width >= kind.width))
