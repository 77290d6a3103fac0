"""Blocks that one lane of a gang can run, and no other: what varies is computed for that lane, as of a single thread.

A vector of which one lane counts takes as long as one of which all do, or longer: a load under a mask waits for the
mask, and an element that is stored from a vector goes through memory if its number is not known.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.demanded_lanes import is_lanewise
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.private_arrays import is_private_address
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I1, I32
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues

_ALONE = DIVISIONS | {"getelementptr", "freeze"}
"""What a single lane computes for itself, other than what is computed lane by lane anyway."""


class SingleLane(GangValues):
    """Values of a gang, and what the only lane that runs a block has of them."""

    _of_lane: dict[Instruction, ir.Value]
    """What was computed in this block, for the only lane that runs it."""

    def begin(self, block: Block, mask: ir.Value | None) -> None:
        """Start another block."""
        super().begin(block, mask)
        self._of_lane = {}

    def of_lane(self, value: Value, lane: int) -> ir.Value:
        """*value* in one lane."""
        if isinstance(value, Instruction) and value in self._of_lane:
            return self._of_lane[value]
        return super().of_lane(value, lane)

    def accessing_lane(self, kind: ir.Type, pointer: Value) -> int | None:
        """The one lane that accesses a number of *kind* at *pointer*, if it is known that no other runs this block.
        Private arrays stay vectors, which LLVM can keep in registers."""
        is_number = kind != I1 and not isinstance(kind, ir.LiteralStructType | ir.ArrayType)
        return self.lane if is_number and not is_private_address(pointer) else None

    def load_alone(self, load: Instruction, lane: int) -> ir.Value:
        """Write *load* for *lane*; a vector in which the other lanes have nothing."""
        place = self.of_lane(load.operands[0], lane)
        return self._only_of(lane, load, self.builder.load(place, typ=load.type, align=load.align or 1))

    def store_alone(self, store: Instruction, lane: int) -> None:
        """Write *store* for *lane*."""
        value, place = (self.of_lane(operand, lane) for operand in store.operands)
        self.builder.store(value, place, align=store.align or 1)

    def compute_alone(self, instruction: Instruction, lane: int) -> ir.Value:
        """Write *instruction*, of which `is_computed_alone` holds, for *lane*; a vector in which the other lanes have
        nothing."""
        operands = [self.of_lane(operand, lane) for operand in instruction.operands]
        return self._only_of(lane, instruction, write_instruction(self.builder, instruction, operands))

    def _only_of(self, lane: int, instruction: Instruction, result: ir.Value) -> ir.Value:
        self._of_lane[instruction] = result
        return self.builder.insert_element(self.lanes.undefined(self.lanes.type_of(result.type)), result, I32(lane))


def is_computed_alone(instruction: Instruction) -> bool:
    """Whether a single lane can compute *instruction*, which varies, without the others."""
    is_one_number = not isinstance(instruction.type, ir.LiteralStructType)
    return is_lanewise(instruction) or (instruction.opcode in _ALONE and is_one_number)
