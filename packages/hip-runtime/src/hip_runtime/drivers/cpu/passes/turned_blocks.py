"""Blocks of one row whose threads are counted along y instead of x.

A block for each column, whose threads are its rows, accesses neighbours where blocks are neighbours. Blocks that have
one thread along x can be joined along that axis, and be the lanes of a gang; one thread runs after another, then.
"""

from __future__ import annotations

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.known_ranges import constant
from hip_runtime.drivers.cpu.ir.model import Function, Symbol
from hip_runtime.drivers.cpu.llvmir import I32, PTR


def turn_threads(function: Function) -> None:
    """Have *function*, whose blocks have one thread along y, find the index of a thread along x as that along y."""
    rows = {value for value in function.instructions() if value.callee == spmd.thread_idx("y")}
    for block in function.blocks:
        block.instructions = [value for value in block.instructions if value not in rows]
    for value in function.instructions():
        value.operands = [constant(I32, 0) if operand in rows else operand for operand in value.operands]
    rename_indices(function, spmd.thread_idx("x"), spmd.thread_idx("y"))


def rename_indices(function: Function, name: str, other: str) -> None:
    """Replace calls of the function *name* in *function* by such of *other*."""
    for value in function.instructions():
        if value.callee == name:
            value.operands = [*value.arguments, Symbol(PTR, other)]
