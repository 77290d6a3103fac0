"""Atomic operations on one number of the launch, such as a counter or a sum of all threads, that may be collected.

A CPU thread runs a chunk of blocks, one after another. If nobody reads what an operation found, and its address is the
same throughout the launch, the chunk's operands may be combined first and the operation done once, at the chunk's end:
in which order threads of a grid do atomic operations is up to the device. But a thread that accesses memory after its
own operation has to find that done, if it is the same memory; so nothing that follows one may access memory that other
blocks see, but other operations that are collected. And no thread may wait for what another one counts: a kernel that
looks at such memory by other atomic operations, or orders its accesses by fences, collects nothing.
"""

from __future__ import annotations

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.abi.worker_memory import MOST_TOTALS
from hip_runtime.drivers.cpu.analyses.block_memory import is_in_block_memory
from hip_runtime.drivers.cpu.analyses.cfg import Order, block_successors, find_following, order_function
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.sources import are_all
from hip_runtime.drivers.cpu.analyses.uniform_atomics import FLOAT_REDUCTIONS, INTEGER_REDUCTIONS
from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.ir.keywords import BINARY, CASTS
from hip_runtime.drivers.cpu.ir.model import Argument, Function, Instruction, Value

_COMPUTING = (BINARY - DIVISIONS) | CASTS | {"getelementptr", "select", "icmp"}
REDUCIBLE = INTEGER_REDUCTIONS.keys() | FLOAT_REDUCTIONS.keys()
ACCESSES = frozenset({"load", "store", "atomicrmw", "cmpxchg", "fence"})


def find_totals(function: Function) -> list[Instruction]:
    """The atomic operations of *function* that may be collected, in an order in which to do them at the end."""
    order = order_function(function)
    used = {operand for value in function.instructions() for operand in value.operands}
    if any(looks(value, value in used) for value in function.instructions()):
        return []
    found = [
        value
        for block in order.blocks
        for value in block.instructions
        if value.opcode == "atomicrmw" and value not in used and _is_collectable(value)
    ][-MOST_TOTALS:]
    while found:
        kept = [update for update in found if _allow(find_later(update, order), update, found)]
        if len(kept) == len(found):
            break
        found = kept
    return found


def looks(value: Instruction, is_used: bool) -> bool:
    """Whether *value* may be for finding out what threads of other blocks have done."""
    if value.opcode == "fence":
        return True
    if value.opcode not in ACCESSES or is_in_block_memory(value.address):
        return False
    if value.opcode == "atomicrmw":
        return is_used or value.volatile
    return value.volatile or value.atomic is not None


def _is_collectable(update: Instruction) -> bool:
    """Whether *update* can be combined with others, and all threads of a launch have the same address."""
    if update.volatile or update.atomic is None or update.atomic.orderings != ("monotonic",):
        return False
    return update.operation in REDUCIBLE and _is_fixed(update.operands[0])


def _is_fixed(value: Value) -> bool:
    """Whether *value* is computed from the kernel's arguments alone."""
    return are_all(value, _judge_fixed)


def _judge_fixed(value: Value) -> bool | list[Value]:
    if isinstance(value, Argument):
        return value.index > 0  # the first one is the work item
    if not isinstance(value, Instruction):
        return True
    if value.opcode == "call":
        return value.callee in intrinsics.EXTENTS
    return value.operands if value.opcode in _COMPUTING else False


def find_later(update: Instruction, order: Order) -> list[Instruction]:
    """What a thread may run after *update*, in no order; *update* is in it if it is in a loop."""
    home = next(block for block in order.blocks if update in block.instructions)
    found = find_following(home, block_successors)
    position = home.instructions.index(update)
    rest = [] if home in found else home.instructions[position + 1 :]
    return rest + [value for block in found for value in block.instructions]


def _allow(following: list[Instruction], update: Instruction, others: list[Instruction]) -> bool:
    """Whether *update* may be done after all of *following*, of which *others* are collected, too."""
    return all(
        is_harmless(value) or (value in others and (value is update or _may_follow(value, update, following)))
        for value in following
    )


def _may_follow(value: Instruction, update: Instruction, following: list[Instruction]) -> bool:
    """Whether *update* may be done before all of what *value* did, though a loop may have run that before: if it does
    not run before, or makes no difference."""
    same = value.operation == update.operation and value.type == update.type
    return same or update not in following


def is_harmless(value: Instruction) -> bool:
    """Whether *value* accesses no memory that other blocks see."""
    if value.opcode in ACCESSES:
        return value.opcode != "fence" and is_in_block_memory(value.address)
    if value.opcode != "call" or value.elementwise is not None:
        return True
    name = value.callee
    computes = is_arithmetic(name) or intrinsics.is_pure(name)
    return computes or name == spmd.FAULT or name in spmd.SYNCHRONISING - {spmd.GRID_BARRIER}
