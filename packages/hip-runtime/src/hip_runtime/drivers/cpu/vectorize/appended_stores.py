"""Stores at places that an atomic counter gives, as of the chosen elements of an array: those of a gang are neighbours.

``place = hip.atomic.add(count, 0, 1); chosen[place] = x`` counts on by one for each active lane, in the order of the
lanes. So what they store is packed and stored as vectors of neighbours, instead of scattered to an address for each.
AVX-512 has an instruction that packs; AVX2 has one that puts eight words in any order, which a table tells for each
mask of a register's lanes.
"""

from __future__ import annotations

from dataclasses import replace

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.type_sizes import number_bytes
from hip_runtime.drivers.cpu.ir.model import Constant, Instruction, Value
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, I64
from hip_runtime.drivers.cpu.object_code.host_machine import has_mask_registers, packs_lanes, vector_bytes
from hip_runtime.drivers.cpu.vectorize.gang_values import GangValues
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder, mangle, size_in_memory

_LEAST_BYTES = 16
"""The smallest vectors that processors with registers for masks pack; others pack whole registers."""

_WORDS = 8
"""Words of four bytes that AVX2 puts in any order."""


def is_appended(code: GangValues, pointer: Value, kind: ir.Type) -> bool:
    """Whether active lanes that store values of *kind* at *pointer* store to neighbours, one after another, unless a
    place is negative; and the processor packs lanes."""
    nbytes = number_bytes(kind)
    least = _LEAST_BYTES if has_mask_registers() else vector_bytes()
    return code.lanes.width * nbytes >= least and nbytes == _distance(code, pointer) and packs_lanes(nbytes)


def _distance(code: GangValues, value: Value) -> int | None:
    """How much more *value* is in each active lane than in the active one before it, unless a place is negative;
    ``None`` if it is not so, or not known."""
    if code.shapes.of(value, code.block) == 0:
        return 0
    if not isinstance(value, Instruction) or value not in code.shapes.homes:
        return None
    if value in code.places:
        return 1
    if code.shapes.homes[value] is not code.block:
        return None
    if value.opcode in ("sext", "zext"):
        return _distance(code, value.operands[0])
    if value.opcode == "select" and _asks_for_negative(code, value.operands[0]):
        return _distance(code, value.operands[2])
    if value.opcode == "getelementptr" and len(value.operands) == 2 and value.source_type is not None:
        base, index = (_distance(code, operand) for operand in value.operands)
        nbytes = number_bytes(value.source_type)
        return None if base is None or index is None or not nbytes else base + index * nbytes
    return None


def _asks_for_negative(code: GangValues, condition: Value) -> bool:
    """Whether *condition* is that a place is negative."""
    if not isinstance(condition, Instruction) or (condition.opcode, condition.predicate) != ("icmp", "slt"):
        return False
    index, limit = condition.operands
    return isinstance(limit, Constant) and limit.number == 0 and _distance(code, index) == 1


def write_appended(code: GangValues, values: ir.Value, pointer: Value, align: int) -> None:
    """Store *values* at *pointer*, for which `is_appended` holds."""
    builder = code.builder
    used: list[Instruction] = []
    base, pointers = _first(code, pointer, used), code.vector(pointer)
    holds: ir.Value = I1(1)
    for place in used:
        holds = builder.and_(holds, _never_negative(code, place))
    with builder.if_else(holds) as (appended, otherwise):
        with appended:
            _store_packed(code, values, base, min(align, size_in_memory(values.type.element)))
        with otherwise:
            code.lanes.scatter(values, pointers, code.mask, align)


def _first(code: GangValues, value: Value, used: list[Instruction]) -> ir.Value:
    """*value* in the first active lane; the places that it is computed from are added to *used*."""
    if code.shapes.of(value, code.block) == 0:
        return code.scalar(value)
    assert isinstance(value, Instruction)
    if value in code.places:
        used.append(value)
        return code.places[value]
    if value.opcode == "select":
        return _first(code, value.operands[2], used)
    operands = [_first(code, operand, used) for operand in value.operands]
    return write_instruction(code.builder, replace(value, flags=()), operands)


def _never_negative(code: GangValues, place: Instruction) -> ir.Value:
    """Whether *place* is not negative in any lane, and does not wrap."""
    first = code.places[place]
    most = (1 << first.type.width - 1) - 1 - code.lanes.width
    return code.builder.icmp_unsigned("<=", first, ir.Constant(first.type, most))


def _store_packed(code: GangValues, values: ir.Value, base: ir.Value, align: int) -> None:
    """Store the *values* of active lanes one after another from *base* on, a vector register at a time."""
    builder, width, kind = code.builder, code.lanes.width, values.type.element
    if code.mask is None:
        code.lanes.store(values, base, None, align)
        return
    number = ir.IntType(8 * size_in_memory(kind))
    values = builder.bitcast(values, ir.VectorType(number, width))
    part = VectorBuilder(builder, min(width, vector_bytes() * 8 // number.width))
    bits = builder.bitcast(code.mask, ir.IntType(width))
    for begin in range(0, width, part.width):
        taken = part.vector_of(I32, range(begin, begin + part.width))
        some, chosen = part.shuffle(values, taken), builder.lshr(bits, bits.type(begin))
        count = _count(part, chosen)
        if has_mask_registers():
            arguments = [some, part.undefined(some.type), part.shuffle(code.mask, taken)]
            packed = part.call(f"llvm.x86.avx512.mask.compress.{mangle(some.type)}", some.type, arguments)
            part.store(packed, base, _first_lanes(part, count), align)
        else:
            _store_words(part, _pack_words(part, some, chosen), base, (count, _count_all(part, chosen)), align)
        base = builder.gep(base, [count], source_etype=kind)


def _store_words(
    part: VectorBuilder, packed: ir.Value, base: ir.Value, counts: tuple[ir.Value, ir.Value], align: int
) -> None:  # fmt: skip
    """Store the first lanes of *packed*: the first of *counts* is how many, the second how many places are left. If
    there is one for each lane, all are stored, as what follows overwrites the others: AMD's processors take several
    times as long for a store under a mask."""
    builder, (count, left) = part.builder, counts
    with builder.if_else(builder.icmp_unsigned(">=", left, I64(part.width))) as (whole, some):
        with whole:
            part.store(packed, base, None, align)
        with some:
            part.store(packed, base, _first_lanes(part, count), align)


def _pack_words(part: VectorBuilder, values: ir.Value, bits: ir.Value) -> ir.Value:
    """The *values* for whose lanes one of the lowest *bits* is set, followed by others."""
    builder, words = part.builder, ir.VectorType(I32, _WORDS)
    number = builder.and_(bits, bits.type((1 << part.width) - 1))
    if number.type.width != I64.width:
        number = builder.zext(number, I64)
    place = builder.gep(_define_orders(builder.module, part.width), [number], source_etype=I64)
    order = builder.bitcast(builder.load(place, typ=I64, align=8), ir.VectorType(I8, _WORDS))
    arguments = [builder.bitcast(values, words), builder.zext(order, words)]
    return builder.bitcast(part.call("llvm.x86.avx2.permd", words, arguments), values.type)


def _define_orders(module: ir.Module, lanes: int) -> ir.GlobalVariable:
    """The table of orders of words, a byte for each, by the mask of so many *lanes* that are to come first."""
    name = f"orders.of.{lanes}"
    table = module.globals.get(name)
    if table is None:
        table = ir.GlobalVariable(module, ir.ArrayType(I64, 1 << lanes), name)
        table.linkage, table.global_constant = "internal", True
        table.initializer = ir.Constant(table.value_type, [I64(_order(mask, lanes)) for mask in range(1 << lanes)])
    return table


def _order(mask: int, lanes: int) -> int:
    each = _WORDS // lanes
    words = [lane * each + word for lane in range(lanes) if mask >> lane & 1 for word in range(each)]
    return int.from_bytes(bytes(words), "little")


def _count(part: VectorBuilder, bits: ir.Value) -> ir.Value:
    """How many of the lowest *bits* are set, one for each lane of *part*, as 64 bits."""
    if bits.type.width > part.width:
        bits = part.builder.trunc(bits, ir.IntType(part.width))
    return _count_all(part, bits)


def _count_all(part: VectorBuilder, bits: ir.Value) -> ir.Value:
    """How many *bits* are set, as 64 bits."""
    wide = bits if bits.type == I64 else part.builder.zext(bits, I64)
    return part.call("llvm.ctpop.i64", I64, [wide])


def _first_lanes(part: VectorBuilder, count: ir.Value) -> ir.Value:
    """The mask of the first *count* lanes, which may be all; where it has no register, as wide as a register's."""
    if not has_mask_registers():
        number = ir.IntType(8 * vector_bytes() // part.width)
        limit = count if number == I64 else part.builder.trunc(count, number)
        return part.builder.icmp_signed("<", part.step_vector(number, 1), part.splat(limit))
    ones = part.call("llvm.x86.bmi.bzhi.64", I64, [I64(-1), count])
    bits = ir.IntType(part.width)
    return part.builder.bitcast(ones if part.width == I64.width else part.builder.trunc(ones, bits), part.type_of(I1))
