"""Indices of blocks of which each has one thread along an axis, as those of a thread in the grid.

``column = hip.blockIdx.y`` is what ``hip.grid`` gives along y in blocks of 256 x 1 threads. Written as that, blocks can
be joined along the axis, and their threads be the lanes of a gang.
"""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.ir.model import Call, Function, Instruction, Symbol, Value
from hip_runtime.drivers.cpu.llvmir import I32, I64, PTR

_INDEX = ir.FunctionType(I32, [PTR])
_FLAGS = ("nuw", "nsw")


def add_thread_indices(function: Function, axis: str) -> None:
    """Add the index of the thread along *axis* wherever *function* has that of the block, unless it uses that of the
    thread. A block has one thread along the axis, so nothing changes."""
    calls = {value for value in function.instructions() if value.callee == spmd.block_idx(axis)}
    if not calls or any(value.callee == spmd.thread_idx(axis) for value in function.instructions()):
        return
    sums: dict[Value, Value] = {}
    for block in function.blocks:
        written: list[Instruction] = []
        for value in block.instructions:
            written.append(value)
            if value in calls or (value.opcode == "zext" and value.operands[0] in calls and value.type == I64):
                written += (added := _add_thread(function, value, axis))
                sums[value] = added[-1]
        block.instructions = written
    own = set(sums.values())
    for value in function.instructions():
        if value not in own and not (value in sums and value.opcode == "zext"):
            value.operands = [sums.get(operand, operand) for operand in value.operands]


def _add_thread(function: Function, index: Instruction, axis: str) -> list[Instruction]:
    """What adds the index of the thread to *index*, of 32 or 64 bits; the sum comes last."""
    operands = [function.arguments[0], Symbol(PTR, spmd.thread_idx(axis))]
    thread = Instruction(I32, "call", operands, call=Call(_INDEX, argument_attributes=((),)))
    if index.type == I32:
        return [thread, Instruction(I32, "add", [index, thread], flags=_FLAGS)]
    wide = Instruction(I64, "zext", [thread])
    return [thread, wide, Instruction(I64, "add", [index, wide], flags=_FLAGS)]
