"""Metadata nodes of a module, for which llvmlite has no objects: ranges of integers, and debug locations."""

from __future__ import annotations

import os
from collections.abc import Mapping

from hip_runtime.drivers.cpu.ir.lexer import Cursor, TokenKind


class MetadataTable:
    """The metadata *nodes* of a printed module, by their numbers."""

    def __init__(self, nodes: Mapping[str, str]) -> None:
        self._nodes = nodes
        self._locations: dict[str, str] = {}

    def ranges(self, number: str) -> tuple[int, ...]:
        """The integers of a ``!range`` node."""
        cursor = self._cursor(number)
        cursor.expect_mark("!")
        cursor.expect_mark("{")
        values: list[int] = []
        while not cursor.accept_mark("}"):
            if values:
                cursor.expect_mark(",")
            cursor.take(TokenKind.WORD)
            values.append(int(cursor.take(TokenKind.NUMBER)))
        return tuple(values)

    def text(self, number: str) -> str:
        """The string of a node that consists of one."""
        cursor = self._cursor(number)
        cursor.expect_mark("!")
        cursor.expect_mark("{")
        return cursor.take(TokenKind.METADATA)

    def location(self, number: str) -> str:
        """``file:line`` of a ``!dbg`` node, as far as it is known."""
        known = self._locations.get(number)
        if known is None:
            known = self._locations[number] = self._find_location(number)
        return known

    def _find_location(self, number: str) -> str:
        fields = self._fields(number)
        line = fields.get("line", "0")
        scope = fields.get("scope")
        while scope is not None:
            fields = self._fields(scope)
            if "file" in fields:
                file = self._fields(fields["file"])
                name = os.path.join(file.get("directory", ""), file.get("filename", ""))
                return f"{name}:{line}" if line != "0" else name
            scope = fields.get("scope")
        return f"line {line}" if line != "0" else ""

    def _cursor(self, number: str) -> Cursor:
        cursor = Cursor(self._nodes[number])
        cursor.accept_word("distinct")
        return cursor

    def _fields(self, number: str) -> dict[str, str]:
        """The fields of a specialised node that are a single token."""
        cursor = self._cursor(number)
        fields: dict[str, str] = {}
        if cursor.token.kind is not TokenKind.METADATA:
            return fields
        cursor.take()
        cursor.expect_mark("(")
        while not cursor.accept_mark(")"):
            name = cursor.take(TokenKind.WORD)
            cursor.expect_mark(":")
            value = cursor.take_item()
            if len(value) == 1:
                fields[name] = value[0].text
            cursor.accept_mark(",")
        return fields
