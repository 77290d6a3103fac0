"""Matrix instructions, MFMA and WMMA: a product of small matrices whose elements are spread over the wave's registers.

Which register of which lane has an element is taken from AMD's matrix instruction calculator ("Matrix element to
register mapping", https://github.com/ROCm/amd_matrix_instruction_calculator). The lanes take part whatever EXEC says.
Where both halves of a wave have the same elements, on gfx11, odd ones along k are read from the second half, so that
it shows if they differ. Floats are multiplied and added in their accumulator's type, one k after another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from llvmlite import ir

from tools.amd_executor import layout
from tools.amd_executor.decoding import Instruction, UnknownInstruction
from tools.amd_executor.instruction_frame import LONG, WORD, Frame, word
from tools.amd_executor.pseudocode.small_floats import number_table
from tools.amd_executor.pseudocode.values import on_stack

_NAME = re.compile(r"V_(?:MFMA|WMMA)_(F32|F64|I32)_(\d+)X(\d+)X(\d+)_(F16|BF16|F32|F64|I8|IU8|FP8|BF8)(?:_(FP8|BF8))?$")
_BITS = {"F16": 16, "BF16": 16, "F32": 32, "F64": 64, "I32": 32, "I8": 8, "IU8": 8, "FP8": 8, "BF8": 8}
_LLVM = {"F32": ir.FloatType(), "F64": ir.DoubleType(), "I32": WORD}

_UNUSED = {"cdna": ("cbsz", "abid", "blgp"), "rdna": ("neg_hi", "clmp")}
"""Modifiers that have to be 0."""

Place = tuple[ir.Value, ir.Value]
"""The lane that has an element, and which of its elements that is; both i32."""


def is_matrix(instruction: Instruction) -> bool:
    """Whether the instruction multiplies matrices."""
    return instruction.name.startswith(("V_MFMA_", "V_WMMA_"))


@dataclass(frozen=True)
class _Shape:
    """What the name of an instruction tells."""

    family: str
    sums: str
    m: int
    n: int
    k: int
    kinds: tuple[str, str]

    @property
    def groups(self) -> int:
        """How many lanes of a wave have the same row of the first matrix."""
        return (64 if self.family == "cdna" else 32) // self.m


def _shape(instruction: Instruction) -> _Shape:
    match = _NAME.match(instruction.name)
    if not match:
        raise UnknownInstruction(instruction.name)
    sums, *extents, left, right = match.groups()
    m, n, k = map(int, extents)
    for field in _UNUSED["cdna" if instruction.family == "cdna" else "rdna"]:
        if instruction.fields[field]:
            raise UnknownInstruction(f"{instruction.name} with {field}={instruction.fields[field]}")
    if instruction.fields["neg"] and left != "IU8" and instruction.family != "cdna":
        raise UnknownInstruction(f"{instruction.name} with neg={instruction.fields['neg']}")
    return _Shape(instruction.family, sums, m, n, k, (left, right or left))


def build_matrix(frame: Frame) -> None:
    """A matrix instruction."""
    _Product(frame, _shape(frame.instruction)).build()


class _Product:
    """Writes the function of one form."""

    def __init__(self, frame: Frame, shape: _Shape) -> None:
        self.frame, self.builder, self.shape = frame, frame.builder, shape
        self.places = {role: frame.operand_place(role) for role in frame.roles}

    def build(self) -> None:
        builder, shape = self.builder, self.shape
        kind = _LLVM[shape.sums]
        results = on_stack(builder, ir.ArrayType(kind, shape.m * shape.n))
        total = on_stack(builder, kind)
        with self.loop(shape.m) as i, self.loop(shape.n) as j:
            builder.store(self.sum_before(i, j), total)
            with self.loop(shape.k) as k:
                left, right = (self.factor(role, line, k) for role, line in (("s0", i), ("s1", j)))
                builder.store(self.add(builder.load(total, typ=kind), left, right), total)
            builder.store(builder.load(total, typ=kind), self.result(results, i, j))
        with self.loop(shape.m) as i, self.loop(shape.n) as j:
            value = builder.load(self.result(results, i, j), typ=kind)
            lane, index = self.place_of_sum(i, j)
            self.put(value, lane, index)
        self.frame.finish()

    @contextmanager
    def loop(self, count: int) -> Iterator[ir.Value]:
        """A loop over 0 up to *count*; yields the number."""
        builder = self.builder
        before, head = builder.block, builder.append_basic_block("loop")
        builder.branch(head)
        builder.position_at_end(head)
        number = builder.phi(WORD)
        number.add_incoming(word(0), before)
        yield number
        following = builder.add(number, word(1))
        number.add_incoming(following, builder.block)
        after = builder.append_basic_block("after")
        builder.cbranch(builder.icmp_unsigned("<", following, word(count)), head, after)
        builder.position_at_end(after)

    def result(self, results: ir.Value, i: ir.Value, j: ir.Value) -> ir.Value:
        index = self.builder.add(self.builder.mul(i, word(self.shape.n)), j)
        return self.builder.gep(results, [index], source_etype=_LLVM[self.shape.sums])

    # Where elements are.

    def place_of_factor(self, line: ir.Value, k: ir.Value, bits: int) -> Place:
        """Of element *k* of row or column *line*."""
        shape, b = self.shape, self.builder
        if shape.family == "rdna3":
            return b.add(line, b.mul(b.and_(k, word(1)), word(16))), k
        if shape.family == "rdna4" and bits == 16:
            half = b.and_(b.lshr(k, word(2)), word(1))
            return b.add(line, b.mul(half, word(16))), b.add(b.mul(b.lshr(k, word(3)), word(4)), b.and_(k, word(3)))
        count = word(shape.k // shape.groups)
        return b.add(line, b.mul(b.udiv(k, count), word(shape.m))), b.urem(k, count)

    def place_of_sum(self, i: ir.Value, j: ir.Value) -> Place:
        """Of element (*i*, *j*) of the accumulator."""
        shape, b = self.shape, self.builder
        if shape.family == "rdna3":
            return b.add(b.mul(b.and_(i, word(1)), word(16)), j), b.lshr(i, word(1))
        if shape.family == "rdna4":
            return b.add(b.mul(b.lshr(i, word(3)), word(16)), j), b.and_(i, word(7))
        groups = word(shape.groups)
        if shape.sums == "F64":
            return b.add(b.mul(b.urem(i, groups), word(shape.n)), j), b.udiv(i, groups)
        quad = b.udiv(i, word(4))
        index = b.add(b.mul(b.udiv(quad, groups), word(4)), b.urem(i, word(4)))
        return b.add(b.mul(b.urem(quad, groups), word(shape.n)), j), index

    # Elements.

    def register(self, role: str, lane: ir.Value, row: ir.Value) -> ir.Value:
        """The address of a lane's word of the register that comes *row* behind the operand's first."""
        index = self.builder.add(lane, self.builder.mul(row, word(layout.LANES)))
        return self.builder.gep(self.places[role], [self.builder.zext(index, LONG)], source_etype=WORD)

    def raw(self, role: str, place: Place, bits: int) -> ir.Value:
        """The bits of an element."""
        lane, index = place
        b = self.builder
        if bits == 64:
            first = b.mul(index, word(2))
            low, high = (self.frame.load(self.register(role, lane, row)) for row in (first, b.add(first, word(1))))
            return b.or_(b.zext(low, LONG), b.shl(b.zext(high, LONG), ir.Constant(LONG, 32)))
        each = word(32 // bits)
        found = self.frame.load(self.register(role, lane, b.udiv(index, each)))
        return b.lshr(found, b.mul(b.urem(index, each), word(bits)))

    def factor(self, role: str, line: ir.Value, k: ir.Value) -> ir.Value:
        number = int(role[1])
        kind = self.shape.kinds[number]
        bits = _BITS[kind]
        return self.converted(self.raw(role, self.place_of_factor(line, k, bits), bits), kind, number)

    def converted(self, raw: ir.Value, kind: str, number: int) -> ir.Value:
        """The bits of a factor, in the type of the accumulator."""
        b = self.builder
        if kind == "F64":
            return b.bitcast(raw, ir.DoubleType())
        if kind == "F32":
            return b.bitcast(raw, ir.FloatType())
        if kind == "F16":
            return b.fpext(b.bitcast(b.trunc(raw, ir.IntType(16)), ir.HalfType()), ir.FloatType())
        if kind == "BF16":
            return b.bitcast(b.shl(raw, word(16)), ir.FloatType())
        byte = b.trunc(raw, ir.IntType(8))
        if kind in ("I8", "IU8"):
            signed = kind == "I8" or self.frame.instruction.fields["neg"] >> number & 1
            return b.sext(byte, WORD) if signed else b.zext(byte, WORD)
        table = number_table(b.module, kind, fnuz=self.shape.family == "cdna")
        return b.load(b.gep(table, [b.zext(byte, LONG)], source_etype=ir.FloatType()), typ=ir.FloatType())

    def sum_before(self, i: ir.Value, j: ir.Value) -> ir.Value:
        """An element of the third operand, which may be one constant for all."""
        operand = self.frame.instruction.operands["s2"]
        bits = _BITS[self.shape.sums]
        if operand.kind == "c":
            raw = self.frame.load(self.places["s2"], bits)
        else:
            raw = self.raw("s2", self.place_of_sum(i, j), bits)
        return self.builder.bitcast(raw, _LLVM[self.shape.sums])

    def put(self, value: ir.Value, lane: ir.Value, index: ir.Value) -> None:
        b = self.builder
        if value.type == ir.DoubleType():
            raw, first = b.bitcast(value, LONG), b.mul(index, word(2))
            self.frame.store(b.trunc(raw, WORD), self.register("d", lane, first))
            high = b.trunc(b.lshr(raw, ir.Constant(LONG, 32)), WORD)
            self.frame.store(high, self.register("d", lane, b.add(first, word(1))))
            return
        self.frame.store(b.bitcast(value, WORD), self.register("d", lane, index))

    def add(self, total: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
        b = self.builder
        if total.type == WORD:
            return b.add(total, b.mul(left, right))
        name = f"llvm.fma.{'f64' if total.type == ir.DoubleType() else 'f32'}"
        function = b.module.globals.get(name)
        if function is None:
            function = ir.Function(b.module, ir.FunctionType(total.type, [total.type] * 3), name)
        return b.call(function, [left, right, total])
