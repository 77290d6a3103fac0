"""Operations of a wave where the lanes of a group are the lanes of a wave.

The lanes that run a block together are those of its mask, which are the lanes that are active at an operation: masked
blocks are run in an order in which lanes that parted meet again where their ways join. So a ballot is a mask as a
number, and a shuffle moves elements within a vector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from llvmlite import ir

from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.abi.launch_frame import I1, I32, I64, allocate
from hip_runtime.drivers.cpu.ir.model import Constant, Instruction, Value

if TYPE_CHECKING:
    from hip_runtime.drivers.cpu.vectorize.widen import Widener


def waves_are_gangs(block: Dim3, wave_size: int) -> bool:
    """Whether the lanes of each wave of a block follow one another along x, so that a group of neighbours has them."""
    across, *others = block
    return across % wave_size == 0 or others == [1, 1]


def write_wave_operation(code: Widener, instruction: Instruction) -> ir.Value | None:
    """Write a call of an operation of waves; its result, which is the same for all lanes but for a shuffle."""
    name = instruction.callee
    if name == intrinsics.WAVE_BARRIER:
        return None
    if name == intrinsics.ACTIVE_LANES:
        return _as_number(code, code.mask or code.lanes.all_lanes())
    if name == intrinsics.BALLOT:
        votes = code.vector(instruction.arguments[1])
        if code.mask is not None:
            votes = code.builder.select(code.mask, votes, code.lanes.no_lanes())
        return _as_number(code, votes)
    return _shuffle(code, instruction)


def _as_number(code: Widener, mask: ir.Value) -> ir.Value:
    width = code.lanes.width
    bits = code.builder.bitcast(mask, ir.IntType(width))
    return bits if width == I64.width else code.builder.zext(bits, I64)


def _shuffle(code: Widener, instruction: Instruction) -> ir.Value:
    """The value of another lane, where that is active, else the own."""
    _, value, source = instruction.arguments
    width = code.lanes.width
    given = code.vector(value)
    numbers = find_lane_numbers(source, width)
    if numbers is not None:
        return _shuffle_known(code, given, [n if n < width else lane for lane, n in enumerate(numbers)])
    if code.shapes.of(source, code.block) == 0:
        return _broadcast(code, given, code.scalar(source))
    return _shuffle_unknown(code, given, code.vector(source))


def _shuffle_known(code: Widener, given: ir.Value, numbers: list[int]) -> ir.Value:
    def moved(whole: ir.Value) -> ir.Value:
        order = ir.Constant(ir.VectorType(I32, code.lanes.width), [I32(number) for number in numbers])
        return code.builder.shuffle_vector(whole, ir.Constant(whole.type, ir.Undefined), order)

    if code.mask is None:
        return moved(given)
    return code.builder.select(moved(code.mask), moved(given), given)


def _broadcast(code: Widener, given: ir.Value, source: ir.Value) -> ir.Value:
    """The value of one lane for all."""
    builder, lanes = code.builder, code.lanes
    exists = builder.icmp_unsigned("<", source, I32(lanes.width))
    source = builder.select(exists, source, I32(0))
    if code.mask is not None:
        exists = builder.select(exists, builder.extract_element(code.mask, source), I1(0))
    return builder.select(exists, lanes.splat(builder.extract_element(given, source)), given)


def _shuffle_unknown(code: Widener, given: ir.Value, source: ir.Value) -> ir.Value:
    """Through memory: other elements than those of lanes that are active are not read."""
    builder, lanes = code.builder, code.lanes
    kind = given.type.element
    place = allocate(code.entry, given.type, "shuffled")
    builder.store(given, place)
    exists = builder.icmp_unsigned("<", source, lanes.splat(I32(lanes.width)))
    source = builder.select(exists, source, lanes.numbers(I32, 1))
    places = lanes.element_addresses(place, kind, source)
    found = lanes.gather(kind, places, code.mask, 1)
    if code.mask is None:
        return found
    wide = ir.IntType(max(lanes.width, 32))
    bits = lanes.splat(builder.zext(builder.bitcast(code.mask, ir.IntType(lanes.width)), wide))
    number = source if wide == I32 else builder.zext(source, bits.type)
    active = builder.trunc(builder.lshr(bits, number), code.mask.type)
    return builder.select(builder.select(code.mask, active, lanes.no_lanes()), found, given)


def find_lane_numbers(value: Value, width: int) -> list[int] | None:
    """What *value* is for each of the *width* lanes of a wave, as unsigned numbers, where that follows from the number
    of the lane alone; else ``None``."""
    return _Numbers(width).of(value)


class _Numbers:
    def __init__(self, width: int) -> None:
        self._width = width
        self._known: dict[Value, list[int] | None] = {}

    def of(self, value: Value) -> list[int] | None:
        if value not in self._known:
            self._known[value] = None  # of a value that depends on itself
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, value: Value) -> list[int] | None:
        if isinstance(value, Constant):
            return None if value.number is None else [value.number] * self._width
        if not isinstance(value, Instruction) or not isinstance(value.type, ir.IntType):
            return None
        if value.opcode == "call":
            return list(range(self._width)) if value.callee == "spmd.lane" else None
        if value.opcode not in _RULES and value.opcode != "icmp":
            return None
        operands = [self.of(operand) for operand in value.operands]
        if any(operand is None for operand in operands):
            return None
        bits = getattr(value.operands[0].type, "width", 0)
        rule = _COMPARISONS[value.predicate] if value.opcode == "icmp" else _RULES[value.opcode]
        most = (1 << value.type.width) - 1
        return [rule(bits, *parts) & most for parts in zip(*operands, strict=True)]


def _signed(bits: int, number: int) -> int:
    return number - (1 << bits) if number >> (bits - 1) & 1 else number


Rule = Callable[..., int]

_RULES: dict[str, Rule] = {
    "add": lambda bits, a, b: a + b,
    "sub": lambda bits, a, b: a - b,
    "mul": lambda bits, a, b: a * b,
    "and": lambda bits, a, b: a & b,
    "or": lambda bits, a, b: a | b,
    "xor": lambda bits, a, b: a ^ b,
    "shl": lambda bits, a, b: a << min(b, bits),
    "lshr": lambda bits, a, b: a >> b,
    "zext": lambda bits, a: a,
    "trunc": lambda bits, a: a,
    "sext": lambda bits, a: _signed(bits, a),
    "select": lambda bits, c, a, b: a if c else b,
}
"""What an instruction whose first operand has so many bits gives, as a number of which the low bits count. Where the
flags of an instruction do not hold it may be anything."""

_COMPARISONS: dict[str, Rule] = {
    "eq": lambda bits, a, b: a == b,
    "ne": lambda bits, a, b: a != b,
    "ult": lambda bits, a, b: a < b,
    "ule": lambda bits, a, b: a <= b,
    "ugt": lambda bits, a, b: a > b,
    "uge": lambda bits, a, b: a >= b,
    "slt": lambda bits, a, b: _signed(bits, a) < _signed(bits, b),
    "sle": lambda bits, a, b: _signed(bits, a) <= _signed(bits, b),
    "sgt": lambda bits, a, b: _signed(bits, a) > _signed(bits, b),
    "sge": lambda bits, a, b: _signed(bits, a) >= _signed(bits, b),
}
