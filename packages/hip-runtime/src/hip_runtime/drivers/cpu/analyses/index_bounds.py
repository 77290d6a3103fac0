"""Bounds of the global indices of those threads of a kernel that do anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.conditions import mirror, read_order, split_condition
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.ir.model import Argument, Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I64

_UPPER = frozenset({"slt", "sle", "ult", "ule"})
_COMPUTED = frozenset({"add", "sub", "mul", "shl", "zext", "sext"})
_MOST_COMPUTED = 8
_WIDENING = frozenset({"zext", "sext"})


@dataclass(frozen=True)
class IndexBound:
    """Threads that do anything have a global index for which *predicate* holds with *value*, which the arguments of the
    launch and constants give."""

    predicate: str
    value: Value


def find_index_bounds(function: Function, extents: Mapping[str, int | None]) -> dict[str, IndexBound]:
    """A bound for each axis that has one, if all other threads return at once, before they write anything. *extents*
    are those of a block along the axes x, y and z, ``None`` for what only the launch knows."""
    found: dict[str, IndexBound] = {}
    for condition, expected in _entry_checks(function):
        for part in _conjuncts(condition, expected):
            for axis, extent in extents.items():
                bound = _find_bound(part, expected, axis, extent)
                if bound is not None:
                    found.setdefault(axis, bound)
    return found


def _entry_checks(function: Function) -> Iterator[tuple[Value, bool]]:
    """The conditions, and what each has to be, under which a thread does not return at the start of *function*."""
    block: Block | None = function.blocks[0]
    seen: set[Block] = set()
    while block is not None and block not in seen and not any(map(has_effect, block.instructions)):
        seen.add(block)
        end = block.terminator
        block = None
        if end.opcode == "br" and len(end.targets) == 1:
            block = end.targets[0]
        elif end.opcode == "br":
            for number, target in enumerate(end.targets):
                if target.terminator.opcode == "ret" and len(target.instructions) == 1:
                    yield end.operands[0], number == 1
                    block = end.targets[1 - number]


def _conjuncts(condition: Value, expected: bool) -> Iterator[Value]:
    """The conditions that all are *expected* if *condition* is."""
    parts = split_condition(condition, expected)
    if not parts:
        yield condition
    for part in parts:
        yield from _conjuncts(part, expected)


def _find_bound(condition: Value, expected: bool, axis: str, extent: int | None) -> IndexBound | None:
    predicate = read_order(condition, expected)
    if not predicate or not isinstance(condition, Instruction) or condition.operands[0].type != I64:
        return None
    index, bound = condition.operands
    if not _is_index(index, axis, extent):
        index, bound, predicate = bound, index, mirror(predicate)
    if predicate not in _UPPER or not _is_index(index, axis, extent) or not _is_of_launch(bound):
        return None
    return IndexBound(predicate, bound)


def _is_index(value: Value, axis: str, extent: int | None) -> bool:
    """Whether *value* is the 64-bit index of a thread in the grid along *axis*, of blocks of *extent* threads there."""
    if not isinstance(value, Instruction):
        return False
    if value.callee == intrinsics.global_idx(axis):
        return True
    return value.opcode == "add" and any(
        _is_call(_widened(thread), spmd.thread_idx(axis)) and _is_start(_widened(start), axis, extent)
        for thread, start in (value.operands, value.operands[::-1])
    )


def _is_start(value: Value, axis: str, extent: int | None) -> bool:
    """Whether *value* is the index of a block along *axis* times its *extent*."""
    if extent == 1 and _is_call(value, spmd.block_idx(axis)):
        return True
    if not isinstance(value, Instruction) or value.opcode not in ("mul", "shl"):
        return False
    if value.type != I64 and not {"nuw", "nsw"} <= set(value.flags):
        return False
    return any(
        _is_call(_widened(block), spmd.block_idx(axis)) and _is_extent(factor, value.opcode, axis, extent)
        for block, factor in (value.operands, value.operands[::-1])
    )


def _is_extent(value: Value, opcode: str, axis: str, extent: int | None) -> bool:
    if _is_call(_widened(value), spmd.block_dim(axis)):
        return opcode == "mul"
    number = signed_number(value)
    return number is not None and extent is not None and extent == (1 << number if opcode == "shl" else number)


def _is_call(value: Value, name: str) -> bool:
    return isinstance(value, Instruction) and value.callee == name


def _widened(value: Value) -> Value:
    """What *value* is with more bits, if it is that: the indices of threads and blocks are not negative."""
    while isinstance(value, Instruction) and value.opcode in _WIDENING:
        (value,) = value.operands
    return value


def _is_of_launch(value: Value) -> bool:
    """Whether a few integer operations compute *value* from arguments and constants."""
    waiting, count = [value], 0
    while waiting:
        value = waiting.pop()
        if isinstance(value, Instruction):
            count += 1
            if value.opcode not in _COMPUTED or count > _MOST_COMPUTED:
                return False
            waiting += value.operands
        elif not (isinstance(value, Argument) and isinstance(value.type, ir.IntType)) and signed_number(value) is None:
            return False
    return True
