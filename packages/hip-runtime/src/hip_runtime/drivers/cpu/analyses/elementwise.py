"""Functions that a kernel calls, and all of which compute a number from numbers.

Such a function touches no memory but constants, ends, and is the same for each thread, so that all lanes of a group can
call one variant of it at once, see `vectorize.variants`. LLVM finds out which functions are so (``memory(none)``,
``willreturn``). It inlines most; those that are left are marked ``noinline``, or large.
"""

from __future__ import annotations

from dataclasses import replace

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.ir.lexer import Cursor, TokenKind, tokenize
from hip_runtime.drivers.cpu.ir.model import PARAMETER, RESULT, Function, Instruction
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.errors import UnsupportedError

_WORDS = frozenset({"nounwind", "willreturn"})
_NUMBERS = ir.IntType | ir.FloatType | ir.DoubleType


def mark_elementwise_calls(function: Function, module: PrintedModule, context: ir.Context) -> None:
    """Note at the calls in *function* which of the functions of *module* are elementwise, with their graphs; structs
    become types of *context*."""
    found: dict[str, Function | None] = {}
    for instruction in function.instructions():
        name = instruction.callee
        if instruction.call is None or name not in module.functions:
            continue
        if name not in found:
            found[name] = _read_elementwise(module, name, context)
        if found[name] is not None:
            instruction.call = replace(instruction.call, elementwise=found[name])


def _read_elementwise(module: PrintedModule, name: str, context: ir.Context) -> Function | None:
    if not _only_computes(module, module.functions[name][0]):
        return None
    try:
        function = read_function(module, name, context)
    except UnsupportedError:
        return None
    values = list(function.instructions())
    ends = [value for value in values if value.opcode == "ret"]
    if len(ends) != 1 or not ends[0].operands:
        return None
    kinds = [value.type for value in (*function.arguments, *ends[0].operands)]
    if not all(isinstance(kind, _NUMBERS) for kind in kinds):
        return None
    if any(value.opcode == "alloca" or (value.call and not is_arithmetic(value.callee)) for value in values):
        return None
    _take_and_give(function)
    return function


def _take_and_give(function: Function) -> None:
    """Replace the parameters of *function* and what it returns by instructions."""
    given = {value: Instruction(value.type, PARAMETER, [value], value.name) for value in function.arguments}
    for block in function.blocks:
        for value in block.instructions:
            value.operands = [given.get(operand, operand) for operand in value.operands]  # type: ignore[call-overload]
        if block.terminator.opcode == "ret":
            end = block.terminator
            block.instructions.insert(-1, Instruction(end.type, RESULT, end.operands))
            end.operands = []
    function.blocks[0].instructions[:0] = given.values()


def _only_computes(module: PrintedModule, definition: str) -> bool:
    """Whether the first line of a *definition* has attributes that say so."""
    cursor = Cursor(definition)
    cursor.skip_to(TokenKind.GLOBAL)
    cursor.take()
    cursor.take_group()
    tokens = [
        part
        for token in cursor.left
        for part in (tokenize(module.groups[token.text]) if token.kind is TokenKind.ATTRIBUTES else [token])
    ]
    words = [token.text for token in tokens if token.kind in (TokenKind.WORD, TokenKind.MARK)]
    return set(words) >= _WORDS and "memory ( none )" in " ".join(words)
