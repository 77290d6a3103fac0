"""Functions for instructions, and the loop that calls them.

A function belongs to a form: the name, the kinds of the operands and the modifiers, without the registers. It is
compiled once and cached as an object file in a folder.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import struct
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from hip_devicelib.cache import user_directory
from hip_devicelib.elf import read_elf
from tools.amd_executor import layout, memory
from tools.amd_executor.control import build_control, is_control
from tools.amd_executor.decoding import Instruction, Operand, UnknownInstruction, decode
from tools.amd_executor.indexed_registers import build_indexed, is_indexed
from tools.amd_executor.instruction_frame import BIT, LONG, POINTER, SIGNATURE, WITHIN, WORD, Frame, long
from tools.amd_executor.lanes import build_cross_lane
from tools.amd_executor.matrices import build_matrix, is_matrix
from tools.amd_executor.pseudocode.tree import PseudocodeError
from tools.amd_executor.scalar import build_scalar, build_scalar_load, reads_memory
from tools.amd_executor.vector import build_vector, is_cross_lane

_MODIFIERS = (
    "neg", "abs", "neg_hi", "opsel", "opsel_hi", "opsel_hi2", "clmp", "omod", "dpp", "fi", "bc", "row_mask",
    "bank_mask", "src0_neg", "src0_abs", "src1_neg", "src1_abs", "src0_sel", "src1_sel", "src0_sext", "src1_sext",
    "dst_sel", "dst_unused", "sve", "th", "glc", "sc0", "pattern", "dpp8", "gpr_idx", "cbsz", "abid", "blgp",
)  # fmt: skip
"""The fields that a form depends on."""

_NO_COMPILERS = ("__main__", "attachment", "hook", "images", "machine", "plugin", "start")
"""Modules that do not affect the functions."""

_TICKET = struct.Struct(f"<{layout.RECORD_WORDS}Q")
_MASK64 = (1 << 64) - 1


class Engine:
    """Compiles forms for this machine's processor."""

    def __init__(self, folder: Path | None = None) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
        self.processor = llvm.get_host_cpu_name()
        self.features = llvm.get_host_cpu_features().flatten()
        self.machine = target.create_target_machine(cpu=self.processor, features=self.features, opt=2, jit=True)
        self.jit = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target.create_target_machine(opt=2, jit=True))
        self.folder = folder or _default_folder()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.salt = _salt(self.processor + self.features)
        self.functions: dict[str, int] = {}
        self.compiled = 0
        self.load_object("loop", _loop_module)
        address = self.jit.get_function_address("run")
        kind = ctypes.CFUNCTYPE(ctypes.c_uint64, *[ctypes.c_void_p] * 2, *[ctypes.c_uint64] * 3, ctypes.c_void_p)
        self.run = kind(address)

    def load_object(self, name: str, build: Callable[[], ir.Module], description: str = "") -> None:
        """Load the object file *name*, or compile the module from *build*."""
        path = self.folder / f"{hashlib.sha256((self.salt + name).encode()).hexdigest()[:32]}.o"
        if path.exists():
            data = path.read_bytes()
        else:
            data = self.compile(build())
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                file.write(data)
            os.replace(file.name, path)
        missing = [symbol for symbol in read_elf(data, machine=None).undefined_symbols() if not self.finds(symbol)]
        if missing:  # the JIT ends the process if a symbol is missing
            raise UnknownInstruction(f"{description or name} calls what this machine has not: {', '.join(missing)}")
        self.jit.add_object_file(llvm.ObjectFileRef.from_data(data))
        self.jit.finalize_object()

    def finds(self, symbol: str) -> bool:
        """Whether code may call *symbol*: the loop's own function, or one of this process."""
        return symbol == "within" or bool(llvm.address_of_symbol(symbol))

    def compile(self, module: ir.Module) -> bytes:
        self.compiled += 1
        parsed = llvm.parse_assembly(str(module))
        parsed.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        options.loop_unrolling = False
        builder = llvm.create_pass_builder(self.machine, options)
        builder.getModulePassManager().run(parsed, builder)
        return bytes(self.machine.emit_object(parsed))

    def function(self, instruction: Instruction) -> int:
        """The address of the function for *instruction*, which only has the fields of its form."""
        key = _key(instruction)
        if key not in self.functions:
            name = "f" + hashlib.sha256(key.encode()).hexdigest()[:24]
            self.load_object(name, lambda: _form_module(name, instruction), instruction.name)
            self.functions[key] = self.jit.get_function_address(name)
        return self.functions[key]

    def record(self, data: bytes, family: str, place: int, index_mode: int = 0) -> tuple[bytes, Instruction]:
        """The record that the loop needs for the instruction in *data*; it will be stored at the address *place*.

        *index_mode* says which operands of vector instructions are counted from M0; see `indexed_registers`.
        """
        instruction = decode(data, family)
        if index_mode and instruction.format.startswith("VOP"):
            instruction.fields["gpr_idx"] = index_mode
        numbers = _numbers(instruction)
        instruction = _form(instruction)
        words = [0] * layout.RECORD_WORDS
        words[layout.FUNCTION] = self.function(instruction)
        words[layout.SIZE] = instruction.size
        words[layout.FIRST_NUMBER], words[layout.SECOND_NUMBER] = (number & _MASK64 for number in numbers)
        constants = layout.CONSTANTS
        for index, operand in enumerate(instruction.operands.values()):
            slot = layout.OPERANDS + 2 * index
            if operand.kind == "c":
                words[constants] = operand.number & _MASK64
                words[slot] = place + 8 * constants
                constants += 1
            else:
                where = (
                    layout.vector_place(operand.number) if operand.kind == "v" else layout.scalar_place(operand.number)
                )
                words[slot], words[slot + 1] = 4 * where, _MASK64
        return _TICKET.pack(*words), instruction


@cache
def engine() -> Engine:
    """The engine of this process."""
    return Engine()


def _default_folder() -> Path:
    return user_directory("numba-hip", "XDG_CACHE_HOME") / "amd-executor"


def _salt(processor: str) -> str:
    """What the cached code depends on: the code generator, the tables, LLVM and the processor."""
    files = sorted(path for path in Path(__file__).parent.glob("*.py") if path.stem not in _NO_COMPILERS)
    sources = b"".join(path.read_bytes() for path in files)
    parts = (llvmlite.__version__, version("tinygrad"), processor)
    return hashlib.sha256(sources + "".join(parts).encode()).hexdigest()


def _key(instruction: Instruction) -> str:
    operands = ",".join(
        f"{role}:{part.kind}{part.bits}{part.format}{'h' if part.half else ''}"
        for role, part in instruction.operands.items()
    )
    fields = ",".join(f"{name}={number}" for name, number in sorted(instruction.fields.items()))
    variants = ".".join(sorted(instruction.variants))
    return f"{instruction.family}/{instruction.name}/{instruction.format}.{variants}/{operands}/{fields}"


def _form(instruction: Instruction) -> Instruction:
    """The instruction with only the fields that its function depends on."""
    fields = {name: number for name, number in instruction.fields.items() if name in _MODIFIERS}
    modes = instruction.name in ("S_GETREG_B32", "S_DENORM_MODE", "S_ROUND_MODE")
    if modes or instruction.name == "S_TRAP" or instruction.name.startswith("S_SETREG"):
        fields["simm16"] = instruction.fields["simm16"]
    if instruction.name.startswith("S_SETREG_IMM32"):
        fields["written"] = instruction.operands["simm32"].number
    if instruction.name in ("V_BITOP3_B32", "V_BITOP3_B16"):
        fields.setdefault("omod", 0)
    variants = frozenset(instruction.variants - {"LIT"})
    return Instruction(
        instruction.family,
        instruction.name,
        instruction.format,
        variants,
        instruction.size,
        fields,
        instruction.operands,
    )


def _numbers(instruction: Instruction) -> tuple[int, int]:
    """The numbers of an instruction that its form leaves open. Operands of memory instructions are added as well."""
    fields = instruction.fields
    if instruction.format in ("SOPK", "SOPP"):
        number = fields["simm16"]
        return (number - (1 << 16) if number >> 15 else number), 0
    if memory.is_memory(instruction):
        if instruction.name == "DS_SWIZZLE_B32":
            fields["pattern"] = fields["offset0"] | fields["offset1"] << 8
        number = memory.offset(instruction)
        memory.prepare(instruction)
        return number, 0
    if instruction.name in ("S_MEMTIME", "S_MEMREALTIME"):
        instruction.operands["sd"] = Operand("s", fields["sdata"], 64, "B64")
    elif instruction.format == "SMEM" and not is_control(instruction):
        return _prepare_scalar_load(instruction), 0
    return 0, 0


def _prepare_scalar_load(instruction: Instruction) -> int:
    fields = instruction.fields
    none = 127 if instruction.family == "cdna" else 124
    name = "ioffset" if "ioffset" in fields else "offset"
    bits = 24 if name == "ioffset" else 21
    instruction.operands["sd"] = Operand("s", fields["sdata"], 32, "B32")
    instruction.operands["base"] = Operand("s", fields["sbase"] << 1, 64, "B64")
    offset = fields[name]
    offset = offset - (1 << bits) if offset >> (bits - 1) else offset
    if instruction.family == "cdna":
        if not fields["imm"]:
            raise UnknownInstruction(f"{instruction.name} without a number")
        register = fields["soffset"] if fields["soffset_en"] else none
    else:
        register = fields["soffset"]
    if register not in (none, 125 if instruction.family == "cdna" else none):
        instruction.operands["soffset"] = Operand("s", register, 32, "B32")
    return offset


def _form_module(name: str, instruction: Instruction) -> ir.Module:
    if len(instruction.operands) > layout.OPERAND_COUNT:
        raise UnknownInstruction(f"{instruction.name}: {len(instruction.operands)} operands")
    module = ir.Module(name)
    frame = Frame(module, name, instruction)
    try:
        _build(frame)
    except PseudocodeError as error:
        raise UnknownInstruction(f"{instruction.name} ({instruction.format}): {error}") from error
    return module


def _build(frame: Frame) -> None:
    instruction = frame.instruction
    if is_control(instruction):
        build_control(frame)
    elif is_indexed(instruction):
        build_indexed(frame)
    elif memory.is_memory(instruction):
        memory.build_memory(frame)
    elif reads_memory(instruction):
        build_scalar_load(frame)
    elif instruction.format in ("SOP1", "SOP2", "SOPC", "SOPK", "SOPP"):
        build_scalar(frame)
    elif is_matrix(instruction):
        build_matrix(frame)
    elif is_cross_lane(instruction):
        build_cross_lane(frame)
    elif instruction.format.startswith("VOP"):
        build_vector(frame)
    else:
        raise UnknownInstruction(f"{instruction.name} ({instruction.format})")


def _loop_module() -> ir.Module:
    module = ir.Module("loop")
    _build_within(module)
    _build_run(module)
    return module


def _build_within(module: ir.Module) -> None:
    """``within(wave, address, size)``: whether the whole access is in one of the ranges that kernels may use.

    The ranges are sorted and do not overlap. The range found last is tried first.
    """
    function = ir.Function(module, WITHIN, "within")
    wave, address, size = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))

    def field(index: int) -> ir.Value:
        return builder.load(builder.gep(wave, [long(index)], source_etype=WORD), typ=LONG, align=4)

    table = builder.inttoptr(field(layout.RANGES), POINTER)
    count = field(layout.RANGE_COUNT)
    last_place = builder.gep(wave, [long(layout.RANGE_LAST)], source_etype=WORD)
    end = builder.add(address, size)

    def holds(index: ir.Value) -> ir.Value:
        pair = builder.gep(table, [builder.mul(index, long(2))], source_etype=LONG)
        start = builder.load(pair, typ=LONG)
        stop = builder.load(builder.gep(pair, [long(1)], source_etype=LONG), typ=LONG)
        inside = builder.and_(builder.icmp_unsigned("<=", start, address), builder.icmp_unsigned("<=", end, stop))
        return builder.and_(inside, builder.icmp_unsigned("<=", address, end))

    search, yes = (function.append_basic_block(name) for name in ("search", "yes"))
    builder.cbranch(holds(builder.load(last_place, typ=LONG, align=4)), yes, search)
    builder.position_at_end(search)
    head, middle_block, done = (function.append_basic_block(name) for name in ("head", "middle", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    low, high = builder.phi(LONG), builder.phi(LONG)
    low.add_incoming(long(0), search)
    high.add_incoming(count, search)
    builder.cbranch(builder.icmp_unsigned("<", builder.add(low, long(1)), high), middle_block, done)
    builder.position_at_end(middle_block)
    middle = builder.lshr(builder.add(low, high), long(1))
    start = builder.load(builder.gep(table, [builder.mul(middle, long(2))], source_etype=LONG), typ=LONG)
    before = builder.icmp_unsigned("<=", start, address)
    low.add_incoming(builder.select(before, middle, low), middle_block)
    high.add_incoming(builder.select(before, high, middle), middle_block)
    builder.branch(head)
    builder.position_at_end(done)
    found = holds(low)
    builder.store(low, last_place, align=4)
    builder.ret(found)
    builder.position_at_end(yes)
    builder.ret(ir.Constant(BIT, 1))


def _build_run(module: ir.Module) -> None:
    """``run(wave, records, base, count, turn, done)``: execute instructions until one needs attention, or *turn* have
    been executed. *base* is the address of the code that the first of *count* records belongs to."""
    kind = ir.FunctionType(LONG, [POINTER, POINTER, LONG, LONG, LONG, POINTER])
    function = ir.Function(module, kind, "run")
    wave, records, base, count, turn, done = function.args
    entry, head, find, call, following, leave = (
        function.append_basic_block(name) for name in ("entry", "head", "find", "call", "next", "leave")
    )
    builder = ir.IRBuilder(entry)
    pc_place = builder.gep(wave, [long(layout.PC)], source_etype=WORD)
    builder.branch(head)
    builder.position_at_end(head)
    number = builder.phi(LONG)
    number.add_incoming(long(0), entry)
    pc = builder.load(pc_place, typ=LONG, align=4)
    index = builder.lshr(builder.sub(pc, base), long(2))
    builder.cbranch(builder.icmp_unsigned("<", index, count), find, leave)
    builder.position_at_end(find)
    record = builder.gep(records, [builder.mul(index, long(layout.RECORD_WORDS))], source_etype=LONG)
    target = builder.load(record, typ=LONG)
    builder.cbranch(builder.icmp_unsigned("!=", target, long(0)), call, leave)
    builder.position_at_end(call)
    size = builder.load(builder.gep(record, [long(layout.SIZE)], source_etype=LONG), typ=LONG)
    builder.store(builder.add(pc, size), pc_place, align=4)
    status = builder.call(builder.inttoptr(target, SIGNATURE.as_pointer()), [wave, record])
    after = builder.add(number, long(1))
    builder.cbranch(builder.icmp_unsigned("==", status, long(layout.NEXT)), following, leave)
    builder.position_at_end(following)
    number.add_incoming(after, following)
    builder.cbranch(builder.icmp_unsigned("<", after, turn), head, leave)
    builder.position_at_end(leave)
    result, total = builder.phi(LONG), builder.phi(LONG)
    for block, value, steps in (
        (head, long(layout.OUTSIDE), number),
        (find, long(layout.UNDECODED), number),
        (call, status, after),
        (following, long(layout.TURN), after),
    ):
        result.add_incoming(value, block)
        total.add_incoming(steps, block)
    builder.store(total, done)
    builder.ret(result)
