"""Computes with 32 bits what is computed from loaded data and needs no more.

Numba's integers have 64 bits as soon as two shorter ones are added, and vectors half as many lanes then. What sums and
products of bytes can come to is known: they fit into 32 bits unless there are very many. Indices keep their width, as
addresses are followed through them.
"""

from __future__ import annotations

from dataclasses import replace

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.cfg import order_function
from hip_runtime.drivers.cpu.analyses.derived_ranges import DERIVED, numbers_of, operation_of
from hip_runtime.drivers.cpu.analyses.known_ranges import Range, constant
from hip_runtime.drivers.cpu.ir.model import Block, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I32, I64

_LEAST, _MOST = -(1 << 31), (1 << 31) - 1
_DEEPEST = 8
"""Instructions that a short number is followed through to what is loaded."""


def shorten_data(function: Function) -> bool:
    """Do so in *function*; whether there was any."""
    if not any(value.opcode in ("sext", "zext") and value.type == I64 for value in function.instructions()):
        return False
    return _Shortened(function).write()


class _Shortened:
    """The numbers of *function* that have 64 bits and need 32, with their ranges, and those numbers of 32 bits."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._blocks = order_function(function).blocks
        self._ranges: dict[Value, Range] = {}
        self._computed: list[tuple[Instruction, Block]] = []
        for block in self._blocks:
            for value in block.instructions:
                found = self._find_range(value) if value.type == I64 else None
                if found is not None and found[0] >= _LEAST and found[1] <= _MOST:
                    self._ranges[value] = found
                    self._computed.append((value, block))
        self._short: dict[Value, Value] = {}
        self._replaced: dict[Value, Value] = {}
        """What is a short number itself."""

    def write(self) -> bool:
        """Write the short numbers, and what uses them."""
        if not any(_is_computed(value) for value, _ in self._computed):
            return False
        for value, block in self._computed:
            self._shorten(value, block)
        for block in self._blocks:
            for value in list(block.instructions):
                if value not in self._ranges:
                    self._use(value, block)
        for value in self._function.instructions():
            value.operands = [self._replaced.get(operand, operand) for operand in value.operands]
        return True

    # what needs no more than 32 bits

    def _find_range(self, value: Instruction) -> Range | None:
        if value.opcode in ("sext", "zext"):
            return _of_loaded(value)
        derive = DERIVED.get(operation_of(value))
        if derive is None:
            return None
        operands = numbers_of(value)
        known = [self._range_of(operand) for operand in operands]
        if None in known or not any(operand in self._ranges for operand in operands):
            return None
        return derive(*(found for found in known if found is not None))

    def _range_of(self, value: Value) -> Range | None:
        number = signed_number(value)
        if number is None:
            return self._ranges.get(value)
        return (number, number) if _LEAST <= number <= _MOST else None

    # their short forms

    def _shorten(self, value: Instruction, block: Block) -> None:
        """Compute *value*, in *block*, with 32 bits, too."""
        (source, *_) = value.operands
        if value.opcode in ("sext", "zext") and source.type == I32:
            self._short[value] = source
            return
        if value.opcode == "call":
            self._short[value] = self._choose(value, block)
            return
        operands = [self._shortened(operand) for operand in value.operands]
        flags: tuple[str, ...] = ("nsw",) if value.opcode in ("add", "sub", "mul", "shl") else ()
        if value.opcode in ("sext", "zext"):
            operands, flags = [source], value.flags
        elif value.opcode == "ashr":
            operands[1] = constant(I32, min(signed_number(value.operands[1]) or 0, 31))
        made = replace(value, type=I32, operands=operands, flags=flags, name=f"{value.name}.short")
        block.instructions.insert(block.instructions.index(value) + 1, made)
        self._short[value] = made

    def _choose(self, value: Instruction, block: Block) -> Instruction:
        """The number that *value*, a call in *block*, chooses, by a comparison."""
        one, *others = map(self._shortened, numbers_of(value))
        name = f"{value.name}.short"
        made = []
        if not others:
            others = [constant(I32, 0)]
            made.append(Instruction(I32, "sub", [others[0], one], f"{name}.minus", flags=("nsw",)))
        (other,) = others
        chosen = [made[0], one] if made else [one, other]
        predicate = _CHOOSES[operation_of(value)]
        made.append(Instruction(I1, "icmp", [one, other], f"{name}.is", predicate=predicate))
        made.append(Instruction(I32, "select", [made[-1], *chosen], name, location=value.location))
        place = block.instructions.index(value) + 1
        block.instructions[place:place] = made
        return made[-1]

    def _shortened(self, value: Value) -> Value:
        number = signed_number(value) if value.type == I64 else None
        return constant(I32, number) if number is not None else self._short.get(value, value)

    # what uses them

    def _use(self, value: Instruction, block: Block) -> None:
        """Have *value*, in *block*, use short numbers where it can do with such; others are made long again."""
        if value.opcode == "phi":
            for place, (operand, source) in enumerate(zip(value.operands, value.targets, strict=True)):
                if operand in self._short:
                    value.operands[place] = self._lengthen(operand, source, source.terminator)
            return
        if value.opcode == "icmp" and all(map(self._is_short, value.operands)):
            if any(operand in self._short for operand in value.operands):
                value.operands = [self._shortened(operand) for operand in value.operands]
        elif value.opcode == "trunc" and value.operands[0] in self._short:
            self._truncate(value, self._short[value.operands[0]])
        elif value.opcode in ("sitofp", "uitofp") and self._converts(value):
            value.opcode, value.operands, value.flags = "sitofp", [self._short[value.operands[0]]], ()
        else:
            for place, operand in enumerate(value.operands):
                if operand in self._short and operand.type == I64 and _is_computed(operand):
                    value.operands[place] = self._lengthen(operand, block, value)

    def _is_short(self, value: Value) -> bool:
        found = self._range_of(value)
        return found is not None and found[0] >= _LEAST and found[1] <= _MOST

    def _converts(self, value: Instruction) -> bool:
        """Whether *value* makes a float of a short number, which is not negative where it has no sign."""
        (number,) = value.operands
        return number in self._short and (value.opcode == "sitofp" or self._ranges[number][0] >= 0)

    def _truncate(self, value: Instruction, short: Value) -> None:
        """Have *value* give the low bits of *short* instead of those of the long number."""
        if value.type == I32:
            self._replaced[value] = short
        else:
            value.operands, value.flags = [short], ()

    def _lengthen(self, value: Value, block: Block, before: Instruction) -> Instruction:
        """The number *value* made of its short form, in front of *before* in *block*."""
        made = Instruction(I64, "sext", [self._short[value]], f"{getattr(value, 'name', 'v')}.long")
        block.instructions.insert(block.instructions.index(before), made)
        return made


def _is_computed(value: Value) -> bool:
    return isinstance(value, Instruction) and value.opcode not in ("sext", "zext")


def _of_loaded(value: Instruction) -> Range | None:
    """The range of *value*, which has more bits than its operand, if that is computed from what is loaded."""
    source = value.operands[0]
    assert isinstance(source.type, ir.IntType)
    bits = source.type.width
    if bits > I32.width or source.type == I1 or not _is_loaded(source, _DEEPEST):
        return None
    if value.opcode == "sext":
        return -(1 << bits - 1), (1 << bits - 1) - 1
    return 0, (1 << bits - ("nneg" in value.flags)) - 1


def _is_loaded(value: Value, depth: int) -> bool:
    if not isinstance(value, Instruction) or not depth:
        return False
    if value.opcode == "load":
        return True
    if value.opcode == "phi" or not isinstance(value.type, ir.IntType):
        return False
    operands = value.arguments if value.opcode == "call" else value.operands
    return any(_is_loaded(operand, depth - 1) for operand in operands)


_CHOOSES = {"llvm.smax": "sgt", "llvm.smin": "slt", "llvm.umax": "sgt", "llvm.umin": "slt", "llvm.abs": "slt"}
"""How the first operand compares with the other one, or with 0, if it is chosen, or is inverted."""
