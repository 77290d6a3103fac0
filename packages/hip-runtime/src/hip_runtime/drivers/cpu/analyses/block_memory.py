"""Pointers to a block's own memory: that of its threads, and shared memory."""

from __future__ import annotations

from collections.abc import Mapping

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.ir.model import Instruction, Value

_DERIVING: Mapping[str, slice] = {
    "getelementptr": slice(1), "bitcast": slice(1), "freeze": slice(1), "select": slice(1, None), "phi": slice(None),
}  # fmt: skip
"""Instructions that derive a pointer from others, and which of their operands those are."""


def is_in_block_memory(pointer: Value) -> bool:
    """Whether *pointer* can only be derived from allocas and shared arrays."""
    found = {pointer}
    waiting = [pointer]
    while waiting:
        value = waiting.pop()
        if not isinstance(value, Instruction):
            return False
        if value.opcode == "alloca" or _is_shared(value):
            continue
        if value.opcode not in _DERIVING:
            return False
        sources = [source for source in value.operands[_DERIVING[value.opcode]] if source not in found]
        found.update(sources)
        waiting += sources
    return True


def _is_shared(value: Instruction) -> bool:
    callee = value.callee
    return callee.startswith(spmd.SHARED) or callee == spmd.DYNAMIC_SHARED
