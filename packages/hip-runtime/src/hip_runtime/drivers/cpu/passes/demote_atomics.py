"""Atomic operations on memory that only one thread of the processor works on.

A thread of the processor runs a whole block, so shared memory and private memory are its own: no other core reads or
writes them while it is at the block, and the threads of the block take turns. An atomic operation there is a plain
read, some arithmetic and a plain write, which is many times cheaper than a locked instruction. Its ordering says
nothing either: threads of other blocks see nothing of that memory, so they cannot tell what came before.

The operations stay atomic in the graph: threads that run side by side, as the lanes of a vector, must not race.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1

_DERIVING: Mapping[str, slice] = {
    "getelementptr": slice(1), "bitcast": slice(1), "freeze": slice(1), "select": slice(1, None), "phi": slice(None),
}  # fmt: skip
"""What makes a pointer of others, and which of its operands those are."""


def find_private_atomics(instructions: Iterable[Instruction]) -> frozenset[Instruction]:
    """The atomic modifications and exchanges among *instructions* whose address is proven to be in such memory."""
    return frozenset(
        instruction
        for instruction in instructions
        if instruction.opcode in ("atomicrmw", "cmpxchg")
        and not instruction.volatile
        and (instruction.opcode == "cmpxchg" or instruction.operation in _OPERATIONS)
        and _is_exclusive(instruction.operands[0])
    )


def _is_exclusive(pointer: Value) -> bool:
    """Whether all that *pointer* can come from are allocas and arrays of shared memory."""
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


def write_demoted(builder: ir.IRBuilder, instruction: Instruction, operands: Sequence[ir.Value]) -> ir.Value:
    """Insert what *instruction*, one that `find_private_atomics` found, does, and give its result."""
    address, *values = operands
    old = builder.load(address, name=instruction.name, align=instruction.align or None, typ=values[0].type)
    if instruction.opcode == "atomicrmw":
        new = _OPERATIONS[instruction.operation](builder, old, values[0])
        builder.store(new, address, align=instruction.align or None)
        return old
    expected, wanted = values
    same = builder.icmp_unsigned("==", old, expected)
    builder.store(builder.select(same, wanted, old), address, align=instruction.align or None)
    pair = builder.insert_value(ir.Constant(instruction.type, ir.Undefined), old, 0)
    return builder.insert_value(pair, same, 1)


Operation = Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]


def _better(predicate: str, signed: bool) -> Operation:
    def write(builder: ir.IRBuilder, old: ir.Value, value: ir.Value) -> ir.Value:
        compare = builder.icmp_signed if signed else builder.icmp_unsigned
        return builder.select(compare(predicate, old, value), old, value)

    return write


def _number(name: str) -> Operation:
    """LLVM's intrinsic *name*: one operand where the other is NaN."""

    def write(builder: ir.IRBuilder, old: ir.Value, value: ir.Value) -> ir.Value:
        kind = ir.FunctionType(old.type, [old.type, old.type])
        return builder.call(builder.module.declare_intrinsic(name, [old.type], kind), [old, value])

    return write


def _wrap_up(builder: ir.IRBuilder, old: ir.Value, limit: ir.Value) -> ir.Value:
    """One more, or 0 where it is *limit* or more already."""
    full = builder.icmp_unsigned(">=", old, limit)
    return builder.select(full, old.type(0), builder.add(old, old.type(1)))


def _wrap_down(builder: ir.IRBuilder, old: ir.Value, limit: ir.Value) -> ir.Value:
    """One less, or *limit* where it is 0 or greater than *limit*."""
    empty = builder.icmp_unsigned("==", old, old.type(0))
    over = builder.icmp_unsigned(">", old, limit)
    return builder.select(builder.select(empty, I1(1), over), limit, builder.sub(old, old.type(1)))


_OPERATIONS: Mapping[str, Operation] = {
    "xchg": lambda builder, old, value: value,
    "add": lambda builder, old, value: builder.add(old, value),
    "sub": lambda builder, old, value: builder.sub(old, value),
    "and": lambda builder, old, value: builder.and_(old, value),
    "nand": lambda builder, old, value: builder.not_(builder.and_(old, value)),
    "or": lambda builder, old, value: builder.or_(old, value),
    "xor": lambda builder, old, value: builder.xor(old, value),
    "max": _better(">", True),
    "min": _better("<", True),
    "umax": _better(">", False),
    "umin": _better("<", False),
    "fadd": lambda builder, old, value: builder.fadd(old, value),
    "fsub": lambda builder, old, value: builder.fsub(old, value),
    "fmax": _number("llvm.maxnum"),
    "fmin": _number("llvm.minnum"),
    "uinc_wrap": _wrap_up,
    "udec_wrap": _wrap_down,
}
"""What a thread writes, from what was there and the operand; named as in the LLVM Language Reference."""
