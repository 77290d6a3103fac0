"""The syntax of a printed call besides its operands: convention, attributes, type of the function."""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.keywords import (
    BINDING_ATTRIBUTES,
    CALL_ATTRIBUTES,
    CONVENTIONS,
    HINT_ATTRIBUTES,
    REFUSED_ATTRIBUTES,
    REFUSED_CALL_ATTRIBUTES,
)
from hip_runtime.drivers.cpu.ir.lexer import Cursor, TokenKind, tokenize
from hip_runtime.drivers.cpu.ir.model import Call, Constant, Value
from hip_runtime.drivers.cpu.ir.operands import OperandReader
from hip_runtime.drivers.cpu.ir.types import POINTER
from hip_runtime.errors import UnsupportedError


def read_call(operands: OperandReader, cursor: Cursor, groups: Mapping[str, str]) -> tuple[Call, list[Value]]:
    """Parse a call from after its flags up to its metadata: returns it, and its arguments followed by the callee."""
    types = operands.types
    convention = cursor.accept_word(*CONVENTIONS) or ""
    if cursor.is_word("cc"):
        raise cursor.error("a calling convention of ordinary functions")
    return_attributes = _read_attributes(cursor)
    result = types.read_return(cursor)
    declared = types.read_parameters(cursor, result) if cursor.is_mark("(") else None
    callee = _read_callee(operands, cursor)
    cursor.expect_mark("(")
    kinds: list[ir.Type] = []
    attributes: list[tuple[str, ...]] = []
    arguments: list[Value] = []
    while not cursor.accept_mark(")"):
        if kinds:
            cursor.expect_mark(",")
        kinds.append(types.read(cursor))
        attributes.append(_read_attributes(cursor))
        arguments.append(operands.operand(cursor, kinds[-1]))
    call = Call(
        declared or ir.FunctionType(result, kinds),
        convention,
        return_attributes,
        tuple(attributes),
        _read_call_attributes(cursor, groups),
    )
    return call, [*arguments, callee]


def _read_attributes(cursor: Cursor) -> tuple[str, ...]:
    """Attributes of a parameter or of the result; those that are hints are left out."""
    kept: list[str] = []
    while True:
        if cursor.is_word(*REFUSED_ATTRIBUTES):
            raise cursor.error("a parameter that is passed as a plain value")
        if cursor.token.kind is TokenKind.STRING:
            cursor.take()
            if cursor.accept_mark("="):
                cursor.take(TokenKind.STRING)
        elif cursor.is_word(*BINDING_ATTRIBUTES):
            kept.append(cursor.take())
        elif cursor.is_word(*HINT_ATTRIBUTES):
            cursor.take()
            if cursor.is_mark("("):
                cursor.take_group()
            elif cursor.token.kind is TokenKind.NUMBER and cursor.previous == "align":
                cursor.take()
        else:
            return tuple(kept)


def _read_callee(operands: OperandReader, cursor: Cursor) -> Value:
    if cursor.is_word("asm"):
        return _read_assembly(cursor)
    return operands.operand(cursor, POINTER)


def _read_assembly(cursor: Cursor) -> Constant:
    """Inline assembly as the callee: it has no name, so it may have any effect."""
    place = cursor.place
    while cursor.token.kind is TokenKind.WORD:  # `asm`, and what it may do
        cursor.take()
    cursor.take(TokenKind.STRING)
    cursor.expect_mark(",")
    cursor.take(TokenKind.STRING)
    return Constant(POINTER, cursor.text_since(place))


def _read_call_attributes(cursor: Cursor, groups: Mapping[str, str]) -> tuple[str, ...]:
    """The attributes of a call that are kept, both its own and those of its attribute group."""
    words: set[str] = set()
    while not cursor.at_end and not cursor.is_mark(","):
        if cursor.token.kind is TokenKind.ATTRIBUTES:
            group = tokenize(groups[cursor.take()])
            words.update(token.text for token in group if token.kind is TokenKind.WORD)
        elif cursor.is_word(*CALL_ATTRIBUTES, *REFUSED_CALL_ATTRIBUTES):
            words.add(cursor.take())
        else:
            raise cursor.error("the end of the call")
    refused = words & REFUSED_CALL_ATTRIBUTES
    if refused:
        raise UnsupportedError(f"the CPU device cannot run calls that are {', '.join(sorted(refused))}")
    return tuple(sorted(words & CALL_ATTRIBUTES))
