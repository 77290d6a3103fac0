"""Widens instructions to all lanes of a gang, in the form that the shapes of their operands allow."""

from __future__ import annotations

from dataclasses import replace

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.common_results import CommonResults, find_common_results
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.integer_division import divides_as_floats, divides_steps
from hip_runtime.drivers.cpu.analyses.shape_rules import VARYING, Shape
from hip_runtime.drivers.cpu.analyses.uniform_atomics import is_combinable, is_uniform_load
from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.analyses.users import Users, find_users
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
    Block,
    Constant,
    Function,
    Instruction,
    Value,
)
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I32, VOID
from hip_runtime.drivers.cpu.passes.checked_atomics import write_checked
from hip_runtime.drivers.cpu.passes.demote_atomics import write_demoted
from hip_runtime.drivers.cpu.vectorize.integer_division import write_quotient, write_quotient_of_steps
from hip_runtime.drivers.cpu.vectorize.linear_masks import is_linear_comparison, write_linear_mask
from hip_runtime.drivers.cpu.vectorize.long_conversions import is_long_conversion, write_long_conversion
from hip_runtime.drivers.cpu.vectorize.memory_accesses import MemoryAccesses
from hip_runtime.drivers.cpu.vectorize.single_lane import is_computed_alone
from hip_runtime.drivers.cpu.vectorize.speculative_bases import as_base
from hip_runtime.drivers.cpu.vectorize.uniform_atomics import write_uniform_atomic
from hip_runtime.drivers.cpu.vectorize.uniform_condition import write_uniform_condition
from hip_runtime.drivers.cpu.vectorize.vector_builder import mangle
from hip_runtime.drivers.cpu.vectorize.wave_operations import write_wave_operation

_OWN = frozenset({ROW, AGREE, FIRST, PARAMETER, RAMP, RESULT, "fence"})
"""Opcodes of what is written in one way for all gangs."""

_ELEMENTWISE = BINARY | CASTS | frozenset({"fneg", "freeze", "icmp", "fcmp", "extractvalue", "insertvalue"})
_SCALAR_LAST = ("llvm.abs.", "llvm.ctlz.", "llvm.cttz.", "llvm.powi.", "llvm.is.fpclass.")
"""Intrinsics whose last argument stays a scalar."""

_TWO_TYPES = (
    "llvm.lrint.", "llvm.llrint.", "llvm.lround.", "llvm.llround.", "llvm.powi.",
    "llvm.fptosi.sat.", "llvm.fptoui.sat.",
)  # fmt: skip
"""Intrinsics with two types in their names."""


class Widener(MemoryAccesses):
    """Writes the instructions of a block for a gang."""

    is_partial = False
    """Whether this is for gangs of which some lanes may be inactive from the start; for remarks."""
    first_row: Widener | None = None
    """What writes the same block for the first of several rows, just before this, if it is for another one. LLVM
    eliminates what is common to rows, but no branches."""
    row_dependent: frozenset[Value] = frozenset()
    """The values that can differ between such rows."""

    _common: dict[Instruction, CommonResults]
    """What is kept for the next gang, by the first of its instructions."""
    _users: Users | None = None
    """The users of each value, once they were looked for."""

    def begin(self, block: Block, mask: ir.Value | None) -> None:
        """Start another block."""
        super().begin(block, mask)
        self._common = {}
        if self.item.memory.results is not None and self.lanes.width > 1 and not self.lockstep:
            if self._users is None:
                self._users = find_users(self.shapes.homes)
            found = find_common_results(block, self.shapes, self._users)
            self._common = {common.instructions[0]: common for common in found}

    def _keep_common(self, common: CommonResults) -> None:
        """Write the instructions of *common*, for a gang that has other numbers than the last one."""
        assert self.item.memory.results is not None
        self.item.memory.results.compute(self, common)
        self.written_ahead.update(common.instructions)
        self.form, self.stride = remarks.UNIFORM, 0
        for value in common.instructions if remarks.are_wanted() else ():
            self._remark(value)

    def write(self, instruction: Instruction) -> None:
        """Write *instruction*, and remember its value."""
        if instruction in self.written_ahead:
            return
        if (common := self._common.get(instruction)) is not None:
            self._keep_common(common)
            return
        stand_at(self.builder, instruction.location)
        shape = self.shapes.at_definition(instruction)
        self.form, self.stride = _form_of(shape), 0
        if instruction.meets_tables and self.item.memory.tables is not None:
            self.item.memory.tables.meet(self, instruction)
        result = self._write_result(instruction, shape)
        if remarks.are_wanted():
            self._remark(instruction)
        if result is not None and instruction.type != VOID:
            self.values[instruction] = result
        self._speculated.write(instruction)

    def _write_result(self, instruction: Instruction, shape: Shape) -> ir.Value | None:
        """Write *instruction*, whose value has *shape*; returns what it has become, if it has a value."""
        opcode, is_plain = instruction.opcode, not (instruction.volatile or instruction.atomic)
        if opcode in _OWN or instruction.callee in spmd.WAVE_WIDE:
            return self._write_own(instruction)
        if opcode == "store" and is_plain:
            self.write_store(instruction)
            return None
        if opcode == "load" and is_plain and shape is VARYING:
            return self.write_load(instruction)
        if opcode in ("atomicrmw", "cmpxchg") and shape is not VARYING:
            return self._update_alone(instruction)
        if instruction.type != VOID and shape is not VARYING:
            return self._write_uniform(instruction, shape)
        return self._write_lanes(instruction)

    def _write_own(self, instruction: Instruction) -> ir.Value | None:
        """Write an instruction that is one for the whole gang, whatever its operands are."""
        opcode = instruction.opcode
        if opcode == ROW:
            return self.load_rows(instruction)
        if opcode == AGREE:
            return write_uniform_condition(self, instruction.operands[0], instruction.predicate == "true")
        if opcode == RESULT:
            return self.builder.store(self.vector(instruction.operands[0]), self.arguments[-1])
        if opcode == "fence":
            return write_instruction(self.builder, instruction, [])
        if opcode == "call":
            return write_wave_operation(self, instruction)
        return self.scalar(instruction.operands[0])

    def _write_uniform(self, instruction: Instruction, shape: Shape) -> ir.Value:
        """Write *instruction* for the first lane; what the others have follows by its *shape*."""
        if instruction.callee == spmd.LANE and shape == 1 and self.lanes.width == self.item.wave_size:
            return I32(0)
        plain = as_base(instruction) if shape or self._has_strided(instruction) else instruction
        return write_instruction(self.builder, plain, [self.scalar(value) for value in instruction.operands])

    def _write_lanes(self, instruction: Instruction) -> ir.Value | None:
        """Write *instruction* as one on vectors, if it can be."""
        opcode = instruction.opcode
        if self.lane is not None and is_computed_alone(instruction):
            return self.compute_alone(instruction, self.lane)
        if opcode == "icmp" and is_linear_comparison(self, instruction):
            return write_linear_mask(self, instruction)
        if is_long_conversion(instruction):
            return self._convert(instruction)
        if opcode in _ELEMENTWISE:
            return self._write_elementwise(instruction)
        if opcode == "select":
            return self._select(instruction)
        if opcode == "getelementptr":
            return self._address(instruction)
        if opcode == "call" and is_arithmetic(instruction.callee) and self._has_vector_form(instruction):
            return self._call(instruction)
        if instruction.elementwise is not None and (variant := self._variant(instruction.elementwise)) is not None:
            mask = self.lanes.all_lanes() if self.mask is None else self.mask
            return self.builder.call(variant, [*map(self.vector, instruction.arguments), mask])
        return self._write_combined(instruction)

    def _write_combined(self, instruction: Instruction) -> ir.Value | None:
        """Write *instruction* once for all lanes, if these can share it, or else lane by lane."""
        if is_uniform_load(instruction, self.block, self.shapes):
            self.form = remarks.COMBINED
            loaded = write_instruction(self.builder, instruction, [self.scalar(instruction.operands[0])])
            return self.lanes.splat(loaded)
        if is_combinable(instruction, self.block, self.shapes):
            self.form = remarks.COMBINED
            return write_uniform_atomic(self, instruction)
        return self.scalarize(instruction)

    def _has_strided(self, instruction: Instruction) -> bool:
        """Whether the lanes' operands differ, even if the result does not."""
        return any(self.shapes.of(value, self.block) for value in instruction.operands)

    def _remark(self, instruction: Instruction) -> None:
        function, depth = self.builder.function.name, len(self.shapes.order.loops[self.block])
        masked = self.mask is not None
        remarks.remark(function, self.is_partial, instruction, self.form, masked, depth, self.stride)

    def remark_branch(self, branch: Instruction) -> None:
        """Remark that lanes can take different paths at *branch*, which ends the block."""
        if remarks.are_wanted():
            self.form, self.stride = remarks.DIVERGENT, 0
            self._remark(branch)

    def _update_alone(self, instruction: Instruction) -> ir.Value | None:
        """An atomic operation of a gang that is one lane."""
        if instruction.total is not None:
            return write_uniform_atomic(self, instruction)
        operands = [self.scalar(value) for value in instruction.operands]
        if self.item.memory.tables is not None and self.item.memory.tables.serves(self, instruction):
            self.item.memory.tables.update(self, instruction, operands)
            return None
        write = write_demoted if instruction in self.demotable else write_checked
        return write(self.builder, instruction, operands)

    def keep(self, instruction: Instruction, only_base: bool = False) -> None:
        """Store the value of *instruction* for other blocks, or *only* its speculated *base*."""
        if not only_base:
            varying = self.shapes.at_definition(instruction) is VARYING
            self.builder.store(self.values[instruction], self.variable(instruction, varying))
        self._speculated.keep(instruction)

    def check_bases(self) -> None:
        """Raise `UnsupportedError` if a speculated base was loaded that no block stored."""
        self._speculated.check()

    def _convert(self, conversion: Instruction) -> ir.Value:
        """A conversion that this processor makes for one lane at a time."""
        if self.first_row is not None and conversion not in self.row_dependent:
            return self.first_row.values[conversion]
        convert = self._write_elementwise if conversion.opcode in _ELEMENTWISE else self._call
        return write_long_conversion(self, conversion, lambda: convert(conversion))

    def _vector_instruction(self, instruction: Instruction) -> Instruction:
        return replace(instruction, type=self.lanes.type_of(instruction.type), ranges=())

    def _write_elementwise(self, instruction: Instruction) -> ir.Value:
        if divides_steps(instruction, self.block, self.shapes, self.lanes.width):
            return self._divide_steps(instruction)
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

    def _divide_steps(self, division: Instruction) -> ir.Value:
        """The same of numbers that grow alike from lane to lane, by a constant."""
        dividend, divisor = division.operands
        key = (dividend, divisor, False)
        if key not in self._divided:
            stride = self.shapes.of(dividend, self.block)
            assert stride is not VARYING
            assert isinstance(divisor, Constant)
            number = ir.Constant(division.type, divisor.number)
            self._divided[key] = write_quotient_of_steps(self.lanes, self.scalar(dividend), stride, number)
        return self._divided[key][division.opcode == "urem"]

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
