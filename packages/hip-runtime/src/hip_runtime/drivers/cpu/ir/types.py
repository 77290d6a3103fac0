"""LLVM types as llvmlite's builder represents them, parsed from LLVM's syntax."""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.lexer import Cursor, TokenKind
from hip_runtime.errors import UnsupportedError


class NamedType(ir.Type):
    """A scalar type that llvmlite does not spell, such as ``bfloat``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _to_string(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedType) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


_SIMPLE: dict[str, ir.Type] = {
    "void": ir.VoidType(), "half": ir.HalfType(), "float": ir.FloatType(), "double": ir.DoubleType(),
    **{name: NamedType(name) for name in ("bfloat", "fp128", "x86_fp80", "ppc_fp128")},
}  # fmt: skip


POINTER = ir.PointerType()

_integer = cache(ir.IntType)


class TypeTable:
    """Reads types, each spelling once. Structs with names belong to *context*."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self._known: dict[str, ir.Type] = {}

    def parse(self, spelling: str) -> ir.Type:
        """The type with this spelling; a named struct comes with its definition: ``%name = type {...}``."""
        found = self._known.get(spelling)
        if found is None:
            cursor = Cursor(spelling)
            found = self._define(cursor) if " = type " in spelling else self.read(cursor)
            if not cursor.at_end:
                raise cursor.error("the end of a type")
            self._known[spelling] = found
        return found

    def _define(self, cursor: Cursor) -> ir.Type:
        named = self.read(cursor)
        cursor.expect_mark("=")
        cursor.expect_word("type")
        if cursor.accept_word("opaque"):
            return named
        body = self.read(cursor)
        if named.is_opaque:
            named.packed = body.packed
            named.set_body(*body.elements)
        return named

    def read(self, cursor: Cursor) -> ir.Type:
        """Take one type from *cursor*, with the parameters of a function type behind it."""
        kind = self._read_first(cursor)
        while cursor.is_mark("("):
            kind = self.read_parameters(cursor, kind)
        return kind

    def read_return(self, cursor: Cursor) -> ir.Type:
        """Take one type, and leave parentheses behind it."""
        return self._read_first(cursor)

    def _read_first(self, cursor: Cursor) -> ir.Type:
        kind, text = cursor.token
        if kind is TokenKind.WORD:
            return self._read_word(cursor, text)
        if kind is TokenKind.LOCAL:
            return self.context.get_identified_type(cursor.take())
        if cursor.accept_mark("{"):
            return ir.LiteralStructType(self._read_members(cursor, "}"))
        if cursor.accept_mark("["):
            return self._read_array(cursor)
        if cursor.accept_mark("<"):
            if cursor.accept_mark("{"):
                packed = ir.LiteralStructType(self._read_members(cursor, "}"), packed=True)
                cursor.expect_mark(">")
                return packed
            return self._read_vector(cursor)
        raise cursor.error("a type")

    def _read_word(self, cursor: Cursor, word: str) -> ir.Type:
        if word == "ptr":
            cursor.take()
            space = _read_address_space(cursor)
            return ir.PointerType(addrspace=space) if space else POINTER
        if word in _SIMPLE:
            cursor.take()
            return _SIMPLE[word]
        if word[0] == "i" and word[1:].isdigit():
            cursor.take()
            return _integer(int(word[1:]))
        raise cursor.error("a type that the CPU device knows")

    def _read_members(self, cursor: Cursor, end: str) -> list[ir.Type]:
        members: list[ir.Type] = []
        while not cursor.accept_mark(end):
            if members:
                cursor.expect_mark(",")
            members.append(self.read(cursor))
        return members

    def _read_array(self, cursor: Cursor) -> ir.Type:
        count = int(cursor.take(TokenKind.NUMBER))
        cursor.expect_word("x")
        element = self.read(cursor)
        cursor.expect_mark("]")
        return ir.ArrayType(element, count)

    def _read_vector(self, cursor: Cursor) -> ir.Type:
        if cursor.is_word("vscale"):
            raise UnsupportedError(f"vectors of a length known only at run time are not supported: {cursor.text!r}")
        count = int(cursor.take(TokenKind.NUMBER))
        cursor.expect_word("x")
        element = self.read(cursor)
        cursor.expect_mark(">")
        return ir.VectorType(element, count)

    def read_parameters(self, cursor: Cursor, result: ir.Type) -> ir.FunctionType:
        """Take the parameters of a function that gives *result*, with their parentheses."""
        cursor.expect_mark("(")
        parameters: list[ir.Type] = []
        variadic = False
        while not cursor.accept_mark(")"):
            if parameters or variadic:
                cursor.expect_mark(",")
            if cursor.accept_mark("..."):
                variadic = True
            else:
                parameters.append(self.read(cursor))
        return ir.FunctionType(result, parameters, var_arg=variadic)


def _read_address_space(cursor: Cursor) -> int:
    if not cursor.accept_word("addrspace"):
        return 0
    cursor.expect_mark("(")
    number = int(cursor.take(TokenKind.NUMBER))
    cursor.expect_mark(")")
    return number
