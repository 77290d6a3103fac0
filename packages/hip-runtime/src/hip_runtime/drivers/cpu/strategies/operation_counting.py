"""The strategy that counts what the threads of a kernel compute, one thread after another.

Each block of the graph, which was inlined and simplified but not vectorised, adds what it has to counters.
"""

from __future__ import annotations

import ctypes

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.operation_counters import BYTES, FLOAT32, FLOAT64, Counters
from hip_runtime.drivers.cpu.ir.model import Atomic, Block, Constant, Function, Instruction
from hip_runtime.drivers.cpu.llvmir import I64, PTR
from hip_runtime.drivers.cpu.regions.gang_region import GangPlan
from hip_runtime.drivers.cpu.strategies.form_choice import REGIONS
from hip_runtime.drivers.cpu.strategies.kernel_graph import Reading, read_kernel
from hip_runtime.drivers.cpu.strategies.kernel_request import KernelRequest
from hip_runtime.drivers.cpu.strategies.plan import Plan
from hip_runtime.drivers.cpu.strategies.region import write_regions
from hip_runtime.drivers.cpu.vectorize.vector_builder import size_in_memory

REASON = "what its threads compute is counted"
"""The reason for the kernel's form."""

_ARITHMETIC = frozenset({"fadd", "fsub", "fmul", "fdiv", "frem"})
_FUSED = ("llvm.fma.", "llvm.fmuladd.")
_FREE = ("llvm.fabs.", "llvm.copysign.")
"""Intrinsics that only change the sign."""


def plan_counting(request: KernelRequest, counters: Counters) -> Plan:
    """A plan for a kernel that adds to *counters*."""
    graph = read_kernel(request, Reading())
    for block in graph.function.blocks:
        _add_counts(block, counters)
    return write_regions(request, graph, REGIONS, REASON, GangPlan(1))


def _add_counts(block: Block, counters: Counters) -> None:
    counts = [0, 0, 0]
    for instruction in block.instructions:
        _count(instruction, counts)
    for number, count in enumerate(counts):
        if count:
            address = ctypes.addressof(counters) + number * ctypes.sizeof(ctypes.c_uint64)
            place = Constant(PTR, f"inttoptr (i64 {address} to ptr)")
            added = Instruction(
                I64, "atomicrmw", [place, Constant(I64, str(count), count)], f"count.{number}", operation="add",
                atomic=Atomic(("monotonic",)), align=8,
            )  # fmt: skip
            block.instructions.insert(len(block.instructions) - 1, added)


def _count(instruction: Instruction, counts: list[int]) -> None:
    """Add to *counts* what *instruction* does."""
    called = instruction.elementwise
    if called is not None:
        _count_function(called, counts)
        return
    operations = _operations(instruction)
    if operations:
        kind = instruction.type
        lanes = kind.count if isinstance(kind, ir.VectorType) else 1
        element = kind.element if isinstance(kind, ir.VectorType) else kind
        counts[FLOAT64 if isinstance(element, ir.DoubleType) else FLOAT32] += operations * lanes
    if instruction.opcode in ("load", "store"):
        counts[BYTES] += size_in_memory(instruction.accessed)


def _count_function(function: Function, counts: list[int]) -> None:
    for instruction in function.instructions():
        _count(instruction, counts)


def _operations(instruction: Instruction) -> int:
    """How many operations on floats *instruction* is."""
    if instruction.opcode in _ARITHMETIC or instruction.operation in ("fadd", "fsub"):
        return 1
    kind = instruction.type.element if isinstance(instruction.type, ir.VectorType) else instruction.type
    if not isinstance(kind, ir.FloatType | ir.DoubleType | ir.HalfType) or not instruction.callee.startswith("llvm."):
        return 0
    if instruction.callee.startswith(_FUSED):
        return 2
    return 0 if instruction.callee.startswith(_FREE) else 1
