"""What values that only grow in a loop are when it starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.stride_speculation import match_index_select
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I64

_MOST_STEPS = 8
"""The most instructions that compute what a value is at first."""


def find_decided(shapes: VectorShapes) -> frozenset[Instruction]:
    """Tests whether an index is negative that the start of a loop decides, and what is chosen by them."""
    found: set[Instruction] = set()
    for value, block in shapes.homes.items():
        tests = [operand for operand in value.operands[:1] if isinstance(operand, Instruction)]
        matched = match_index_select(value) if value.opcode == "select" else None
        if matched is not None and find_start(matched[0], shapes.order.loops[block], shapes.homes) is not None:
            found |= {value, *tests}
    return frozenset(found)


def find_start(
    index: Value, loops: Sequence[frozenset[Block]], homes: Mapping[Instruction, Block]
) -> tuple[LoopStarts, Value] | None:
    """What *index* is at first in the innermost of *loops* that computes it, with what is to be written for that;
    ``None`` if it may shrink there, or is a constant at first, from which LLVM knows as much."""
    home = homes.get(index) if isinstance(index, Instruction) else None
    loop = next((one for one in reversed(loops) if home in one), None)
    if loop is None:
        return None
    starts = LoopStarts(loop, homes)
    first = starts.find(index)
    return None if first is None or isinstance(first, Constant) or starts.entry is None else (starts, first)


class LoopStarts:
    """What values that only grow in *loop* are when it starts.

    They are computed without regard to overflow: numbers of 64 bits that wrapped around at first do not get to be
    indices in as many iterations as there can be."""

    def __init__(self, loop: frozenset[Block], homes: Mapping[Instruction, Block]) -> None:
        self._loop = loop
        self._homes = homes
        self.entry: Block | None = None
        """The block from which the loop is entered, which the values are for."""
        self.made: list[Instruction] = []

    def find(self, value: Value) -> Value | None:
        """What *value* is at first; ``None`` if it may shrink."""
        if not isinstance(value, Instruction) or self._homes[value] not in self._loop:
            return value
        if value.opcode == "phi":
            return self._find_counter(value)
        if len(self.made) == _MOST_STEPS or not _keeps_order(value):
            return None
        operands = [found for operand in value.operands if (found := self.find(operand)) is not None]
        if len(operands) < len(value.operands) or (value.opcode == "sub" and operands[1] is not value.operands[1]):
            return None
        opcode = "sext" if value.opcode == "zext" else value.opcode  # of what is not negative, the same
        return self.write(Instruction(value.type, opcode, operands, f"{value.name}.at.first"))

    def _find_counter(self, phi: Instruction) -> Value | None:
        arriving = list(zip(phi.operands, phi.targets, strict=True))
        outside = [(value, source) for value, source in arriving if source not in self._loop]
        if len(outside) != 1 or not all(_is_more(value, phi) for value, source in arriving if source in self._loop):
            return None
        first, self.entry = outside[0]
        return first

    def write(self, value: Instruction) -> Instruction:
        """Have *value* computed before the loop."""
        self.made.append(value)
        return value


def _is_more(value: Value, phi: Instruction) -> bool:
    """Whether *value* is *phi* and a number."""
    if not isinstance(value, Instruction) or value.opcode != "add" or "nsw" not in value.flags:
        return False
    step = signed_number(value.operands[1])
    return value.operands[0] is phi and step is not None and step > 0


def _keeps_order(value: Instruction) -> bool:
    """Whether *value* does not shrink if its operands do not, but for what is subtracted."""
    if value.opcode in ("zext", "sext"):
        return value.opcode == "sext" or "nneg" in value.flags
    if value.opcode not in ("add", "sub", "mul", "shl") or value.type != I64 or "nsw" not in value.flags:
        return False
    factor = signed_number(value.operands[1])
    return value.opcode in ("add", "sub") or (factor is not None and factor > 0)
