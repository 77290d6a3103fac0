"""Replaces the remainder by which a neighbour's index begins anew at an edge by a ``select``.

On a torus the neighbours of ``x`` are ``(x + 1) % width`` and ``(x - 1 + width) % width``, or ``(x - 1) % width`` in
Python, which rounds down. Where a check such as ``if x < width`` tells that ``x`` is less than the divisor, these are
``x + 1`` or ``x - 1`` but at one edge: there is no need to divide, and gangs of which no lane is at the edge access
neighbours (`analyses.clamps`).
"""

from __future__ import annotations

from dataclasses import dataclass

from hip_runtime.drivers.cpu.analyses.address_terms import take_number_apart
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.conditions import split_condition
from hip_runtime.drivers.cpu.analyses.known_orders import KnownOrder, KnownOrders, is_natural
from hip_runtime.drivers.cpu.analyses.known_ranges import KnownRanges, constant
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I64
from hip_runtime.drivers.cpu.passes.remove_unused import remove_unused

_REMAINDERS = frozenset({"urem", "srem", "and"})
"""Opcodes of remainders; LLVM makes ``and`` of such by a power of two."""

_LARGEST = (1 << 63) - 1


@dataclass(frozen=True)
class _Neighbour:
    """*value* is the index that is *known* to be less than the divisor plus *step*, modulo the divisor."""

    value: Instruction
    known: KnownOrder
    step: int


def replace_wrapped_remainders(function: Function) -> bool:
    """Replace such remainders of *function*, and what follows from that they are not negative; whether there were
    any."""
    if not any(value.opcode in _REMAINDERS for value in function.instructions()):
        return False
    orders = KnownOrders(function)
    replaced: dict[Value, Value] = {}
    places: dict[KnownOrder, None] = {}
    for block in function.blocks:
        found = [neighbour for value in block.instructions if (neighbour := _find(value, block, orders)) is not None]
        for neighbour in found:
            made = _write(neighbour)
            place = block.instructions.index(neighbour.value)
            block.instructions[place : place + 1] = made
            replaced[neighbour.value] = made[-1] if made else neighbour.known.lesser
            places[neighbour.known] = None
    naturals = [*replaced.values()]
    for known in places:
        behind = [value for block in function.blocks if orders.holds(known, block) for value in block.instructions]
        _simplify(behind, replaced, [*naturals, known.lesser], known.greater)
    if replaced:
        for value in function.instructions():
            value.operands = [_last(replaced, operand) for operand in value.operands]
        remove_unused(function)
    return bool(replaced)


def _find(value: Instruction, block: Block, orders: KnownOrders) -> _Neighbour | None:
    """*value* as such a remainder, if it is one and *orders* tell that its index is less than the divisor."""
    remainder = value if value.opcode in _REMAINDERS else _find_corrected(value)
    if remainder is None or value.type != I64:
        return None
    if value.opcode == "and":
        return _find_masked(value, block, orders)
    dividend, divisor = remainder.operands
    for known in orders.below(divisor, block):
        if is_natural(known.lesser):
            steps = take_number_apart(dividend).minus(take_number_apart(known.lesser))
            near, around = steps.number, steps.minus(take_number_apart(divisor)).number
            if near is not None and near in ((0, 1) if value is remainder else (-1,)):
                return _Neighbour(value, known, near)
            if around in (-1, 0, 1) and remainder.opcode == "urem":  # the sum does not exceed 64 bits
                return _Neighbour(value, known, around)
    return None


def _find_masked(value: Instruction, block: Block, orders: KnownOrders) -> _Neighbour | None:
    """*value*, the low bits of a number, as the remainder by the least power of two that has more, if it is such a
    neighbour. It is the remainder of negative numbers, too."""
    dividend, mask = value.operands
    number = signed_number(mask)
    if number is None or number <= 0 or number & (number + 1):
        return None
    divisor = number + 1
    for known in orders.below_number(divisor, block):
        near = take_number_apart(dividend).minus(take_number_apart(known.lesser)).number
        if near is not None and is_natural(known.lesser) and (near + 1) % divisor <= 2:
            return _Neighbour(value, known, (near + 1) % divisor - 1)
    return None


def _find_corrected(value: Instruction) -> Instruction | None:
    """The remainder of which *value* is the one that Python has: plus the divisor if it has the other sign."""
    if value.opcode != "add":
        return None
    for remainder, correction in (value.operands, value.operands[::-1]):
        if isinstance(remainder, Instruction) and remainder.opcode == "srem" and isinstance(correction, Instruction):
            divisor = remainder.operands[1]
            if correction.opcode == "select" and correction.operands[1] is divisor:
                condition, _, otherwise = correction.operands
                if signed_number(otherwise) == 0 and _tells_signs_differ(condition, remainder, divisor):
                    return remainder
    return None


def _tells_signs_differ(condition: Value, remainder: Instruction, divisor: Value) -> bool:
    """Whether *condition* is that *remainder* is not 0 and has another sign than *divisor*."""
    parts = split_condition(condition, expected=True)
    return any(
        _compares(one, "ne", remainder) and _compares_signs(other, remainder, divisor)
        for one, other in ([(parts[0], parts[1]), (parts[1], parts[0])] if parts else [])
    )


def _compares(condition: Value, predicate: str, number: Value) -> bool:
    """Whether *condition* compares *number* with 0."""
    if not isinstance(condition, Instruction) or condition.opcode != "icmp" or condition.predicate != predicate:
        return False
    return condition.operands[0] is number and signed_number(condition.operands[1]) == 0


def _compares_signs(condition: Value, one: Value, other: Value) -> bool:
    """Whether *condition* is that *one* and *other* have different signs."""
    if not isinstance(condition, Instruction):
        return False
    mixed = condition.operands[0]
    if not isinstance(mixed, Instruction) or mixed.opcode != "xor" or not _compares(condition, "slt", mixed):
        return False
    return {*mixed.operands} == {one, other}


def _write(neighbour: _Neighbour) -> list[Instruction]:
    """The instructions that compute *neighbour*, the last of which is it; none if that is its index."""
    index, divisor, value = neighbour.known.lesser, neighbour.known.greater, neighbour.value

    def make(opcode: str, *operands: Value, predicate: str = "", flags: tuple[str, ...] = ()) -> Instruction:
        kind, name = I1 if predicate else I64, f"{value.name}.{opcode}"
        return Instruction(
            kind, opcode, list(operands), name, flags=flags, predicate=predicate, location=value.location
        )  # fmt: skip

    if not neighbour.step:
        return []
    step = make("add", index, constant(I64, neighbour.step), flags=("nsw",))
    if neighbour.step > 0:
        at_edge = make("icmp", step, divisor, predicate="eq")
        return [step, at_edge, make("select", at_edge, constant(I64, 0), step)]
    at_edge = make("icmp", index, constant(I64, 0), predicate="eq")
    number = signed_number(divisor)
    if number is not None:
        return [step, at_edge, make("select", at_edge, constant(I64, number - 1), step)]
    last = make("add", divisor, constant(I64, -1), flags=("nsw",))
    return [step, at_edge, last, make("select", at_edge, last, step)]


def _simplify(
    behind: list[Instruction], replaced: dict[Value, Value], naturals: list[Value], positive: Value
) -> None:  # fmt: skip
    """Add to *replaced* what is decided among the instructions *behind* a check, in order or not, by that *naturals*
    are at least 0 and that a number is *positive*. Python corrects remainders and indices that are negative."""
    ranges = KnownRanges()
    for value in naturals:
        ranges.learn(value, (0, _LARGEST))
    ranges.learn(positive, (1, _LARGEST))
    changed = True
    while changed:
        changed = False
        for value in behind:
            value.operands = [_last(replaced, operand) for operand in value.operands]
            if value.opcode != "phi" and value not in replaced and value not in naturals:
                known = ranges.simplify(value)
                if known is not None:
                    replaced[value] = known
                    changed = True


def _last(replaced: dict[Value, Value], value: Value) -> Value:
    while value in replaced:
        value = replaced[value]
    return value
