"""What a printed call says beside its operands: convention, attributes, type of the function."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from llvmlite import ir

from hip_runtime.drivers.cpu.spmd.ir.graph import Call
from hip_runtime.drivers.cpu.spmd.ir.text import Cursor, Token, TokenKind, tokenize
from hip_runtime.drivers.cpu.spmd.ir.types import TypeTable
from hip_runtime.drivers.cpu.spmd.ir.words import (
    BINDING_ATTRIBUTES,
    CALL_ATTRIBUTES,
    CONVENTIONS,
    HINT_ATTRIBUTES,
    OPERAND_WORDS,
    REFUSED_ATTRIBUTES,
    REFUSED_CALL_ATTRIBUTES,
)
from hip_runtime.errors import UnsupportedError


def with_group(call: Call, groups: Iterable[bytes]) -> Call:
    """*call* with the attributes that it refers to by the number of a group, as LLVM's objects list them."""
    words = {token.text for group in groups for token in tokenize(group.decode()) if token.kind is TokenKind.WORD}
    refused = words & REFUSED_CALL_ATTRIBUTES
    if refused:
        raise UnsupportedError(f"the CPU device cannot run calls that are {', '.join(sorted(refused))}")
    return replace(call, attributes=tuple(sorted(words & CALL_ATTRIBUTES)))


def skip_tail(cursor: Cursor) -> None:
    """Take the marker of a tail call; one that must be made as such has no meaning in a cut function."""
    if cursor.is_word("musttail"):
        raise cursor.error("a call that need not be a tail call")
    cursor.accept_word("tail", "notail")


def read_call(types: TypeTable, cursor: Cursor, count: int) -> Call:
    """Take a call with *count* arguments, from behind its flags up to its metadata."""
    convention = cursor.accept_word(*CONVENTIONS) or ""
    if cursor.is_word("cc"):
        raise cursor.error("a calling convention of ordinary functions")
    return_attributes = _read_attributes(types, cursor)
    result = types.read_return(cursor)
    declared = types.read_parameters(cursor, result) if cursor.is_mark("(") else None
    _skip_callee(cursor)
    cursor.expect_mark("(")
    kinds: list[ir.Type] = []
    attributes: list[tuple[str, ...]] = []
    while not cursor.accept_mark(")"):
        if kinds:
            cursor.expect_mark(",")
        kinds.append(types.read(cursor))
        attributes.append(_read_attributes(types, cursor))
        _check_operand(cursor, cursor.take_item())
    if len(kinds) != count:
        raise cursor.error(f"{count} arguments")
    return Call(
        declared or ir.FunctionType(result, kinds),
        convention,
        return_attributes,
        tuple(attributes),
        _read_call_attributes(cursor),
    )


def _read_attributes(types: TypeTable, cursor: Cursor) -> tuple[str, ...]:
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


def _skip_callee(cursor: Cursor) -> None:
    if cursor.is_word("asm"):
        raise cursor.error("a function, not assembly")
    if cursor.token.kind in (TokenKind.GLOBAL, TokenKind.LOCAL):
        cursor.take()
        return
    cursor.take(TokenKind.WORD)
    if cursor.is_mark("(") and cursor.previous in ("inttoptr", "getelementptr", "addrspacecast", "bitcast"):
        cursor.take_group()


def _check_operand(cursor: Cursor, tokens: list[Token]) -> None:
    first = tokens[0] if tokens else None
    if first is None or (first.kind is TokenKind.WORD and first.text not in OPERAND_WORDS):
        raise cursor.error("an attribute or an operand that is known" + (f", not {first.text!r}" if first else ""))


def _read_call_attributes(cursor: Cursor) -> tuple[str, ...]:
    kept: list[str] = []
    while not cursor.at_end and not cursor.is_mark(","):
        if cursor.token.kind is TokenKind.ATTRIBUTES:
            cursor.take()  # a group; the reader asks LLVM's objects what is in it
        elif cursor.is_word(*CALL_ATTRIBUTES):
            kept.append(cursor.take())
        else:
            raise cursor.error("the end of the call")
    return tuple(kept)
