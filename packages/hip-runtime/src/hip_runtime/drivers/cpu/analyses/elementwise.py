"""Elementwise functions: callees of a kernel that compute a number from numbers, and do nothing else.

Such a function accesses no memory but constants, returns, and does not depend on the thread, so that all lanes of a
gang can call a vector variant of it at once, see `vectorize.vector_variants`. LLVM infers which functions these are
(``memory(none)``, ``willreturn``). It inlines most of them; those that are left are marked ``noinline``, or large."""

from __future__ import annotations

from dataclasses import replace

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.ir.lexer import Cursor, TokenKind, tokenize
from hip_runtime.drivers.cpu.ir.model import PARAMETER, RESULT, Function, Instruction
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.errors import UnsupportedError

_ATTRIBUTES = frozenset({"nounwind", "willreturn"})
_NUMBERS = ir.IntType | ir.FloatType | ir.DoubleType


def mark_elementwise_calls(function: Function, module: PrintedModule, context: ir.Context) -> None:
    """Attach to the calls in *function* the graphs of those functions of *module* that are elementwise; structs become
    types of *context*."""
    found: dict[str, Function | None] = {}
    for instruction in function.instructions():
        name = instruction.callee
        if instruction.call is None or name not in module.functions:
            continue
        if name not in found:
            found[name] = read_elementwise(module, name, context)
        if found[name] is not None:
            instruction.call = replace(instruction.call, elementwise=found[name])


def read_elementwise(module: PrintedModule, name: str, context: ir.Context) -> Function | None:
    """The graph of the function *name* of *module*, with its parameters and result as instructions, if all it does is
    to compute a number from numbers."""
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
    _insert_parameters_and_result(function)
    return function


def _insert_parameters_and_result(function: Function) -> None:
    """Replace the arguments of *function* and its return value by instructions."""
    parameters = {value: Instruction(value.type, PARAMETER, [value], value.name) for value in function.arguments}
    for block in function.blocks:
        for value in block.instructions:
            value.operands = [parameters.get(operand, operand) for operand in value.operands]  # type: ignore[call-overload]
        if block.terminator.opcode == "ret":
            end = block.terminator
            block.instructions.insert(-1, Instruction(end.type, RESULT, end.operands))
            end.operands = []
    function.blocks[0].instructions[:0] = parameters.values()


def _only_computes(module: PrintedModule, definition: str) -> bool:
    """Whether the attributes in the first line of a *definition* say that the function only computes."""
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
    return set(words) >= _ATTRIBUTES and "memory ( none )" in " ".join(words)
