"""Fragments on AMD GPUs: in registers, in the layout of the instructions that multiply them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from llvmlite import ir
from numba.core import types

from hip_devicelib.matrix_instructions import MatrixInstruction, matrix_instructions, matrix_wave_size
from hip_devicelib.target import Target
from numba_hip.errors import MatrixError
from numba_hip.language.matrix.kinds import ACCUMULATOR, A, Fragment, describe, describe_product, takes
from numba_hip.language.matrix.unit import I64, Operand, Tile, Visit

BIT, I32 = ir.IntType(1), ir.IntType(32)


class _Bfloat(ir.Type):
    """LLVM's ``bfloat``, which llvmlite has no type for."""

    def _to_string(self) -> str:
        return "bfloat"


_NAMED = {"half": ir.HalfType(), "bfloat": _Bfloat(), "float": ir.FloatType(), "double": ir.DoubleType()}


class AmdMatrixUnit:
    """The fragments of one GPU, or rather of one kind of them, for lowering in *context*."""

    def __init__(self, context: Any, target: Target) -> None:
        self._context, self._target = context, target

    @cached_property
    def _instructions(self) -> tuple[MatrixInstruction, ...]:
        return matrix_instructions(self._target)

    def check(self, kind: Fragment) -> None:
        """Raise `MatrixError`, which tells what the GPU has."""
        self._one_for(kind)

    def stored(self, kind: Fragment) -> types.Type:
        """That of the elements."""
        return kind.dtype

    def most(self, kind: Fragment) -> int:
        """As many as every lane has."""
        one = self._one_for(kind)
        m, n, k = kind.dims
        return m * n // one.wave_size if kind.role == ACCUMULATOR else k * one.parts // one.shape[2]

    def reserve(self, builder: ir.IRBuilder, kind: Fragment) -> ir.Value:
        """A stack slot, which becomes registers."""
        storage = ir.ArrayType(self._context.get_data_type(self.stored(kind)), self.most(kind))
        with builder.goto_entry_block():
            data = builder.alloca(storage)
        return builder.bitcast(data, self._context.get_value_type(kind))

    def count(self, builder: ir.IRBuilder, kind: Fragment) -> ir.Value:
        """A constant."""
        return I64(self.most(kind))

    def origin(self, builder: ir.IRBuilder, kind: Fragment) -> tuple[ir.Value, ir.Value]:
        """From the number of the lane."""
        one, side = self._one_for(kind), kind.dims[0]
        lane = builder.zext(self._context.lane(builder), I64)
        within, group = builder.and_(lane, I64(side - 1)), builder.lshr(lane, I64(side.bit_length() - 1))
        if kind.role == ACCUMULATOR:
            return builder.mul(group, I64(one.together)), within
        shared = one.shape[2] == one.parts  # all lanes with the same row have all of it
        first = I64(0) if shared else builder.mul(group, I64(self.most(kind)))
        return (within, first) if kind.role == A else (first, within)

    def offset(self, builder: ir.IRBuilder, kind: Fragment, index: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Along k, or down the turns of rows."""
        if kind.role != ACCUMULATOR:
            return (I64(0), index) if kind.role == A else (index, I64(0))
        together, turn = self._turns(kind)
        rounds = builder.udiv(index, I64(together))
        return builder.add(builder.mul(rounds, I64(turn)), builder.urem(index, I64(together))), I64(0)

    def each(self, builder: ir.IRBuilder, kind: Fragment, visit: Visit) -> None:
        """One after another: fragments are registers, which have no index."""
        for index in range(self.most(kind)):
            row, column = (0, index) if kind.role == A else (index, 0)
            if kind.role == ACCUMULATOR:
                together, turn = self._turns(kind)
                row = index // together * turn + index % together
            visit(I64(index), I64(row), I64(column))

    def fill(self, builder: ir.IRBuilder, operand: Operand, value: ir.Value) -> None:
        """One after another."""
        for index in range(self.most(operand[0])):
            builder.store(value, self._place(builder, operand, index))

    def move(self, builder: ir.IRBuilder, operand: Operand, tile: Tile, *, is_load: bool) -> bool:
        """The part of a factor that a lane has as one vector, if it lies together. LLVM joins single elements, too, but
        in a loop it counts the bytes in a register more, unless they are what the loop counts: elements of one byte."""
        kind, data = operand
        element = self._context.get_data_type(kind.dtype)
        size = self._context.get_abi_sizeof(element)
        along = 1 if kind.role == A else 0
        is_whole = kind.role != ACCUMULATOR and tile.contiguous == along and tile.dtype == kind.dtype
        if not (is_load and is_whole) or size == 1:
            return False
        first = tile.address
        for place, step in zip(self.origin(builder, kind), tile.steps, strict=True):
            first = builder.gep(first, [builder.mul(place, step)], source_etype=ir.IntType(8))
        pointer = ir.VectorType(element, self.most(kind)).as_pointer()
        align = size if tile.aligned else 1
        vector = builder.load(builder.bitcast(first, pointer), align=align)
        builder.store(vector, builder.bitcast(data, pointer), align=align)
        return True

    def multiply(self, builder: ir.IRBuilder, target: Operand, a: Operand, b: Operand, c: Operand) -> None:
        """By as many instructions as k takes, the longest that there are."""
        one = self._multiplier(target[0], a[0], b[0])
        sums = self._elements(builder, c, 0, self.most(c[0]))
        for first in range(0, self.most(a[0]), one.parts):
            factors = [self._factor(builder, operand, first, one) for operand in (a, b)]
            sums = _call(builder, one, factors, sums)
        for index in range(self.most(target[0])):
            place = self._place(builder, target, index)
            builder.store(builder.extract_element(sums, I32(index)), place)

    # Instructions.

    def _turns(self, kind: Fragment) -> tuple[int, int]:
        """How many rows of an accumulator a lane has together, and how many all lanes have in a turn."""
        one = self._one_for(kind)
        return one.together, one.together * one.wave_size // kind.dims[1]

    def _one_for(self, kind: Fragment) -> MatrixInstruction:
        """Any of the instructions that have *kind* as an operand: they share the layout."""
        for one in self._instructions:
            if takes(one, kind):
                return one
        raise MatrixError(f"hip.matrix.fragment: {self._lacks(f'no {kind}', kind)}")

    def _multiplier(self, target: Fragment, a: Fragment, b: Fragment) -> MatrixInstruction:
        fitting = [one for one in self._instructions if takes(one, a) and takes(one, b) and takes(one, target)]
        if not fitting:
            raise MatrixError(f"hip.matrix.mma: {self._lacks('no ' + describe_product(target, a, b), a)}")
        return max(fitting, key=lambda one: one.shape[2])

    def _lacks(self, asked: str, kind: Fragment) -> str:
        """That the target has not what is *asked*, and what it has, or would have."""
        target = self._target
        needed = matrix_wave_size(target)
        if needed is None:
            return (
                f"{target.name} has {asked}: there are no matrix cores that hip.matrix knows; use a kernel without it"
            )
        if needed != target.wave_size:
            return (
                f"{target.name} has {asked} in waves of {target.wave_size}; it multiplies matrices in waves of {needed}"
            )
        return f"{target.name} has {asked}; it has {describe(self._instructions, kind)}"

    # Operands.

    def _place(self, builder: ir.IRBuilder, operand: Operand, index: int) -> ir.Value:
        element = self._context.get_data_type(operand[0].dtype)
        data = builder.bitcast(operand[1], element.as_pointer())
        return builder.gep(data, [I64(index)], inbounds=True, source_etype=element)

    def _elements(self, builder: ir.IRBuilder, operand: Operand, first: int, count: int) -> ir.Value:
        """Neighbouring elements as a vector."""
        element = self._context.get_data_type(operand[0].dtype)
        vector: ir.Value = ir.Constant(ir.VectorType(element, count), ir.Undefined)
        for index in range(count):
            value = builder.load(self._place(builder, operand, first + index), typ=element)
            vector = builder.insert_element(vector, value, I32(index))
        return vector

    def _factor(self, builder: ir.IRBuilder, operand: Operand, first: int, one: MatrixInstruction) -> ir.Value:
        vector = self._elements(builder, operand, first, one.parts)
        wanted = _llvm_type(one.operand)
        return vector if vector.type == wanted else builder.bitcast(vector, wanted)


def _llvm_type(text: str) -> ir.Type:
    """The type that a `MatrixInstruction` has as text."""
    count, _, name = text.strip("<>").rpartition(" x ")
    element = _NAMED.get(name) or ir.IntType(int(name[1:]))
    return ir.VectorType(element, int(count)) if count else element


def _call(builder: ir.IRBuilder, one: MatrixInstruction, factors: list[ir.Value], sums: ir.Value) -> ir.Value:
    """One instruction."""
    arguments = [*factors, sums]
    if one.signs:
        arguments = [BIT(1), factors[0], BIT(1), factors[1], sums, BIT(0)]
    arguments += [I32(0)] * one.controls
    kind = ir.FunctionType(sums.type, [argument.type for argument in arguments])
    function = builder.module.globals.get(one.intrinsic) or ir.Function(builder.module, kind, one.intrinsic)
    return builder.call(function, arguments)
