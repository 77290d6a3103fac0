"""Demotes atomic operations on a block's own memory to plain loads, arithmetic and stores.

One CPU thread runs a whole block, so no other core accesses the block's shared and private memory meanwhile, and the
threads of the block run one at a time. A plain read-modify-write is many times cheaper than a locked instruction. The
ordering does not matter, either: threads of other blocks cannot see that memory.

In the graph the operations stay atomic, so that they are scalarized when threads run as lanes of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.block_memory import is_in_block_memory
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.llvmir import I1


def find_private_atomics(instructions: Iterable[Instruction]) -> frozenset[Instruction]:
    """The atomic updates among *instructions* whose address is proven to be in the block's own memory."""
    return frozenset(
        instruction
        for instruction in instructions
        if instruction.opcode in ("atomicrmw", "cmpxchg")
        and not instruction.volatile
        and (instruction.opcode == "cmpxchg" or instruction.operation in _OPERATIONS)
        and is_in_block_memory(instruction.operands[0])
    )


def write_demoted(builder: ir.IRBuilder, instruction: Instruction, operands: Sequence[ir.Value]) -> ir.Value:
    """Write the plain equivalent of *instruction*, one that `find_private_atomics` found, and return its result."""
    address, *values = operands
    old = builder.load(address, name=instruction.name, align=instruction.align or None, typ=values[0].type)
    if instruction.opcode == "atomicrmw":
        new = combine(builder, instruction.operation, old, values[0])
        builder.store(new, address, align=instruction.align or None)
        return old
    expected, desired = values
    same = builder.icmp_unsigned("==", old, expected)
    builder.store(builder.select(same, desired, old), address, align=instruction.align or None)
    pair = builder.insert_value(ir.Constant(instruction.type, ir.Undefined), old, 0)
    return builder.insert_value(pair, same, 1)


def combine(builder: ir.IRBuilder, operation: str, old: ir.Value, value: ir.Value) -> ir.Value:
    """What *operation*, one of an ``atomicrmw``, makes of *old* and its operand *value*."""
    return _OPERATIONS[operation](builder, old, value)


Operation = Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]


def _select_if(predicate: str, signed: bool) -> Operation:
    def write(builder: ir.IRBuilder, old: ir.Value, value: ir.Value) -> ir.Value:
        compare = builder.icmp_signed if signed else builder.icmp_unsigned
        return builder.select(compare(predicate, old, value), old, value)

    return write


def _select_if_ordered(predicate: str) -> Operation:
    """The operand where that compares so with what is there, which never holds if either is NaN."""

    def write(builder: ir.IRBuilder, old: ir.Value, value: ir.Value) -> ir.Value:
        return builder.select(builder.fcmp_ordered(predicate, value, old), value, old)

    return write


def _number(name: str) -> Operation:
    """LLVM's intrinsic *name*, which returns the other operand if one is NaN."""

    def write(builder: ir.IRBuilder, old: ir.Value, value: ir.Value) -> ir.Value:
        kind = ir.FunctionType(old.type, [old.type, old.type])
        if isinstance(old.type, ir.VectorType):  # which llvmlite cannot name
            whole = f"{name}.v{old.type.count}{old.type.element.intrinsic_name}"
            function = builder.module.globals.get(whole) or ir.Function(builder.module, kind, whole)
        else:
            function = builder.module.declare_intrinsic(name, [old.type], kind)
        return builder.call(function, [old, value])

    return write


def _wrap_up(builder: ir.IRBuilder, old: ir.Value, limit: ir.Value) -> ir.Value:
    """Increment, wrapping to 0 from *limit* or more."""
    full = builder.icmp_unsigned(">=", old, limit)
    return builder.select(full, old.type(0), builder.add(old, old.type(1)))


def _wrap_down(builder: ir.IRBuilder, old: ir.Value, limit: ir.Value) -> ir.Value:
    """Decrement, wrapping to *limit* from 0 or more than *limit*."""
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
    "max": _select_if(">", True),
    "min": _select_if("<", True),
    "umax": _select_if(">", False),
    "umin": _select_if("<", False),
    "fadd": lambda builder, old, value: builder.fadd(old, value),
    "fsub": lambda builder, old, value: builder.fsub(old, value),
    "fmax": _number("llvm.maxnum"),
    "fmin": _number("llvm.minnum"),
    "omax": _select_if_ordered(">"),
    "omin": _select_if_ordered("<"),
    "uinc_wrap": _wrap_up,
    "udec_wrap": _wrap_down,
}
"""The new value, from the old one and the operand; names as in the LLVM Language Reference, and of `float_extremes`."""
