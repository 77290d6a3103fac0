"""How values get from one region to another: they are rematerialized, or saved once for the block or for each
thread."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.ir.keywords import CASTS
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.regions.formation import RegionGraph, block_uses


class Transfer(Enum):
    """How a value gets from one region to another."""

    REMATERIALIZE = "computed again where it is needed"
    CONTEXT_SCALAR = "saved once for the block"
    CONTEXT_ARRAY = "saved for each thread"


_REMATERIALIZABLE = CASTS | frozenset("add sub mul shl lshr ashr and or xor icmp select getelementptr alloca".split())
_REMATERIALIZABLE_CALLS = ("llvm.smax.", "llvm.smin.", "llvm.umax.", "llvm.umin.", "llvm.abs.")
_MAX_COST = 12
"""The most instructions that a value is rematerialized by. Loads from a context array cost a few each, and LLVM knows
how a computed address depends on the thread, but not how a loaded one does."""


class Rematerialization:
    """Which values can be rematerialized from the arguments, constants and intrinsics that every region has."""

    def __init__(self) -> None:
        self._costs: dict[Instruction, int] = {}

    def cost(self, value: Value) -> int:
        """The number of instructions that rematerializing takes; more than `_MAX_COST` if it cannot be done."""
        if not isinstance(value, Instruction):
            return 0
        known = self._costs.get(value)
        if known is None:
            self._costs[value] = _MAX_COST + 1  # for values that depend on themselves
            known = self._costs[value] = self._compute(value)
        return known

    def _compute(self, value: Instruction) -> int:
        if value.opcode == "alloca":
            return 0
        if value.opcode == "call":
            if intrinsics.is_pure(value.callee):
                return 1
            if not value.callee.startswith(_REMATERIALIZABLE_CALLS):
                return _MAX_COST + 1
        elif value.opcode not in _REMATERIALIZABLE:
            return _MAX_COST + 1
        return min(1 + sum(self.cost(operand) for operand in value.operands), _MAX_COST + 1)

    def is_cheap(self, value: Instruction) -> bool:
        """Whether *value* is rematerialized instead of being saved."""
        return self.cost(value) <= _MAX_COST


def plan_transfers(graph: RegionGraph) -> dict[Instruction, Transfer]:
    """The decision for each value that is live into a region."""
    rematerialization = Rematerialization()
    scheduled = graph.wave_scheduled
    varying = _used_varying(graph)
    decide: Callable[[Instruction], Transfer] = lambda value: (  # noqa: E731
        Transfer.REMATERIALIZE if rematerialization.is_cheap(value)
        else Transfer.CONTEXT_ARRAY if scheduled or value in varying
        else Transfer.CONTEXT_SCALAR
    )  # fmt: skip
    return {value: decide(value) for region in graph.regions for value in region.live}


def _used_varying(graph: RegionGraph) -> set[Instruction]:
    """The values that vary as seen from a block that uses them."""
    varying = set(graph.uniformity.varying)
    for block in graph.order.blocks:
        varying.update(value for value in block_uses(block) if graph.uniformity.varies(value, block))
    return varying
