"""Writes an instruction of the graph with llvmlite's builder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.keywords import BINARY, CASTS
from hip_runtime.drivers.cpu.ir.model import Instruction

Part: TypeAlias = "str | ir.Value | ir.Type"


def spell(parts: Sequence[Part]) -> str:
    """The concatenated text of *parts*, with values as operands."""
    return "".join(part.get_reference() if isinstance(part, ir.Value) else str(part) for part in parts)


class Assembled(ir.Instruction):
    """An instruction put together from words, types and operands. llvmlite has no builder for every flag, ordering and
    scope that LLVM has."""

    def __init__(self, block: ir.Block, kind: ir.Type, parts: Sequence[Part], name: str) -> None:
        operands = [part for part in parts if isinstance(part, ir.Value)]
        super().__init__(block, kind, str(parts[0]), operands, name=name)
        self.parts = parts

    def descr(self, buf: list[str]) -> None:
        """Write the part after the name of the result."""
        buf.append(f"{spell(self.parts)}{self._stringify_metadata(leading_comma=True)}\n")


def typed(value: ir.Value) -> list[Part]:
    """An operand with its type."""
    return [value.type, " ", value]


def write_instruction(builder: ir.IRBuilder, instruction: Instruction, operands: Sequence[ir.Value]) -> ir.Value:
    """Insert *instruction* with other operands, and return its result."""
    parts = _WRITERS[instruction.opcode](instruction, operands)
    result = Assembled(builder.block, instruction.type, parts, instruction.name)
    if instruction.ranges:
        kind = instruction.type
        node = builder.module.add_metadata([ir.Constant(kind, number) for number in instruction.ranges])
        result.set_metadata("range", node)
    builder._insert(result)
    return result


def spell_instruction(instruction: Instruction, operands: Sequence[ir.Value]) -> str:
    """The text of *instruction* with *operands*, without the name of its result."""
    return spell(_WRITERS[instruction.opcode](instruction, operands))


def _head(instruction: Instruction, *words: str) -> str:
    return " ".join([instruction.opcode, *words, *instruction.flags]) + " "


def _commas(operands: Sequence[ir.Value]) -> list[Part]:
    parts: list[Part] = []
    for number, operand in enumerate(operands):
        parts += [*([", "] if number else []), *typed(operand)]
    return parts


def _plain(instruction: Instruction, operands: Sequence[ir.Value]) -> list[Part]:
    return [_head(instruction), *_commas(operands)]


def _binary(instruction: Instruction, operands: Sequence[ir.Value]) -> list[Part]:
    left, right = operands
    return [_head(instruction), *typed(left), ", ", right]


def _cast(instruction: Instruction, operands: Sequence[ir.Value]) -> list[Part]:
    return [_head(instruction), *typed(operands[0]), " to ", instruction.type]


def _comparison(instruction: Instruction, operands: Sequence[ir.Value]) -> list[Part]:
    left, right = operands
    return [_head(instruction), f"{instruction.predicate} ", *typed(left), ", ", right]


def _shuffle(instruction: Instruction, operands: Sequence[ir.Value]) -> list[Part]:
    return [_head(instruction), *_commas(operands), ", ", instruction.literal]


def _indexed(instruction: Instruction, operands: Sequence[ir.Value]) -> list[Part]:
    return [_head(instruction), *_commas(operands), *(f", {index}" for index in instruction.indices)]


def _pointer(instruction: Instruction, operands: Sequence[ir.Value]) -> list[Part]:
    assert instruction.source_type is not None
    return [_head(instruction), instruction.source_type, ", ", *_commas(operands)]


def _align(instruction: Instruction) -> str:
    return f", align {instruction.align}" if instruction.align else ""


def _atomic(instruction: Instruction) -> str:
    if instruction.atomic is None:
        return ""
    scope = instruction.atomic.scope
    words = [*([f'syncscope("{scope}")'] if scope else []), *instruction.atomic.orderings]
    return " " + " ".join(words)


def _access(instruction: Instruction, operands: Sequence[ir.Value]) -> list[Part]:
    words = [*(["atomic"] if instruction.atomic else []), *(["volatile"] if instruction.volatile else [])]
    head: list[Part] = [_head(instruction, *words)]
    if instruction.opcode == "load":
        head += [instruction.type, ", "]
    return [*head, *_commas(operands), _atomic(instruction), _align(instruction)]


def _modification(instruction: Instruction, operands: Sequence[ir.Value]) -> list[Part]:
    words = [*(["volatile"] if instruction.volatile else []), instruction.operation]
    return [_head(instruction, *words), *_commas(operands), _atomic(instruction), _align(instruction)]


def _exchange(instruction: Instruction, operands: Sequence[ir.Value]) -> list[Part]:
    words = [*instruction.flags, *(["volatile"] if instruction.volatile else [])]
    head = " ".join(["cmpxchg", *words]) + " "
    return [head, *_commas(operands), _atomic(instruction), _align(instruction)]


def _fence(instruction: Instruction, operands: Sequence[ir.Value]) -> list[Part]:
    return ["fence", _atomic(instruction)]


def _call(instruction: Instruction, operands: Sequence[ir.Value]) -> list[Part]:
    call = instruction.call
    assert call is not None
    *arguments, callee = operands
    words = ["call", *instruction.flags, *([call.convention] if call.convention else []), *call.return_attributes]
    kind = call.function_type if call.function_type.var_arg else call.function_type.return_type
    parts: list[Part] = [" ".join(words), " ", kind, " ", callee, "("]
    for number, (argument, attributes) in enumerate(zip(arguments, call.argument_attributes, strict=True)):
        parts += [", " if number else "", argument.type, " ", "".join(f"{word} " for word in attributes), argument]
    return [*parts, ")", *(f" {word}" for word in call.attributes)]


_WRITERS: dict[str, Callable[[Instruction, Sequence[Any]], list[Part]]] = {
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(CASTS, _cast),
    "fneg": _plain, "freeze": _plain, "icmp": _comparison, "fcmp": _comparison, "select": _plain,
    "extractelement": _plain, "insertelement": _plain, "shufflevector": _shuffle, "extractvalue": _indexed,
    "insertvalue": _indexed, "getelementptr": _pointer, "load": _access, "store": _access,
    "atomicrmw": _modification, "cmpxchg": _exchange, "fence": _fence, "call": _call,
}  # fmt: skip
