"""What became of a kernel on the CPU device: its form, and how each instruction was written, by lines of the source.

The kernel is compiled once more, with someone listening to the vectoriser; nothing is loaded or kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from hip_devicelib import spmd
from hip_devicelib.codeobject import CodeObject, Kernel
from hip_runtime import config
from hip_runtime.compile_notice import StageClock, timed
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.analyses.stack_usage import allocated_bytes, private_type
from hip_runtime.drivers.cpu.analyses.type_sizes import measure_types
from hip_runtime.drivers.cpu.finalise import view_kernel
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.drivers.cpu.ir.metadata import MetadataTable
from hip_runtime.drivers.cpu.ir.model import Constant, Function, Instruction, Value
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.printer import Note
from hip_runtime.drivers.cpu.ir.trace import listening as tracing
from hip_runtime.drivers.cpu.ir.types import TypeTable
from hip_runtime.drivers.cpu.isolation import call_isolated
from hip_runtime.drivers.cpu.object_code.host_machine import target_machine
from hip_runtime.drivers.cpu.strategies.plan import Plan

GLOBAL, SHARED, PRIVATE = "global", "shared", "private"
"""Where an address lies: in memory of the device, of a block, or of a thread."""

_VECTOR = re.compile(r"<\d+ x ")
"""What LLVM's vector types begin with."""

PROMOTION = "float32 to float64"
"""The operation that makes a float64 of a float32."""

ARITHMETIC = "arithmetic"
"""The operation of instructions that only compute."""


_SAID = {"": "compare and swap", "omax": "max", "omin": "min"}
"""What is said of operations, if not their names."""


@dataclass(frozen=True)
class WrittenInstruction:
    """An instruction of the kernel, and how it was written."""

    location: str
    """``file:line``, as far as it is known."""
    operation: str
    """``load``, ``store``, ``branch``, `ARITHMETIC`, the name of an atomic operation or of the called function."""
    form: str
    """One of the forms of `ir.remarks`."""
    element: str = ""
    """LLVM's type of what is loaded or stored."""
    memory: str = ""
    """Of what accesses memory: `GLOBAL`, `SHARED` or `PRIVATE`."""
    masked: bool = False
    depth: int = 0
    """In how many loops it is."""
    stride: int = 0
    """Elements from one lane to the next, if the form is ``strided``."""


@dataclass(frozen=True)
class PrivateMemory:
    """Private memory of a thread that registers do not hold."""

    location: str
    nbytes: int
    """For each thread."""


@dataclass(frozen=True)
class CpuExplanation:
    """What became of a kernel for one block shape."""

    form: str
    reason: str
    lanes: int
    """Threads that run as lanes of a gang; 1 if none do."""
    along: str
    """The axis of the block along which neighbours are lanes."""
    instructions: tuple[WrittenInstruction, ...]
    private: tuple[PrivateMemory, ...] = ()
    heap_bytes: int = 0
    """Storage of a block's threads that the stack has no room for."""
    vectorized: frozenset[str] = frozenset()
    """The lines, as ``file:line``, for which the machine code has vectors, whoever made them."""
    stages: dict[str, float] = field(default_factory=dict)
    """Seconds of each stage of compilation."""


def explain_kernel(code: CodeObject, kernel: Kernel, block: Dim3, form: str = "", lanes: str = "") -> CpuExplanation:
    """What `finalise_kernel` makes of *kernel* for blocks of the shape *block*; with *form* and *lanes*, if these were
    set in `config.cpu_form` and `config.cpu_lanes`. Locations are known if *code* has debug information.

    Raises `UnsupportedError` if no strategy can run it, or not in this form.
    """
    with (
        config.dump.scope(frozenset()),
        config.cpu_form.scope(form or config.cpu_form()),
        config.cpu_lanes.scope(lanes or config.cpu_lanes()),
    ):
        return call_isolated(_explain, code, kernel, block)


def _explain(code: CodeObject, kernel: Kernel, block: Dim3) -> CpuExplanation:
    listener = _Listener()
    clock = StageClock()
    with timed(clock), remarks.listening(listener), tracing(listener.read):
        found = view_kernel(code, kernel, block, listener.explain)
    return replace(found, stages=dict(clock.seconds))


def find_private_memory(module: Any) -> tuple[PrivateMemory, ...]:
    """Private memory of all functions of *module*, which can be for any target."""
    printed, layout = PrintedModule(module), llvm.create_target_data(module.data_layout)
    types, metadata = TypeTable(ir.Context()), MetadataTable(printed.metadata)
    found = []
    for text in (text for name in printed.functions for text in printed.instructions(name) if " = alloca " in text):
        _, _, number = text.rpartition(", !dbg !")
        location = metadata.location(number.partition(",")[0].strip()) if number.isdigit() else ""
        found.append(PrivateMemory(location, allocated_bytes(text, types, layout)))
    return tuple(found)


def _find_vectorized(module: Any) -> frozenset[str]:
    """The lines of the source, as ``file:line``, for which the optimised *module* has vector instructions."""
    return _find_lines(module, lambda text: _VECTOR.search(text) is not None)


def _find_lines(module: Any, wanted: Callable[[str], bool]) -> frozenset[str]:
    printed = PrintedModule(module)
    metadata = MetadataTable(printed.metadata)
    found = set()
    for name in printed.functions:
        for text in printed.instructions(name):
            what, located, number = text.rpartition(", !dbg !")
            if located and wanted(what):
                found.add(metadata.location(number.partition(",")[0].strip()))
    return frozenset(found)


@dataclass
class _Gang:
    """What was said of a gang function; instructions of the versions for whole and for partial gangs."""

    width: int
    rows: int
    whole: dict[Instruction, WrittenInstruction] = field(default_factory=dict)
    partial: dict[Instruction, WrittenInstruction] = field(default_factory=dict)


class _Listener:
    """Collects remarks."""

    def __init__(self) -> None:
        self.gangs: dict[str, _Gang] = {}
        self.private: list[PrivateMemory] = []
        self.heap_bytes = 0
        self._threads: dict[Instruction, WrittenInstruction] = {}

    def read(self, stage: str, function: Function, note: Note | None) -> None:
        """Note the private memory of the graph that was read last."""
        if stage != "freeze_loads":
            return
        self._threads.clear()
        self.heap_bytes = 0
        size_of = measure_types(target_machine().target_data, ir.Context())
        self.private = [
            PrivateMemory(value.location, size_of(private_type(value)))
            for value in function.instructions()
            if value.opcode == "alloca" and isinstance(value.operands[0], Constant)
        ]

    def began(self, function: str, width: int, rows: int) -> None:
        """Forget what was said of an earlier attempt."""
        self.gangs[function] = _Gang(width, rows)

    def wrote(
        self, function: str, partial: bool, instruction: Instruction, form: str, masked: bool, depth: int, stride: int
    ) -> None:  # fmt: skip
        """Note an instruction."""
        described = _describe(instruction, form, masked, depth, stride)
        if not function:
            self._threads[instruction] = described
        elif function in self.gangs:  # not a vector variant, which a gang calls
            gang = self.gangs[function]
            (gang.partial if partial else gang.whole)[instruction] = described

    def placed(self, name: str, nbytes: int, on_heap: bool) -> None:
        """Note storage on the heap."""
        self.heap_bytes += nbytes * on_heap

    def explain(self, plan: Plan, module: Any) -> CpuExplanation:
        """All of it, for the *plan* that was chosen and its optimised *module*."""
        gangs = [gang for name, gang in self.gangs.items() if name in plan.worker.globals]
        return CpuExplanation(
            plan.form, plan.reason, max((gang.width * gang.rows for gang in gangs), default=1),
            plan.item.order.along, tuple(self._instructions(gangs)), tuple(self.private), self.heap_bytes,
            _find_vectorized(module),
        )  # fmt: skip

    def _instructions(self, gangs: list[_Gang]) -> Iterator[WrittenInstruction]:
        """The instructions of *gangs*, of the versions for whole gangs if there are any, and of single threads."""
        for gang in gangs:
            yield from (gang.whole or gang.partial).values()
        yield from self._threads.values()


def _describe(instruction: Instruction, form: str, masked: bool, depth: int, stride: int) -> WrittenInstruction:
    opcode = instruction.opcode
    if opcode in ("load", "store"):
        accessed, memory = instruction.accessed, _memory_of(instruction.address)
        return WrittenInstruction(instruction.location, opcode, form, str(accessed), memory, masked, depth, stride)
    if opcode in ("atomicrmw", "cmpxchg"):
        operation = f"atomic {_SAID.get(instruction.operation, instruction.operation)}"
        memory = _memory_of(instruction.operands[0])
        kind = str(instruction.operands[1].type)
        return WrittenInstruction(instruction.location, operation, form, kind, memory, masked, depth)
    if opcode == "fpext" and instruction.type == ir.DoubleType() and instruction.operands[0].type == ir.FloatType():
        return WrittenInstruction(instruction.location, PROMOTION, form, masked=masked, depth=depth)
    named = {"call": instruction.callee, "br": "branch", "switch": "branch"}
    return WrittenInstruction(
        instruction.location, named.get(opcode, "") or ARITHMETIC, form, masked=masked, depth=depth
    )


def _memory_of(address: Value) -> str:
    """Where *address* lies, as far as its computation shows."""
    seen: set[Value] = set()
    waiting = [address]
    while waiting:
        value = waiting.pop()
        if value in seen or not isinstance(value, Instruction):
            continue
        seen.add(value)
        if value.opcode == "alloca":
            return PRIVATE
        if value.opcode == "call" and (value.callee.startswith(spmd.SHARED) or value.callee == spmd.DYNAMIC_SHARED):
            return SHARED
        if value.opcode in ("getelementptr", "bitcast", "freeze", "phi", "select", "addrspacecast"):
            waiting += [operand for operand in value.operands if isinstance(operand.type, ir.PointerType)]
    return GLOBAL
