"""Divisions of consecutive numbers by one number, whose quotient is nearly always the same in all lanes of a gang.

Kernels find the row and the column of a thread by them: ``i // width`` and ``i % width``. Where no lane reaches the
next row, the row is uniform and the columns are consecutive.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.keywords import BINARY, CASTS
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1

REPEATED = (BINARY | CASTS | {"icmp", "select", "freeze"}) - DIVISIONS
"""Instructions that may be executed once more, and where they were not to be."""

_ROOM = 2
"""Gangs that a row has room for, from which on most of them are in one."""

_TYPES = (ir.IntType(32), ir.IntType(64))


@dataclass(frozen=True)
class CoherentDivision:
    """A quotient or a remainder of a dividend that grows by *stride* from lane to lane."""

    value: Instruction
    stride: int

    @property
    def is_quotient(self) -> bool:
        """Whether it is a quotient."""
        return self.value.opcode in ("sdiv", "udiv")


def find_coherent_divisions(block: Block, shapes: VectorShapes, width: int) -> list[CoherentDivision]:
    """The divisions of *block* that are coherent in most gangs of *width* lanes; not those that are in all."""
    found = []
    for value in block.instructions:
        if value.opcode in DIVISIONS and value.type in _TYPES and shapes.at_definition(value) is VARYING:
            stride = shapes.of(value.operands[0], block)
            if stride and stride > 0 and shapes.of(value.operands[1], block) == 0:
                divisor = signed_number(value.operands[1])
                if divisor is None or divisor >= _room(block, stride, shapes) * stride * width:
                    found.append(CoherentDivision(value, stride))
    return found


def _room(block: Block, stride: int, shapes: VectorShapes) -> int:
    """How many gangs a row has to have room for: one in a loop, where gangs that reach over its end go on with the next
    one."""
    return 1 if stride == 1 and shapes.order.loops[block] else _ROOM


def find_coherent_width(shapes: VectorShapes, width: int, least: int) -> int | None:
    """The most lanes, fewer than *width* but at least so many, with which divisions by constants are coherent in most
    gangs, if lanes of *width* gather or scatter at what is computed from such; ``None`` if there are none."""
    widths: list[int] = []
    derived: set[Value] = set()
    remainders: dict[Value, int] = {}
    is_apart = False
    for block in shapes.order.blocks:
        for value in block.instructions:
            if value.opcode in ("load", "store"):
                address = value.address
                is_apart |= address in derived and shapes.of(address, block) is VARYING
            elif not derived.isdisjoint(value.operands):
                derived.add(value)
            if value.opcode not in DIVISIONS or value.type not in _TYPES:
                continue
            stride = remainders.get(value.operands[0]) or shapes.of(value.operands[0], block)
            divisor = signed_number(value.operands[1]) if stride and stride > 0 else None
            if stride and value.opcode in ("srem", "urem"):
                remainders[value] = stride
            needed = _room(block, stride, shapes) * stride if stride else 0
            if divisor is not None and needed * least <= divisor < needed * width:
                widths.append(1 << (divisor // needed).bit_length() - 1)
                derived.add(value)
    return min(widths) if is_apart else None


def shifts_lanes(shapes: VectorShapes, width: int) -> bool:
    """Whether consecutive numbers are shifted so that *width* lanes have one result, and more have several."""
    order = shapes.order
    return any(_shifted_lanes(value, block, shapes) == width for block in order.blocks for value in block.instructions)


def _shifted_lanes(value: Instruction, block: Block, shapes: VectorShapes) -> int | None:
    """How many consecutive numbers have one result if *value* shifts such, as to find the number of a wave."""
    if value.opcode not in ("lshr", "ashr") or shapes.of(value.operands[0], block) != 1:
        return None
    bits = signed_number(value.operands[1])
    return 1 << bits if bits is not None and 0 < bits < value.type.width else None


def expected_conditions(block: Block, shapes: VectorShapes, divisions: list[CoherentDivision]) -> dict[Value, bool]:
    """Uniform conditions on which results of *divisions* in *block* are corrected or replaced, with what they are where
    they are not. Python rounds quotients down, and LLVM's instructions round them to 0; by 0 and -1 LLVM divides by
    other means."""
    derived: set[Value] = {found.value for found in divisions}
    remainders = {found.value for found in divisions if not found.is_quotient}
    expected: dict[Value, bool] = {}
    for value in block.instructions:
        if value.opcode not in REPEATED and value.opcode not in DIVISIONS:
            continue
        if not derived.isdisjoint(value.operands):
            derived.add(value)
        if value.opcode == "select":
            condition, taken, otherwise = value.operands
            is_conjunction = value.type == I1 and signed_number(otherwise) == 0
            if shapes.of(condition, block) != 0:
                continue
            if is_conjunction and _tests_remainder(taken, remainders):
                expected[condition] = False
            elif (taken in derived) != (otherwise in derived) and shapes.of(
                otherwise if taken in derived else taken, block
            ) is VARYING:
                expected[condition] = taken in derived
        elif value.opcode == "and" and value.type == I1:
            for condition, other in (value.operands, value.operands[::-1]):
                if shapes.of(condition, block) == 0 and _tests_remainder(other, remainders):
                    expected[condition] = False
    return expected


def _tests_remainder(value: Value, remainders: set[Instruction]) -> bool:
    """Whether *value* tells if a remainder is 0."""
    if not isinstance(value, Instruction) or value.opcode != "icmp" or value.predicate not in ("ne", "eq"):
        return False
    return value.operands[0] in remainders and signed_number(value.operands[1]) == 0
