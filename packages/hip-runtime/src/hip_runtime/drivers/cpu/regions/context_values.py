"""What becomes of a value that is needed in another region than its own: it is computed again, or kept once for the
block, or for each thread."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.ir.keywords import CASTS
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.regions.form import RegionGraph, block_uses


class Transfer(Enum):
    """How a value gets from one region to another."""

    REMATERIALIZE = "computed again where it is needed"
    CONTEXT_SCALAR = "kept once"
    CONTEXT_ARRAY = "kept for each thread"


_REPEATABLE = CASTS | frozenset("add sub mul shl lshr ashr and or xor icmp select getelementptr alloca".split())
_REPEATABLE_CALLS = ("llvm.smax.", "llvm.smin.", "llvm.umax.", "llvm.umin.", "llvm.abs.")
_LONGEST = 12
"""Instructions that may be needed to compute a value again. Loads from memory cost a few each, and an address that is
computed is one of which LLVM knows how it depends on the thread."""


class Rematerialization:
    """Which values can be computed again from what a region knows anyway."""

    def __init__(self) -> None:
        self._costs: dict[Instruction, int] = {}

    def cost(self, value: Value) -> int:
        """How many instructions it takes; more than `_LONGEST` where it cannot be done."""
        if not isinstance(value, Instruction):
            return 0
        known = self._costs.get(value)
        if known is None:
            self._costs[value] = _LONGEST + 1  # of a value that depends on itself
            known = self._costs[value] = self._compute(value)
        return known

    def _compute(self, value: Instruction) -> int:
        if value.opcode == "alloca":
            return 0
        if value.opcode == "call":
            if intrinsics.is_pure(value.callee):
                return 1
            if not value.callee.startswith(_REPEATABLE_CALLS):
                return _LONGEST + 1
        elif value.opcode not in _REPEATABLE:
            return _LONGEST + 1
        return min(1 + sum(self.cost(operand) for operand in value.operands), _LONGEST + 1)

    def can_repeat(self, value: Instruction) -> bool:
        """Whether *value* is computed again instead of being kept."""
        return self.cost(value) <= _LONGEST


def plan_transfers(program: RegionGraph) -> dict[Instruction, Transfer]:
    """The decision for each value that some region needs from another."""
    repetition = Rematerialization()
    scheduled = program.wave_scheduled
    varying = _used_varying(program)
    decide: Callable[[Instruction], Transfer] = lambda value: (  # noqa: E731
        Transfer.REMATERIALIZE if repetition.can_repeat(value)
        else Transfer.CONTEXT_ARRAY if scheduled or value in varying
        else Transfer.CONTEXT_SCALAR
    )  # fmt: skip
    return {value: decide(value) for region in program.regions for value in region.live}


def _used_varying(program: RegionGraph) -> set[Instruction]:
    """Values that vary for some block that uses them."""
    varying = set(program.uniformity.varying)
    for block in program.order.blocks:
        varying.update(value for value in block_uses(block) if program.uniformity.varies(value, block))
    return varying
