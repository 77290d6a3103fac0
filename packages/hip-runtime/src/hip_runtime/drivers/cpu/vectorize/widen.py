"""Widens instructions to all lanes of a gang, in the form that the shapes of their operands allow."""

from __future__ import annotations

from dataclasses import replace

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.integer_division import divides_as_floats
from hip_runtime.drivers.cpu.analyses.private_arrays import is_private_address
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING, Shape
from hip_runtime.drivers.cpu.analyses.uniform_atomics import is_combinable, is_uniform_load
from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.drivers.cpu.ir.debug_locations import stand_at
from hip_runtime.drivers.cpu.ir.keywords import BINARY, CASTS
from hip_runtime.drivers.cpu.ir.model import (
    AGREE,
    FIRST,
    PARAMETER,
    RAMP,
    RESULT,
    ROW,
    Constant,
    Function,
    Instruction,
    Value,
)
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I1, I32, VOID
from hip_runtime.drivers.cpu.vectorize.apart_accesses import ApartAccesses
from hip_runtime.drivers.cpu.vectorize.appended_stores import is_appended, write_appended
from hip_runtime.drivers.cpu.vectorize.integer_division import write_quotient
from hip_runtime.drivers.cpu.vectorize.linear_masks import is_linear, write_linear_mask
from hip_runtime.drivers.cpu.vectorize.row_loads import load_rows
from hip_runtime.drivers.cpu.vectorize.scalarize import Scalarizer
from hip_runtime.drivers.cpu.vectorize.single_lane import is_computed_alone
from hip_runtime.drivers.cpu.vectorize.speculative_bases import as_base
from hip_runtime.drivers.cpu.vectorize.strided_accesses import load_strided, store_strided
from hip_runtime.drivers.cpu.vectorize.uniform_atomics import write_uniform_atomic
from hip_runtime.drivers.cpu.vectorize.uniform_condition import write_uniform_condition
from hip_runtime.drivers.cpu.vectorize.vector_builder import mangle, size_in_memory
from hip_runtime.drivers.cpu.vectorize.wave_operations import write_wave_operation

_ELEMENTWISE = BINARY | CASTS | frozenset({"fneg", "freeze", "icmp", "fcmp"})
_SCALAR_LAST = ("llvm.abs.", "llvm.ctlz.", "llvm.cttz.", "llvm.powi.", "llvm.is.fpclass.")
"""Intrinsics whose last argument stays a scalar."""

_TWO_TYPES = (
    "llvm.lrint.", "llvm.llrint.", "llvm.lround.", "llvm.llround.", "llvm.powi.",
    "llvm.fptosi.sat.", "llvm.fptoui.sat.",
)  # fmt: skip
"""Intrinsics with two types in their names."""


class Widener(ApartAccesses):
    """Writes the instructions of a block for a gang."""

    is_partial = False
    """Whether this is for gangs of which some lanes may be inactive from the start; for remarks."""
    _form, _stride = remarks.COMPUTED, 0
    """How the last instruction was written; for remarks."""

    def write(self, instruction: Instruction) -> None:
        """Write *instruction*, and remember its value."""
        if instruction in self.written_ahead:
            return
        stand_at(self.builder, instruction.location)
        shape = self.shapes.at_definition(instruction)
        self._form, self._stride = _form_of(shape), 0
        if instruction.meets_tables and self.item.tables is not None:
            self.item.tables.meet(self, instruction)
        result = self._write_result(instruction, shape)
        if remarks.are_wanted():
            self._remark(instruction)
        if result is not None and instruction.type != VOID:
            self.values[instruction] = result
        self._speculated.write(instruction)

    def _write_result(self, instruction: Instruction, shape: Shape) -> ir.Value | None:
        """Write *instruction*, whose value has *shape*; returns what it has become, if it has a value."""
        opcode = instruction.opcode
        result: ir.Value | None
        if opcode == "load" and not (instruction.volatile or instruction.atomic) and shape is VARYING:
            result = self._load(instruction)
        elif opcode == ROW:
            result = self._load_rows(instruction)
        elif opcode == "store" and not (instruction.volatile or instruction.atomic):
            self._store(instruction)
            result = None
        elif opcode == AGREE:
            result = write_uniform_condition(self, instruction.operands[0], instruction.predicate == "true")
        elif opcode in (FIRST, PARAMETER, RAMP):
            result = self.scalar(instruction.operands[0])
        elif opcode == RESULT:
            result = self.builder.store(self.vector(instruction.operands[0]), self.arguments[-1])
        elif opcode == "fence":
            result = write_instruction(self.builder, instruction, [])
        elif instruction.callee in spmd.WAVE_WIDE:
            result = write_wave_operation(self, instruction)
        elif instruction.callee == spmd.LANE and shape == 1 and self.lanes.width == self.item.wave_size:
            result = I32(0)
        elif instruction.type != VOID and shape is not VARYING:
            plain = as_base(instruction) if shape or self._has_strided(instruction) else instruction
            result = write_instruction(self.builder, plain, [self.scalar(value) for value in instruction.operands])
        elif self.lane is not None and is_computed_alone(instruction):
            result = self.compute_alone(instruction, self.lane)
        elif opcode == "icmp" and is_linear(self, instruction):
            result = write_linear_mask(self, instruction)
        elif opcode in _ELEMENTWISE:
            result = self._write_elementwise(instruction)
        elif opcode == "select":
            result = self._select(instruction)
        elif opcode == "getelementptr":
            result = self._address(instruction)
        elif opcode in ("extractvalue", "insertvalue"):
            result = self._write_elementwise(instruction)
        elif opcode == "call" and is_arithmetic(instruction.callee) and self._has_vector_form(instruction):
            result = self._call(instruction)
        elif instruction.elementwise is not None and (variant := self._variant(instruction.elementwise)) is not None:
            mask = self.lanes.all_lanes() if self.mask is None else self.mask
            result = self.builder.call(variant, [*map(self.vector, instruction.arguments), mask])
        elif is_uniform_load(instruction, self.block, self.shapes):
            self._form = remarks.COMBINED
            loaded = write_instruction(self.builder, instruction, [self.scalar(instruction.operands[0])])
            result = self.lanes.splat(loaded)
        elif is_combinable(instruction, self.block, self.shapes):
            self._form = remarks.COMBINED
            result = write_uniform_atomic(self, instruction)
        else:
            result = self._scalarize(instruction)
        return result

    def _has_strided(self, instruction: Instruction) -> bool:
        """Whether the lanes' operands differ, even if the result does not."""
        return any(self.shapes.of(value, self.block) for value in instruction.operands)

    def _remark(self, instruction: Instruction) -> None:
        function, depth = self.builder.function.name, len(self.shapes.order.loops[self.block])
        masked = self.mask is not None
        remarks.remark(function, self.is_partial, instruction, self._form, masked, depth, self._stride)

    def remark_branch(self, branch: Instruction) -> None:
        """Remark that lanes can take different paths at *branch*, which ends the block."""
        if remarks.are_wanted():
            self._form, self._stride = remarks.DIVERGENT, 0
            self._remark(branch)

    def _scalarize(self, instruction: Instruction) -> ir.Value | None:
        self._form = remarks.SCALARIZED
        return Scalarizer(self, instruction).write()

    def keep(self, instruction: Instruction) -> None:
        """Store the value of *instruction* for other blocks."""
        varying = self.shapes.at_definition(instruction) is VARYING
        self.builder.store(self.values[instruction], self.variable(instruction, varying))
        self._speculated.keep(instruction)

    def _vector_instruction(self, instruction: Instruction) -> Instruction:
        return replace(instruction, type=self.lanes.type_of(instruction.type), ranges=())

    def _write_elementwise(self, instruction: Instruction) -> ir.Value:
        if divides_as_floats(instruction, self.lanes.width):
            return self._divide(instruction)
        operands = [self.vector(value) for value in instruction.operands]
        if instruction.opcode in DIVISIONS and self.mask is not None and not _is_safe_divisor(instruction):
            ones = self.lanes.splat(ir.Constant(instruction.type, 1))
            operands[1] = self.builder.select(self.mask, operands[1], ones)
        return write_instruction(self.builder, self._vector_instruction(instruction), operands)

    def _divide(self, division: Instruction) -> ir.Value:
        """A quotient or a remainder. The other one of the same operands, if it is needed, comes with it."""
        dividend, divisor = division.operands
        signed = division.opcode in ("sdiv", "srem")
        key = (dividend, divisor, signed)
        if key not in self._divided:
            operands = [self.vector(dividend), self.vector(divisor)]
            if self.mask is not None:
                rest = [self.lanes.splat(ir.Constant(division.type, number)) for number in (0, 1)]
                operands = [self.builder.select(self.mask, *both) for both in zip(operands, rest, strict=True)]
            dividends, divisors = map(self.lanes.freeze, operands)
            self._divided[key] = write_quotient(self.lanes, dividends, divisors, signed)
        return self._divided[key][division.opcode in ("srem", "urem")]

    def _select(self, instruction: Instruction) -> ir.Value:
        condition, *others = instruction.operands
        uniform = self.shapes.of(condition, self.block) == 0
        operands = [self.scalar(condition) if uniform else self.vector(condition), *map(self.vector, others)]
        if isinstance(instruction.type, ir.LiteralStructType) and not uniform:
            return self.lanes.blend(*operands)
        return write_instruction(self.builder, self._vector_instruction(instruction), operands)

    def _address(self, instruction: Instruction) -> ir.Value:
        operands = [
            self.scalar(value) if isinstance(value, Constant) and number else self.vector(value)
            for number, value in enumerate(instruction.operands)
        ]
        return write_instruction(self.builder, self._vector_instruction(instruction), operands)

    def _align_of_base(self, align: int, stride: int) -> int:
        """The alignment of the first lane's address, if those of active lanes, *stride* bytes apart, have *align*."""
        return align if self.mask is None else min(align, stride & -stride)

    def _form_of_single(self, kind: ir.Type, pointer: Value) -> tuple[str, int]:
        """What an access of one lane would be for all of them, and its stride in elements if it is in steps; for
        remarks."""
        stride = self.count_elements(kind, self.shapes.of(pointer, self.block))
        if stride > 1:
            return remarks.STRIDED, stride
        return remarks.CONTIGUOUS if stride else remarks.GATHERED, 0

    def _load(self, instruction: Instruction) -> ir.Value:
        (pointer,) = instruction.operands
        if instruction.type == I1:
            return self._scalarize(instruction)
        align = instruction.align or 1
        if (lane := self.accessing_lane(instruction.type, pointer)) is not None:
            self._form, self._stride = self._form_of_single(instruction.type, pointer)
            return self.load_alone(instruction, lane)
        if self.is_contiguous(instruction.type, pointer):
            self._form = remarks.CONTIGUOUS
            mask = None if is_private_address(pointer) else self.mask
            align = self._align_of_base(align, size_in_memory(instruction.type))
            return self.lanes.load(instruction.type, self.scalar(pointer), mask, align)
        stride = self.element_stride(instruction.type, pointer)
        if stride:
            self._form, self._stride = remarks.STRIDED, stride
            return self._load_strided(instruction.type, self.scalar(pointer), stride, align)
        if not (stride := self.speculated_stride(instruction.type, pointer)):
            self._form = remarks.GATHERED
            return self.load_apart(instruction)
        pointers = self.vector(pointer)
        self._form, self._stride = (remarks.SPECULATED, 0) if stride == 1 else (remarks.STRIDED, stride)
        base, holds = self._speculated.base(pointer)
        with self.builder.if_else(holds) as (speculated, otherwise):
            with speculated:
                near = self._load_strided(instruction.type, base, stride, align)
                near_block = self.builder.block
            with otherwise:
                far, far_block = self.lanes.gather(instruction.type, pointers, self.mask, align), self.builder.block
        result = self.builder.phi(near.type)
        result.add_incoming(near, near_block)
        result.add_incoming(far, far_block)
        return result

    def _load_rows(self, instruction: Instruction) -> ir.Value:
        """The elements that each lane loads at once: a vector of the first ones, one of the second ones and so on."""
        assert self.mask is None
        self._form = remarks.ROWS
        kinds = instruction.type.elements
        places = self.vector(instruction.operands[0])
        result = self.lanes.undefined(self.lanes.type_of(instruction.type))
        for number, part in enumerate(load_rows(self.lanes, kinds[0], len(kinds), places, instruction.align or 1)):
            result = self.builder.insert_value(result, part, number)
        return result

    def _load_strided(self, kind: ir.Type, base: ir.Value, stride: int, align: int) -> ir.Value:
        """A load of elements that are *stride* of them apart, 1 if they are neighbours."""
        align = self._align_of_base(align, stride * size_in_memory(kind))
        if stride == 1:
            return self.lanes.load(kind, base, self.mask, align)
        return load_strided(self.lanes, kind, base, stride, self.mask, align)

    def _store(self, instruction: Instruction) -> None:
        value, pointer = instruction.operands
        align = instruction.align or 1
        shape = self.shapes.of(pointer, self.block)
        if shape == 0 and self.shapes.of(value, self.block) == 0:
            self._form = remarks.UNIFORM
            write_instruction(self.builder, instruction, [self.scalar(value), self.scalar(pointer)])
        elif value.type == I1 or isinstance(value.type, ir.LiteralStructType | ir.ArrayType):
            self._scalarize(instruction)
        elif (lane := self.accessing_lane(value.type, pointer)) is not None:
            self._form, self._stride = self._form_of_single(value.type, pointer)
            self.store_alone(instruction, lane)
        elif self.is_contiguous(value.type, pointer):
            self._form = remarks.CONTIGUOUS
            self._store_contiguous(self.vector(value), pointer, align)
        elif stride := self.element_stride(value.type, pointer):
            self._form, self._stride = remarks.STRIDED, stride
            self._store_strided(self.vector(value), self.scalar(pointer), stride, align)
        elif is_appended(self, pointer, value.type):
            self._form = remarks.SPECULATED
            write_appended(self, self.vector(value), pointer, align)
        else:
            self._store_scattered(instruction, align)

    def _store_contiguous(self, values: ir.Value, pointer: Value, align: int) -> None:
        """Store to neighbours. In a private array the elements of inactive lanes are written, too, but not changed:
        without a mask, LLVM can keep it in registers."""
        mask, place = self.mask, self.scalar(pointer)
        align = self._align_of_base(align, size_in_memory(values.type.element))
        if mask is not None and is_private_address(pointer):
            values = self.lanes.blend(mask, values, self.lanes.load(values.type.element, place, None, align))
            mask = None
        self.lanes.store(values, place, mask, align)

    def _store_scattered(self, instruction: Instruction, align: int) -> None:
        """Store to addresses that need not be contiguous."""
        value, pointer = instruction.operands
        if not (stride := self.speculated_stride(value.type, pointer)):
            self._form = remarks.GATHERED
            self.store_apart(instruction)
            return
        values, pointers = self.vector(value), self.vector(pointer)
        self._form, self._stride = (remarks.SPECULATED, 0) if stride == 1 else (remarks.STRIDED, stride)
        base, holds = self._speculated.base(pointer)
        with self.builder.if_else(holds) as (speculated, otherwise):
            with speculated:
                self._store_strided(values, base, stride, align)
            with otherwise:
                self.lanes.scatter(values, pointers, self.mask, align)

    def _store_strided(self, values: ir.Value, base: ir.Value, stride: int, align: int) -> None:
        """The reverse of `_load_strided`."""
        align = self._align_of_base(align, stride * size_in_memory(values.type.element))
        if stride == 1:
            self.lanes.store(values, base, self.mask, align)
        else:
            store_strided(self.lanes, values, base, stride, self.mask, align)

    def _variant(self, function: Function) -> ir.Function | None:
        return self.variants.find(function, self.lanes.width)

    def _has_vector_form(self, instruction: Instruction) -> bool:
        name = instruction.callee
        if name.startswith(_SCALAR_LAST):
            return self.shapes.of(instruction.arguments[-1], self.block) == 0
        return True

    def _call(self, instruction: Instruction) -> ir.Value:
        name, arguments = instruction.callee, instruction.arguments
        last = name.startswith(_SCALAR_LAST)
        operands = [
            self.scalar(value) if last and number == len(arguments) - 1 else self.vector(value)
            for number, value in enumerate(arguments)
        ]
        base = _without_types(name)
        kinds = [mangle(operands[0].type)]
        if name.startswith("llvm.powi."):
            kinds.append(mangle(operands[1].type))
        elif name.startswith(_TWO_TYPES):
            kinds.insert(0, mangle(self.lanes.type_of(instruction.type)))
        whole = ".".join([base, *kinds])
        return self.lanes.call(whole, self.lanes.type_of(instruction.type), operands, instruction.flags)


def _form_of(shape: Shape) -> str:
    """How a value of *shape* is computed; for remarks."""
    if shape is VARYING:
        return remarks.COMPUTED
    return remarks.LINEAR if shape else remarks.UNIFORM


def _without_types(name: str) -> str:
    """The name of an intrinsic without the types at its end."""
    words = name.split(".")
    while words[-1][:1] in "ifpv" and words[-1][1:].isalnum() and any(letter.isdigit() for letter in words[-1]):
        words.pop()
    return ".".join(words)


def _is_safe_divisor(division: Instruction) -> bool:
    """Whether no dividend traps: the divisor is a constant other than 0 and -1."""
    divisor = division.operands[1]
    if not isinstance(divisor, Constant) or divisor.number is None:
        return False
    return divisor.number not in (0, (1 << division.type.width) - 1)
