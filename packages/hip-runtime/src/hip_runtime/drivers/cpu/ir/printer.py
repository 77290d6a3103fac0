"""A graph as text, in LLVM's syntax as far as LLVM has one for it."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.model import (
    AGREE,
    FIRST,
    RAMP,
    ROW,
    Block,
    Constant,
    Function,
    Instruction,
    Symbol,
    Value,
)
from hip_runtime.drivers.cpu.ir.symbol_declarations import Spelled
from hip_runtime.drivers.cpu.ir.writer import spell_instruction

Note = Callable[[Instruction], str]
"""What to write behind an instruction, such as its shape; empty for nothing."""


def print_function(function: Function, note: Note | None = None) -> str:
    """The text of *function*, with the comment *note* for each instruction.

    Blocks and values have their names in the graph; if two share a name, the second gets a number. What LLVM does not
    have is written like a call: ``synchronise`` and ``agree``, see `model`.
    """
    return _Printer(function, note).print()


class _Printer:
    def __init__(self, function: Function, note: Note | None) -> None:
        self._function = function
        self._note = note
        self._names: dict[Value | Block, str] = {}
        taken: set[str] = set()
        for argument in function.arguments:
            self._names[argument] = _unique(argument.name or "arg", taken)
        for block in function.blocks:
            self._names[block] = _unique(block.name, taken)
            for instruction in block.instructions:
                self._names[instruction] = _unique(instruction.name or "v", taken)
                if instruction.opcode == "synchronise":  # the call is in no block
                    self._names[instruction.operands[0]] = _unique(
                        getattr(instruction.operands[0], "name", "") or "v", taken
                    )

    def print(self) -> str:
        function = self._function
        parameters = ", ".join(f"{argument.type} {self._operand(argument)}" for argument in function.arguments)
        returned = (one.operands[0].type for one in function.instructions() if one.opcode == "ret" and one.operands)
        lines = [f"define {next(returned, 'void')} @{_quoted(function.name)}({parameters}) {{"]
        for block in function.blocks:
            lines.append(f"{_quoted(self._names[block])}:")
            lines += (f"  {self._line(instruction)}" for instruction in block.instructions)
        return "\n".join([*lines, "}"]) + "\n"

    def _line(self, instruction: Instruction) -> str:
        write = _SPECIAL.get(instruction.opcode)
        text = write(self, instruction) if write else self._plain(instruction)
        if not isinstance(instruction.type, ir.VoidType):
            text = f"{self._operand(instruction)} = {text}"
        notes = [self._note(instruction) if self._note else "", instruction.location]
        comment = "; ".join(filter(None, notes))
        return f"{text}  ; {comment}" if comment else text

    def _plain(self, instruction: Instruction) -> str:
        text = spell_instruction(instruction, [self._spelled(value) for value in instruction.operands])
        if instruction.ranges:
            text += f"  ; range {', '.join(map(str, instruction.ranges))}"
        return text

    def _spelled(self, value: Value) -> ir.Value:
        return Spelled(value.type, self._operand(value))

    def _operand(self, value: Value) -> str:
        if isinstance(value, Constant):
            return value.text
        if isinstance(value, Symbol):
            return f"@{_quoted(value.name)}"
        return f"%{_quoted(self._names.get(value, 'UNDEFINED'))}"

    def _typed(self, value: Value) -> str:
        return f"{value.type} {self._operand(value)}"

    def _label(self, block: Block) -> str:
        return f"label %{_quoted(self._names.get(block, 'UNDEFINED'))}"

    # what the writer has no text for

    def _phi(self, instruction: Instruction) -> str:
        pairs = zip(instruction.operands, instruction.targets, strict=True)
        incoming = ", ".join(f"[ {self._operand(value)}, {self._label(block)[6:]} ]" for value, block in pairs)
        return " ".join(["phi", *instruction.flags, str(instruction.type), incoming])

    def _alloca(self, instruction: Instruction) -> str:
        align = f", align {instruction.align}" if instruction.align else ""
        return f"alloca {instruction.source_type}, {self._typed(instruction.operands[0])}{align}"

    def _branch(self, instruction: Instruction) -> str:
        parts = [*map(self._typed, instruction.operands), *map(self._label, instruction.targets)]
        return f"br {', '.join(parts)}"

    def _switch(self, instruction: Instruction) -> str:
        (value,) = instruction.operands
        default, *targets = map(self._label, instruction.targets)
        cases = " ".join(
            f"{value.type} {number}, {target}" for number, target in zip(instruction.cases, targets, strict=True)
        )
        return f"switch {self._typed(value)}, {default} [ {cases} ]"

    def _return(self, instruction: Instruction) -> str:
        return f"ret {self._typed(instruction.operands[0])}" if instruction.operands else "ret void"

    def _unreachable(self, instruction: Instruction) -> str:
        return "unreachable"

    def _synchronise(self, instruction: Instruction) -> str:
        call, *keys = instruction.operands
        assert isinstance(call, Instruction)
        result = "" if isinstance(call.type, ir.VoidType) else f"{self._operand(call)} = "
        behind = ", ".join([*map(self._typed, keys), *map(self._label, instruction.targets)])
        return f"synchronise {result}{self._plain(call)} then {behind}"

    def _agree(self, instruction: Instruction) -> str:
        return f"agree {instruction.predicate} {self._typed(instruction.operands[0])}"

    def _across_lanes(self, instruction: Instruction) -> str:
        return f"{instruction.opcode} {', '.join(map(self._typed, instruction.operands))}"


_SPECIAL: dict[str, Callable[[_Printer, Instruction], str]] = {
    "phi": _Printer._phi, "alloca": _Printer._alloca, "br": _Printer._branch, "switch": _Printer._switch,
    "ret": _Printer._return, "unreachable": _Printer._unreachable, "synchronise": _Printer._synchronise,
    AGREE: _Printer._agree, FIRST: _Printer._across_lanes, RAMP: _Printer._across_lanes,
    ROW: _Printer._across_lanes,
}  # fmt: skip


def _unique(name: str, taken: set[str]) -> str:
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{name}.{number}"
    taken.add(found)
    return found


def _quoted(name: str) -> str:
    """A name as LLVM spells it, in quotes where it has other characters than identifiers have."""
    plain = bool(name) and all((letter.isalnum() and letter.isascii()) or letter in "._$-" for letter in name)
    if plain and not name[0].isdigit():
        return name
    escaped = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in
                      name.encode("utf-8", "surrogateescape"))  # fmt: skip
    return f'"{escaped}"'
