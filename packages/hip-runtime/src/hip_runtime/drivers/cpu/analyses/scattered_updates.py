"""Atomic operations on elements of a small array, such as the bins of a histogram, that a worker may do in a copy.

A CPU thread runs many blocks, one after another. If nobody reads what an operation found, the worker may combine the
operands for each element in a table of its own and do the operations once, at its end: in which order threads of a grid
do atomic operations is up to the device. What a thread accesses after its own operation has to find that done, if it is
the same memory; such accesses are found here, and compare their addresses at run time. No thread may wait for what
another one does: a kernel that looks at memory by other atomic operations, or orders its accesses by fences, has no
tables.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.worker_memory import MOST_TABLES
from hip_runtime.drivers.cpu.analyses.block_memory import is_in_block_memory
from hip_runtime.drivers.cpu.analyses.cfg import order_function
from hip_runtime.drivers.cpu.analyses.chunk_totals import ACCESSES, REDUCIBLE, find_later, is_harmless, looks
from hip_runtime.drivers.cpu.ir.model import Argument, Function, Instruction, Value

_KINDS = (ir.FloatType, ir.DoubleType)


@dataclass(frozen=True)
class UpdatedArray:
    """Elements of one type, from where *argument* points to, that one kind of atomic operation updates."""

    argument: Argument
    update: Instruction
    """One of the operations."""

    def does(self, instruction: Instruction) -> bool:
        """Whether *instruction* is an operation of this kind, which may be done in any order with the others."""
        same = self.update
        return instruction.operation == same.operation != "" and instruction.type == same.type

    def updates(self, instruction: Instruction) -> bool:
        """Whether *instruction* is one of the operations."""
        return self.does(instruction) and find_argument(instruction.operands[0]) is self.argument


@dataclass(frozen=True)
class ScatteredUpdates:
    """What a kernel does to the elements of *arrays* by atomic operations, and its *accesses* to memory after these,
    each with the numbers of those arrays that a thread may have updated before."""

    arrays: Sequence[UpdatedArray]
    updates: Sequence[Instruction]
    accesses: Mapping[Instruction, Collection[int]]


def find_scattered_updates(function: Function) -> ScatteredUpdates | None:
    """The operations of *function* that may be done in tables, if there are any."""
    order = order_function(function)
    used = {operand for value in function.instructions() for operand in value.operands}
    if any(looks(value, value in used) for value in function.instructions()):
        return None
    arrays: list[UpdatedArray] = []
    updates: list[Instruction] = []
    accesses: dict[Instruction, set[int]] = {}
    for block in order.blocks:
        for value in block.instructions:
            argument = _updated_argument(value) if value not in used else None
            if argument is None:
                continue
            number = next((number for number, array in enumerate(arrays) if array.updates(value)), len(arrays))
            if number == len(arrays):
                arrays.append(UpdatedArray(argument, value))
            updates.append(value)
            for other in find_later(value, order):
                if other.opcode in ACCESSES and not is_in_block_memory(other.address):
                    accesses.setdefault(other, set()).add(number)
                elif not is_harmless(other):
                    return None
    if not arrays or len(arrays) > MOST_TABLES:
        return None
    return ScatteredUpdates(arrays, updates, accesses)


def find_argument(pointer: Value) -> Argument | None:
    """The kernel's argument that *pointer* is so many bytes beyond of, if it is one."""
    while isinstance(pointer, Instruction) and pointer.opcode in ("getelementptr", "freeze"):
        pointer = pointer.operands[0]
    return pointer if isinstance(pointer, Argument) and pointer.index > 0 else None


def _updated_argument(value: Instruction) -> Argument | None:
    """The argument that *value* updates an element of, if it is an atomic operation that can be done in a table."""
    if value.opcode != "atomicrmw" or value.operation not in REDUCIBLE or value.total is not None:
        return None
    if value.volatile or value.atomic is None or value.atomic.orderings != ("monotonic",):
        return None
    is_integer = isinstance(value.type, ir.IntType) and value.type.width in (8, 16, 32, 64)
    return find_argument(value.operands[0]) if is_integer or isinstance(value.type, _KINDS) else None
