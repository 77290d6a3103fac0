"""Atomic operations that may find nothing to change look first, and lock nothing then.

A locked instruction takes some twenty cycles, and its cache line from the other cores. A compare-and-swap that finds
another number than it expects is no more than a load; and neither is a minimum or a maximum, for which processors have
no instruction but a loop around a compare-and-swap, if memory holds one already. LLVM threads a branch on the result,
as of ``if cas(...) == -1``, into that on what was loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.model import Atomic, Instruction
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I1
from hip_runtime.drivers.cpu.passes.demote_atomics import combine

_IMPROVES: dict[str, tuple[str, Callable[..., ir.Value]]] = {
    "max": (">", ir.IRBuilder.icmp_signed),
    "min": ("<", ir.IRBuilder.icmp_signed),
    "umax": (">", ir.IRBuilder.icmp_unsigned),
    "umin": ("<", ir.IRBuilder.icmp_unsigned),
    "omax": (">", ir.IRBuilder.fcmp_ordered),
    "omin": ("<", ir.IRBuilder.fcmp_ordered),
}
"""How the operand compares with what is in memory if it replaces that."""


def write_checked(builder: ir.IRBuilder, instruction: Instruction, operands: Sequence[ir.Value]) -> ir.Value:
    """Write *instruction*, which may be any, with *operands*, and return its result."""
    if instruction.volatile:
        return write_instruction(builder, instruction, operands)
    if instruction.opcode == "cmpxchg":
        return _exchange(builder, instruction, operands)
    is_relaxed = instruction.atomic is not None and instruction.atomic.orderings == ("monotonic",)
    if instruction.opcode == "atomicrmw" and instruction.operation in _IMPROVES and is_relaxed:
        return _improve(builder, instruction, operands)
    return write_instruction(builder, instruction, operands)


def _exchange(builder: ir.IRBuilder, instruction: Instruction, operands: Sequence[ir.Value]) -> ir.Value:
    """A compare-and-swap, whose ordering where it fails is that of the load."""
    address, expected, _ = operands
    held = _load(builder, instruction, address, expected.type)
    is_expected = builder.icmp_unsigned("==", held, expected)

    def exchange() -> list[ir.Value]:
        pair = write_instruction(builder, instruction, operands)
        return [builder.extract_value(pair, number) for number in range(2)]

    parts = _only_if(builder, is_expected, [held, I1(0)], exchange)
    pair: ir.Value = ir.Constant(instruction.type, ir.Undefined)
    for number, part in enumerate(parts):
        pair = builder.insert_value(pair, part, number)
    return pair


def _improve(builder: ir.IRBuilder, instruction: Instruction, operands: Sequence[ir.Value]) -> ir.Value:
    """A minimum or a maximum. With any other ordering than the weakest it has to write in any case, as others may wait
    for what was written before it."""
    address, value = operands
    held = _load(builder, instruction, address, value.type)
    predicate, compare = _IMPROVES[instruction.operation]

    def improve() -> list[ir.Value]:
        if isinstance(value.type, ir.IntType):
            return [write_instruction(builder, instruction, operands)]
        return [_swap_until_done(builder, instruction, held, operands)]

    (old,) = _only_if(builder, compare(builder, predicate, value, held), [held], improve)
    return old


def _swap_until_done(
    builder: ir.IRBuilder, instruction: Instruction, held: ir.Value, operands: Sequence[ir.Value]
) -> ir.Value:
    """Do *instruction*, for which LLVM has none, on what memory *held* a moment ago; what it found."""
    address, value = operands
    bits = ir.IntType(64 if value.type == ir.DoubleType() else 32)
    start, before = builder.bitcast(held, bits), builder.block
    again, done = builder.append_basic_block("again"), builder.append_basic_block("done")
    builder.branch(again)
    builder.position_at_end(again)
    old = builder.phi(bits, "old")
    found = builder.bitcast(old, value.type)
    new = combine(builder, instruction.operation, found, value)
    pair = builder.cmpxchg(address, old, builder.bitcast(new, bits), "monotonic")
    old.add_incoming(start, before)
    old.add_incoming(builder.extract_value(pair, 0), again)
    builder.cbranch(builder.extract_value(pair, 1), done, again)
    builder.position_at_end(done)
    return found


def _load(builder: ir.IRBuilder, instruction: Instruction, address: ir.Value, kind: ir.Type) -> ir.Value:
    """What is in memory, with the last ordering of *instruction*: that where it fails, if it has one."""
    assert instruction.atomic is not None
    atomic = Atomic(instruction.atomic.orderings[-1:], instruction.atomic.scope)
    load = Instruction(kind, "load", [], atomic=atomic, align=instruction.align)
    return write_instruction(builder, load, [address])


def _only_if(
    builder: ir.IRBuilder, condition: ir.Value, otherwise: Sequence[ir.Value], write: Callable[[], Sequence[ir.Value]]
) -> list[ir.Value]:
    """What *write* returns where *condition* holds, else *otherwise*."""
    before = builder.block
    with builder.if_then(condition):
        found = write()
        block = builder.block
    results = []
    for one, other in zip(found, otherwise, strict=True):
        result = builder.phi(other.type)
        result.add_incoming(other, before)
        result.add_incoming(one, block)
        results.append(result)
    return results
