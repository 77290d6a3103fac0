"""Side effects of instructions."""

from __future__ import annotations

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.ir.model import Instruction

DIVISIONS = frozenset({"sdiv", "udiv", "srem", "urem"})
"""Instructions that may trap, so that they must not be run speculatively."""

TELLS_LANES = spmd.WAVE_WIDE | {spmd.LANE}
"""Functions that tell the lanes of a wave apart, or combine what they have."""

_WRITES = frozenset({"store", "atomicrmw", "cmpxchg", "fence"})


def needs_active_lane(instruction: Instruction) -> bool:
    """Whether *instruction* may only be executed for active lanes."""
    return _is_unknown_call(instruction) or instruction.opcode == "load" or instruction.opcode in _WRITES | DIVISIONS


def has_effect(instruction: Instruction) -> bool:
    """Whether *instruction* may write memory, or must not be executed twice."""
    if instruction.opcode == "load":
        return instruction.volatile or instruction.atomic is not None
    return _is_unknown_call(instruction) or instruction.opcode in _WRITES


def _is_unknown_call(instruction: Instruction) -> bool:
    if instruction.opcode != "call":
        return False
    return not (is_arithmetic(instruction.callee) or intrinsics.is_pure(instruction.callee))
