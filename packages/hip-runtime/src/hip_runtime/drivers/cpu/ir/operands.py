"""Operands of printed instructions: values of the function, globals, constants; each is one object everywhere."""

from __future__ import annotations

from collections.abc import Iterable

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.keywords import CONSTANT_EXPRESSIONS, CONSTANT_WORDS
from hip_runtime.drivers.cpu.ir.lexer import Cursor, TokenKind
from hip_runtime.drivers.cpu.ir.model import Argument, Block, Constant, Instruction, Symbol, Value
from hip_runtime.drivers.cpu.ir.types import TypeTable
from hip_runtime.errors import UnsupportedError


class OperandReader:
    """Reads operands of one function, whose blocks, parameters and instructions are known by name."""

    def __init__(self, types: TypeTable, arguments: Iterable[tuple[str, Argument]], blocks: dict[str, Block]) -> None:
        self.types = types
        self._blocks = blocks
        self._locals: dict[str, Value] = dict(arguments)
        self._shared: dict[tuple[str, str], Value] = {}

    def define(self, name: str, instruction: Instruction) -> None:
        """Record *name* as the result of *instruction*."""
        self._locals[name] = instruction

    def block(self, cursor: Cursor) -> Block:
        """Take the name of a block."""
        return self._blocks[cursor.take(TokenKind.LOCAL)]

    def target(self, cursor: Cursor) -> Block:
        """Take ``label %block``."""
        cursor.expect_word("label")
        return self.block(cursor)

    def typed(self, cursor: Cursor) -> tuple[ir.Type, Value]:
        """Take a type and an operand of it."""
        kind = self.types.read(cursor)
        return kind, self.operand(cursor, kind)

    def several(self, cursor: Cursor, count: int) -> tuple[list[ir.Type], list[Value]]:
        """Take *count* operands with a type each, as they are separated by commas."""
        kinds: list[ir.Type] = []
        values: list[Value] = []
        for number in range(count):
            if number:
                cursor.expect_mark(",")
            kind, value = self.typed(cursor)
            kinds.append(kind)
            values.append(value)
        return kinds, values

    def operand(self, cursor: Cursor, kind: ir.Type) -> Value:
        """Take an operand of type *kind*."""
        token = cursor.token
        if token.kind is TokenKind.LOCAL:
            cursor.take()
            found = self._locals.get(token.text)
            if found is None:
                raise UnsupportedError(f"cannot read {cursor.text.strip()!r}: {token.text!r} is not a value")
            return found
        place = cursor.place
        _skip_constant(cursor)
        text = f"@{token.text}" if token.kind is TokenKind.GLOBAL else cursor.text_since(place)
        key = str(kind), text
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = _constant(kind, text, cursor, place)
        return shared

    def one(self, kind: ir.IntType) -> Value:
        """The number 1, which LLVM does not print as the element count of an alloca."""
        return self._shared.setdefault((str(kind), "1"), Constant(kind, "1", 1))


def _constant(kind: ir.Type, text: str, cursor: Cursor, place: int) -> Value:
    tokens = cursor.tokens_since(place)
    first = tokens[0]
    if first.kind is TokenKind.GLOBAL:
        return Symbol(kind, first.text)
    if isinstance(kind, ir.IntType) and len(tokens) == 1:
        if first.kind is TokenKind.NUMBER:
            return Constant(kind, text, int(text) % (1 << kind.width))
        if text in ("true", "false"):
            return Constant(kind, text, int(text == "true"))
    names = tuple(dict.fromkeys(token.text for token in tokens if token.kind is TokenKind.GLOBAL))
    if any(token.kind is TokenKind.WORD and token.text == "blockaddress" for token in tokens):
        raise UnsupportedError(f"the CPU device does not support addresses of blocks: {text!r}")
    return Constant(kind, text, None, names)


def _skip_constant(cursor: Cursor) -> None:
    """Take a constant, or the name of a global, as the Language Reference spells them, and no token more."""
    kind, text = cursor.token
    if kind in (TokenKind.GLOBAL, TokenKind.NUMBER):
        cursor.take()
    elif kind is TokenKind.MARK:
        cursor.take_group()
    elif kind is TokenKind.WORD and text in CONSTANT_WORDS:
        cursor.take()
    elif kind is TokenKind.WORD and text == "c":
        cursor.take()
        cursor.take(TokenKind.STRING)
    elif kind is TokenKind.WORD and text in CONSTANT_EXPRESSIONS:
        cursor.take()
        while cursor.token.kind is TokenKind.WORD:  # flags
            if cursor.take() == "inrange":
                cursor.take_group()
        cursor.take_group()
    else:
        raise cursor.error("an attribute or an operand that is known" + (f", not {text!r}" if text else ""))
