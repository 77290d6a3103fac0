"""Pointers to a block's own memory: that of its threads, and shared memory."""

from __future__ import annotations

from collections.abc import Mapping

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.ir.model import Argument, Instruction, Symbol, Value

_DERIVING: Mapping[str, slice] = {
    "getelementptr": slice(1), "bitcast": slice(1), "freeze": slice(1), "select": slice(1, None), "phi": slice(None),
}  # fmt: skip
"""Instructions that derive a pointer from others, and which of their operands those are."""


def is_in_block_memory(pointer: Value) -> bool:
    """Whether *pointer* can only be derived from allocas and shared arrays."""
    return all(map(_is_own, _find_roots(pointer)))


def is_private(pointer: Value) -> bool:
    """Whether *pointer* can only be derived from allocas, which no other thread accesses."""
    return all(isinstance(root, Instruction) and root.opcode == "alloca" for root in _find_roots(pointer))


def is_kernel_memory(pointer: Value, kernel_arguments: int) -> bool:
    """Whether *pointer* can only be derived from the first *kernel_arguments* arguments, behind the work item, and from
    symbols."""
    return all(
        isinstance(root, Symbol) or (isinstance(root, Argument) and 0 < root.index < kernel_arguments)
        for root in _find_roots(pointer)
    )


def may_overlap(first: Value, second: Value) -> bool:
    """Whether two pointers may be to the same memory: not if they can only be derived from different allocas and shared
    arrays, or one of them from these alone and the other from arguments alone."""
    return any(_may_be_same(one, other) for one in _find_roots(first) for other in _find_roots(second))


def _may_be_same(one: Value, other: Value) -> bool:
    if _is_own(one) and _is_own(other):
        return one is other or (_callee(one) == _callee(other) != "")
    return not (_is_own(one) and isinstance(other, Argument)) and not (_is_own(other) and isinstance(one, Argument))


def _is_own(root: Value) -> bool:
    return isinstance(root, Instruction) and (root.opcode == "alloca" or _is_shared(root))


def _callee(root: Value) -> str:
    return root.callee if isinstance(root, Instruction) else ""


def _find_roots(pointer: Value) -> set[Value]:
    """What *pointer* is derived from."""
    found, roots = {pointer}, set()
    waiting = [pointer]
    while waiting:
        value = waiting.pop()
        if not isinstance(value, Instruction) or value.opcode not in _DERIVING:
            roots.add(value)
            continue
        sources = [source for source in value.operands[_DERIVING[value.opcode]] if source not in found]
        found.update(sources)
        waiting += sources
    return roots


def _is_shared(value: Instruction) -> bool:
    callee = value.callee
    return callee.startswith(spmd.SHARED) or callee == spmd.DYNAMIC_SHARED
