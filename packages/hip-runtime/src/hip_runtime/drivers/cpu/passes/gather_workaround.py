"""Gathers with undefined indices in optimised code, which get defined indices before the code generator sees them.

On x86-64, a gather whose destination register is its index register is an illegal instruction. LLVM keeps the two
apart, unless it knows that the indices are undefined: then it may pick that register (LLVM 20 to 22; its pass InitUndef
addresses this, but misses cases). Gangs have undefined indices in the lanes past the end of a block, and when a wide
vector is split, the last part may consist of nothing else. A ``freeze`` does not help: it becomes a copy of an
undefined register, which is folded again.

So undefined lanes are traced backwards from the addresses of each gather, and defined where they originate: in
constants and in the masks of shuffles. That is correct whatever lies between the two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.keywords import BINARY, CASTS, FAST_MATH, HINT_ATTRIBUTES, POINTER_FLAGS, WRAPPING
from hip_runtime.drivers.cpu.ir.lexer import Cursor, TokenKind
from hip_runtime.drivers.cpu.ir.types import TypeTable
from hip_runtime.errors import UnsupportedError

_GATHER = "@llvm.masked.gather."
_UNDEFINED = ("poison", "undef")
_FLAGS = WRAPPING | FAST_MATH | POINTER_FLAGS | HINT_ATTRIBUTES
_EITHER = ("select", "phi")
"""If one of their operands is undefined, the code generator uses the other."""


_OTHER_LANES = ("bitcast", "call")
"""A lane of their result may depend on any lane of their operands."""


class _Operand(NamedTuple):
    """A vector operand of an instruction: its type, its text, and where that is."""

    kind: ir.VectorType
    text: str
    start: int
    end: int

    @property
    def undefined(self) -> bool:
        """Whether all of its lanes are undefined."""
        return self.text in _UNDEFINED


def define_gather_lanes(text: str) -> str:
    """The module *text*, as LLVM printed it, with the addresses of all gathers defined; the same object if they
    were."""
    changed: dict[int, str] = {}
    first = text.find(_GATHER)
    while first >= 0:
        start, end = text.rfind("\ndefine ", 0, first), text.find("\n}", first)
        if text.startswith("declare ", text.rfind("\n", 0, first) + 1):
            end = text.find("\n", first)
        else:
            changed |= _Function(text, start, end).run()
        first = text.find(_GATHER, max(end, first + 1))
    pieces, last = [], 0
    for start, line in sorted(changed.items()):
        pieces += [text[last:start], line]
        last = text.find("\n", start)
    return "".join([*pieces, text[last:]]) if changed else text


class _Function:
    def __init__(self, text: str, start: int, end: int) -> None:
        self._types = TypeTable(ir.Context())
        self._lines: dict[str, tuple[int, str]] = {}
        """The offset and the line of the instruction that defines each value."""
        self._gathers: list[str] = []
        self._understood: dict[str, tuple[str, list[_Operand]]] = {}
        place = text.find("\n", start + 1) + 1
        while 0 < place <= end:
            line = text[place : text.find("\n", place)]
            name, equals, _ = line.partition(" = ")
            if equals and name.startswith("  %"):
                self._lines[name[2:]] = place, line
                if _GATHER in line:
                    self._gathers.append(line)
            place += len(line) + 1

    def run(self) -> dict[int, str]:
        """The lines that change: the offset of each, and its new text."""
        looked_at: dict[str, set[int]] = {}
        waiting: list[tuple[str, Iterable[int]]] = []
        for line in self._gathers:
            addresses = self._read(line)[1][0]
            waiting.append((addresses.text, _all(addresses)))
        while waiting:
            name, lanes = waiting.pop()
            seen = looked_at.setdefault(name, set())
            if name in self._lines and not seen.issuperset(lanes):
                seen |= set(lanes)
                waiting += self._define(self._lines[name][1], frozenset(seen))[0]
        changed = {}
        for name, seen in looked_at.items():
            if name in self._lines:
                place, line = self._lines[name]
                other = self._define(line, frozenset(seen))[1]
                if other != line:
                    changed[place] = other
        return changed

    def _define(self, line: str, lanes: frozenset[int]) -> tuple[list[tuple[str, Iterable[int]]], str]:
        """The values and lanes that *lanes* of the value defined by *line* come from, and the line with its undefined
        constants defined."""
        try:
            opcode, operands = self._read(line)
        except UnsupportedError:
            return [], line
        changes: list[tuple[int, int, str]] = []
        needed: list[frozenset[int]] = [lanes] * len(operands)
        if opcode == "shufflevector":
            needed, mask = _choose(operands, lanes)
            changes.append((operands[2].start, operands[2].end, mask))
        elif opcode == "insertelement":
            index = line.partition(", !")[0].rpartition(" ")[2]
            needed = [lanes - {int(index)} if index.isdigit() else lanes]
        elif opcode in _OTHER_LANES:
            needed = [_all(operand) for operand in operands]
        sources: list[tuple[str, Iterable[int]]] = []
        for operand, some in zip(operands, needed, strict=True):
            if operand.text.startswith("%"):
                sources.append((operand.text, some))
            elif some and not (operand.undefined and opcode in _EITHER):
                changes.append((operand.start, operand.end, _fill(operand, some)))
        for start, end, item in sorted(changes, reverse=True):
            line = line[:start] + item + line[end:]
        return sources, line

    def _read(self, line: str) -> tuple[str, list[_Operand]]:
        """The opcode and the vector operands of an instruction."""
        known = self._understood.get(line)
        if known is None:
            known = self._understood[line] = self._read_anew(line)
        return known

    def _read_anew(self, line: str) -> tuple[str, list[_Operand]]:
        cursor = Cursor(line)
        cursor.take(TokenKind.LOCAL)
        cursor.expect_mark("=")
        cursor.accept_word("tail", "musttail", "notail")
        opcode = cursor.take(TokenKind.WORD)
        cursor.take_words(_FLAGS)
        if opcode == "call":
            cursor.skip_to(TokenKind.GLOBAL)
            name = cursor.take()
            cursor.expect_mark("(")
            return opcode, self._read_list(cursor) if name.startswith("llvm.") else []
        if opcode == "getelementptr":
            self._types.read(cursor)
            cursor.expect_mark(",")
        if opcode == "phi":
            return opcode, self._read_incoming(cursor)
        if opcode == "select":
            self._types.read(cursor)
            cursor.take_item()
            cursor.expect_mark(",")
        if opcode not in BINARY | CASTS | {"select", "freeze", "shufflevector", "insertelement", "getelementptr"}:
            return opcode, []
        return opcode, self._read_list(cursor)

    def _read_list(self, cursor: Cursor) -> list[_Operand]:
        """The operands up to the end of the list; the second one of a binary operation has no type of its own."""
        found: list[_Operand] = []
        kind: ir.Type | None = None
        while True:
            if cursor.token.kind is TokenKind.METADATA or cursor.is_mark(")") or cursor.at_end:
                return found
            if cursor.token.kind is not TokenKind.LOCAL and not _starts_constant(cursor):
                kind = self._types.read(cursor)
                _skip_hints(cursor)
            self._take(cursor, kind, found)
            if not cursor.accept_mark(","):
                return found

    def _read_incoming(self, cursor: Cursor) -> list[_Operand]:
        found: list[_Operand] = []
        kind = self._types.read(cursor)
        while cursor.accept_mark("["):
            self._take(cursor, kind, found)
            cursor.expect_mark(",")
            cursor.take_item()
            cursor.expect_mark("]")
            cursor.accept_mark(",")
        return found

    def _take(self, cursor: Cursor, kind: ir.Type | None, found: list[_Operand]) -> None:
        place = cursor.place
        if cursor.is_mark("<"):
            cursor.take_group()
        else:
            cursor.take()
            if cursor.is_mark("("):  # of a constant expression
                cursor.take_group()
        if isinstance(kind, ir.VectorType):
            found.append(_Operand(kind, cursor.text_since(place), *cursor.span_since(place)))


def _all(operand: _Operand) -> frozenset[int]:
    return frozenset(range(operand.kind.count))


def _starts_constant(cursor: Cursor) -> bool:
    """Whether the next token starts a constant without its type."""
    is_vector = cursor.is_mark("<") and cursor.following.kind is not TokenKind.NUMBER
    return is_vector or cursor.is_word(*_UNDEFINED, "zeroinitializer", "splat")


def _skip_hints(cursor: Cursor) -> None:
    while cursor.accept_word(*HINT_ATTRIBUTES):
        if cursor.is_mark("("):
            cursor.take_group()
        elif cursor.token.kind is TokenKind.NUMBER:
            cursor.take()


def _choose(operands: Sequence[_Operand], lanes: frozenset[int]) -> tuple[list[frozenset[int]], str]:
    """The lanes of a shuffle's three operands that *lanes* of its result come from, and the mask with those defined."""
    count = operands[0].kind.count
    mask = _read_mask(operands[2])
    known = [number for number in mask if number is not None]
    in_place = all(number in (None, lane) for lane, number in enumerate(mask))
    other = known[0] if known else 0
    whole = [
        number if number is not None or lane not in lanes else lane % count if in_place else other
        for lane, number in enumerate(mask)
    ]
    chosen = {whole[lane] for lane in lanes} - {None}
    first = frozenset(number for number in chosen if number is not None and number < count)
    second = frozenset(number - count for number in chosen if number is not None and number >= count)
    spelt = ", ".join(f"i32 {'poison' if number is None else number}" for number in whole)
    return [first, second, frozenset()], f"<{spelt}>" if whole != mask else operands[2].text


def _read_mask(mask: _Operand) -> list[int | None]:
    if mask.text == "zeroinitializer":
        return [0] * mask.kind.count
    if mask.undefined:
        return [None] * mask.kind.count
    words = (lane.split()[-1] for lane in mask.text.strip("<>").split(","))
    if mask.text.startswith("splat"):
        (word,) = words
        return [int(word.rstrip(")"))] * mask.kind.count
    return [None if word in _UNDEFINED else int(word) for word in words]


def _fill(constant: _Operand, lanes: frozenset[int]) -> str:
    """*constant* with 0 in those of *lanes* that are undefined."""
    if constant.undefined:
        return "zeroinitializer"
    if not constant.text.startswith("<"):
        return constant.text
    zero = _zero(constant.kind.element)
    cursor = Cursor(constant.text)
    cursor.expect_mark("<")
    found: list[str] = []
    while not cursor.accept_mark(">"):
        place = cursor.place
        words = [token.text for token in cursor.take_item()]
        spelt = cursor.text_since(place)
        if zero and words[-1] in _UNDEFINED and len(found) in lanes:
            spelt = f"{constant.kind.element} {zero}"
        found.append(spelt)
        cursor.accept_mark(",")
    return f"<{', '.join(found)}>"


def _zero(kind: ir.Type) -> str:
    if isinstance(kind, ir.IntType):
        return "0"
    if isinstance(kind, ir.PointerType):
        return "null"
    return "0.0" if isinstance(kind, (ir.HalfType, ir.FloatType, ir.DoubleType)) else ""
