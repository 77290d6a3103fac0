"""Loops in which each thread reads and writes with unit stride, so that LLVM can vectorise them for a single thread."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import coefficient, signed_number
from hip_runtime.drivers.cpu.analyses.effects import needs_active_lane
from hip_runtime.drivers.cpu.analyses.private_arrays import is_private_address
from hip_runtime.drivers.cpu.analyses.reductions import is_reduction
from hip_runtime.drivers.cpu.analyses.stride_speculation import find_index_selects
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value
from hip_runtime.drivers.cpu.object_code.host_machine import has_mask_registers


class UnitStrideLoops:
    """Recognises such loops of one kernel. *size_of* gives the allocation size of a type."""

    def __init__(self, shapes: VectorShapes, size_of: Callable[[ir.Type], int]) -> None:
        self._shapes = shapes
        self._size_of = size_of
        self._choices = find_index_selects(shapes)
        self._steps: dict[Instruction, int | None] = {}

    def has_unit_stride(self, loop: frozenset[Block]) -> bool:
        """Whether each access in *loop* advances by one element per iteration, or is an invariant load, and nothing
        else depends on the order of the iterations."""
        shapes = self._shapes
        if any(shapes.order.loops[block][-1] != loop for block in loop):
            return False
        if sum(target not in loop for block in loop for target in shapes.successors(block)) != 1:
            return False
        branches = sum(self._branches(block, loop) for block in loop)
        if branches > 1 and not (has_mask_registers() and self._leaves_at_end(loop)):
            return False
        return all(self._is_vectorizable(value, loop) for block in loop for value in block.instructions)

    def _branches(self, block: Block, loop: frozenset[Block]) -> bool:
        """Whether iterations of *loop* can go on from *block* in different ways: LLVM makes two loops of one that has a
        branch on what no iteration changes."""
        if len(self._shapes.successors(block)) < 2:
            return False
        condition = block.terminator.operands[0]
        return isinstance(condition, Instruction) and self._shapes.homes.get(condition) in loop

    def _leaves_at_end(self, loop: frozenset[Block]) -> bool:
        """Whether *loop* is left, and gone through again, from one block: then LLVM puts what branches decide in it
        under masks."""
        header = self._shapes.order.header_of(loop)
        successors = self._shapes.successors
        ends = [block for block in loop if header in successors(block)]
        return len(ends) == 1 and any(target not in loop for target in successors(ends[0]))

    def _is_vectorizable(self, value: Instruction, loop: frozenset[Block]) -> bool:
        if value.opcode == "phi" and self._is_header(value, loop):
            return self.step(value, loop) is not None or is_reduction(value, loop, self._shapes)
        if value.opcode not in ("load", "store"):
            return not needs_active_lane(value) or value.opcode in ("sdiv", "udiv", "srem", "urem")
        if value.volatile or value.atomic is not None:
            return False
        step = self.step(value.address, loop)
        if is_private_address(value.address):  # whose elements may be further apart, see `private_arrays`
            return bool(step)
        return step == self._size_of(value.accessed) or (step == 0 and value.opcode == "load")

    def _is_header(self, phi: Instruction, loop: frozenset[Block]) -> bool:
        return any(source not in loop for source in phi.targets)

    def step(self, value: Value, loop: frozenset[Block]) -> int | None:
        """By how much *value* grows per iteration of *loop*; ``None`` if not by a constant."""
        if not isinstance(value, Instruction) or self._shapes.homes.get(value) not in loop:
            return 0
        if value not in self._steps:
            self._steps[value] = None  # for values that depend on themselves
            self._steps[value] = self._find_step(value, loop)
        return self._steps[value]

    def _find_step(self, value: Instruction, loop: frozenset[Block]) -> int | None:
        if value.opcode == "phi":
            return self._step_of_phi(value, loop)
        if value.opcode == "select":
            chosen = self._choices.get(value)
            return None if chosen is None else self.step(chosen, loop)
        if value.opcode == "load":
            return None
        return coefficient(value, [self.step(operand, loop) for operand in value.operands], self._size_of)

    def _step_of_phi(self, phi: Instruction, loop: frozenset[Block]) -> int | None:
        if not self._is_header(phi, loop) or len(phi.operands) != 2:
            return None
        following = next(
            (value for value, source in zip(phi.operands, phi.targets, strict=True) if source in loop), None
        )
        if not isinstance(following, Instruction) or phi not in following.operands:
            return None
        other = next((value for value in following.operands if value is not phi), None)
        number = None if other is None else signed_number(other)
        if number is None:
            return None
        if following.opcode == "getelementptr" and len(following.operands) == 2:
            assert following.source_type is not None
            return number * self._size_of(following.source_type)
        return {"add": number, "sub": -number}.get(following.opcode)
