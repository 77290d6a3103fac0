"""Patterns of correct, optimised IR that LLVM's x86-64 code generator miscompiles, or on which it aborts, rewritten
before it sees them.

llvmlite cannot change an instruction that LLVM made, so the printed module is read token by token, and replacements are
parsed with the rest of it. The patterns are:

- Vector shifts with a different amount per lane, in which some lanes are unused. For ``a >> 40`` and ``b & 255`` that
  are stored side by side, LLVM's SLP vectoriser emits one shift by 40 and 255, one ``and``, and a shuffle. An
  out-of-range shift is poison, and so is an ``exact`` one that is not exact. The code generator treats such a lane as 0
  and merges the vectors by ``or`` (``matchBinaryPermuteShuffle``), but the processor's lane holds bits of ``b >> 63``
  (LLVM 20 to 22). The rewritten shifts have amounts in range and no flags.
- With AVX-512, a store of truncated integers under a constant mask with one lane set writes the wide integers (LLVM 22,
  LLVM issue 179489). The rewritten store is one of a scalar.
- The same if the stored value is a select, by such a mask, of truncated integers and the old memory. The rewritten
  select is a shuffle.
- The lesser of two unsigned integers, of which one was converted from a floating-point number. The code generator makes
  one saturating conversion of both where the other is a power of two less one, and aborts where that is 0: an integer
  of 0 bits (LLVM 22, ``PerformUMinFpToSatCombine``). LLVM's passes leave no 0 there, but a loaded vector of which lanes
  are masked off becomes one when it is split. A freeze keeps the two apart.
- Gathers with undefined indices, see `gather_workaround`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.keywords import HINT_ATTRIBUTES, WRAPPING
from hip_runtime.drivers.cpu.ir.lexer import Cursor, TokenKind
from hip_runtime.drivers.cpu.ir.types import TypeTable
from hip_runtime.drivers.cpu.passes.gather_workaround import define_gather_lanes

Lines = list[str] | None
"""The lines that replace an instruction, `None` if it stays."""

Lanes = list[int | None]
"""The elements of a constant vector; `None` for undefined ones."""

_COMPARISONS = ("@llvm.umin.v", " = icmp u")

_SHIFTS = ("shl", "shl nuw", "shl nsw", "shl nuw nsw", "lshr", "lshr exact", "ashr", "ashr exact")


def avoid_miscompiled_patterns(text: str) -> str:
    """The module *text*, as LLVM printed it, without these patterns; the same object if there were none."""
    return define_gather_lanes(_Rewriter(text).run())


class _Rewriter:
    def __init__(self, text: str) -> None:
        self._text = text
        self._types = TypeTable(ir.Context())
        self._names = (name for number in range(len(text)) if (name := f"%rewritten.{number}") not in text)
        self._place = 0
        """Where the current instruction starts."""

    def run(self) -> str:
        text = self._text
        changed: dict[int, tuple[int, list[str]]] = {}
        for word, change in _CHANGES.items():
            found = text.find(word)
            while found >= 0:
                self._place, end = text.rfind("\n", 0, found) + 1, text.find("\n", found)
                if text.startswith("  ", self._place):
                    lines = change(self, Cursor(text[self._place : end]))
                    if lines is not None:
                        changed[self._place] = end, lines
                found = text.find(word, end)
        pieces, last = [], 0
        for start, (end, lines) in sorted(changed.items()):
            pieces += [text[last:start], "\n".join(f"  {line}" for line in lines)]
            last = end
        return "".join([*pieces, text[last:]]) if changed else text

    def shift(self, cursor: Cursor) -> Lines:
        """A shift with a different amount per lane, with all amounts in range and without flags."""
        result = _take_result(cursor)
        opcode, flags = cursor.take(TokenKind.WORD), cursor.take_words(WRAPPING)
        kind, spelling = self._take_type(cursor)
        shifted = _take_item(cursor)
        cursor.expect_mark(",")
        amounts = _take_item(cursor)
        rest, width = _take_rest(cursor), kind.element.width
        numbers = _read_lanes(amounts, kind.count)
        if numbers is None:
            if not self._may_have(amounts, kind, width):
                return None
            masked, most = next(self._names), _print_vector([width - 1] * kind.count, kind)
            return [
                f"{masked} = and {spelling} {amounts}, {most}",
                f"{result} = {opcode} {spelling} {shifted}, {masked}{rest}",
            ]
        known = [number for number in numbers if number is not None]
        possible = [number for number in known if number < width]
        if not possible or (len(possible) == len(known) and (not flags or len(set(known)) == 1)):
            return None
        kept: Lanes = [number if number is None or number < width else possible[0] for number in numbers]
        return [f"{result} = {opcode} {spelling} {shifted}, {_print_vector(kept, kind)}{rest}"]

    def _may_have(self, value: str, kind: ir.VectorType, least: int) -> bool:
        """Whether a vector that is built from others and from constants may have an element of *least* or more."""
        waiting, seen = [value], set()
        while waiting:
            value = waiting.pop()
            if any(lane is not None and lane >= least for lane in _read_lanes(value, kind.count) or ()):
                return True
            if value.startswith("%") and value not in seen:
                seen.add(value)
                waiting += self._parts_of(value)
        return False

    def _parts_of(self, value: str) -> list[str]:
        """The operands that the vector *value* is built from."""
        text = self._text
        start, end = text.rfind("\ndefine ", 0, self._place), text.find("\n}", self._place)
        place = text.find(f"\n  {value} = ", start, end)
        if place < 0:  # a parameter
            return []
        cursor = Cursor(text[place + 1 : text.find("\n", place + 1)])
        _take_result(cursor)
        if not cursor.accept_word("insertelement", "shufflevector"):
            return []
        parts = []
        for _ in range(2):
            kind, _ = self._take_type(cursor)
            part = _take_item(cursor)
            parts.append(part if isinstance(kind, ir.VectorType) else f"<{kind} {part}>")
            cursor.expect_mark(",")
        return parts

    def store(self, cursor: Cursor) -> Lines:
        """A store under a mask with one lane set, as a store of a scalar."""
        while not cursor.accept_mark("("):
            cursor.take()
        kind, spelling = self._take_type(cursor)
        stored = _take_item(cursor)
        cursor.expect_mark(",")
        cursor.expect_word("ptr")
        align = _skip_hints(cursor)
        place = _take_item(cursor)
        cursor.expect_mark(",")
        if cursor.accept_word("i32"):  # LLVM 20 has the alignment here
            align = int(cursor.take(TokenKind.NUMBER))
            cursor.expect_mark(",")
        self._take_type(cursor)
        mask = _read_lanes(_take_item(cursor), kind.count)
        cursor.expect_mark(")")
        if not isinstance(kind.element, ir.IntType) or mask is None or mask.count(1) != 1:
            return None
        while cursor.token.kind is TokenKind.ATTRIBUTES:
            cursor.take()
        lane, scalar, where = mask.index(1), next(self._names), next(self._names)
        return [
            f"{scalar} = extractelement {spelling} {stored}, i64 {lane}",
            f"{where} = getelementptr {kind.element}, ptr {place}, i64 {lane}",
            f"store {kind.element} {scalar}, ptr {where}, align {align}{_take_rest(cursor)}",
        ]

    def select(self, cursor: Cursor) -> Lines:
        """A select of integers by a constant mask, as a shuffle."""
        result = _take_result(cursor)
        cursor.expect_word("select")
        kind, _ = self._take_type(cursor)
        mask = _read_lanes(_take_item(cursor), kind.count)
        if mask is None:
            return None
        cursor.expect_mark(",")
        kind, spelling = self._take_type(cursor)
        first = _take_item(cursor)
        cursor.expect_mark(",")
        self._take_type(cursor)
        second = _take_item(cursor)
        if not isinstance(kind, ir.VectorType) or not isinstance(kind.element, ir.IntType):
            return None
        lanes = ", ".join(f"i32 {lane if chosen else kind.count + lane}" for lane, chosen in enumerate(mask))
        shuffled = f"{spelling} {first}, {spelling} {second}, <{kind.count} x i32> <{lanes}>"
        return [f"{result} = shufflevector {shuffled}{_take_rest(cursor)}"]

    def conversion(self, cursor: Cursor) -> Lines:
        """A conversion to unsigned integers, frozen where the lesser of these and of other variables is taken."""
        result = _take_result(cursor)
        if not self._is_compared(result):
            return None
        start = cursor.place
        while not cursor.accept_word("to"):
            cursor.take()
        _, spelling = self._take_type(cursor)
        converted, operation = next(self._names), cursor.text_since(start)
        return [f"{converted} = {operation}{_take_rest(cursor)}", f"{result} = freeze {spelling} {converted}"]

    def _is_compared(self, value: str) -> bool:
        """Whether the vector *value* is compared with another that is not constant, or the lesser of both is taken."""
        text = self._text
        end = text.find("\n}", self._place)
        for word in _COMPARISONS:
            found = text.find(word, self._place, end)
            while found >= 0:
                line_end = text.find("\n", found)
                operands = text[found + len(word) : line_end]
                if operands.count("%") > 1 and any(f" {value}{mark}" in f"{operands}\n" for mark in ",)\n"):
                    return True
                found = text.find(word, line_end, end)
        return False

    def _take_type(self, cursor: Cursor) -> tuple[ir.Type, str]:
        """A type, and its text."""
        start = cursor.place
        kind = self._types.read(cursor)
        return kind, cursor.text_since(start)


_CHANGES: dict[str, Callable[[_Rewriter, Cursor], Lines]] = {
    **{f" = {shift} <": _Rewriter.shift for shift in _SHIFTS},
    " = fptoui <": _Rewriter.conversion,
    "@llvm.masked.store.": _Rewriter.store,
    " = select <": _Rewriter.select,
}
"""Text that occurs in the lines that may have to change, and the method that rewrites them."""


def _take_result(cursor: Cursor) -> str:
    start = cursor.place
    cursor.take(TokenKind.LOCAL)
    result = cursor.text_since(start)
    cursor.expect_mark("=")
    return result


def _take_item(cursor: Cursor) -> str:
    start = cursor.place
    cursor.take_item()
    return cursor.text_since(start)


def _take_rest(cursor: Cursor) -> str:
    """The rest of an instruction, such as its metadata, with the comma in front."""
    start = cursor.place
    while not cursor.at_end:
        cursor.take()
    return cursor.text_since(start) if cursor.place > start else ""


def _skip_hints(cursor: Cursor) -> int:
    """Take the attributes of a parameter, and return the alignment among them."""
    align = 1
    while hint := cursor.accept_word(*HINT_ATTRIBUTES):
        if cursor.is_mark("("):
            cursor.take_group()
        elif cursor.token.kind is TokenKind.NUMBER:
            number = int(cursor.take())
            align = number if hint == "align" else align
    return align


def _print_vector(lanes: Lanes, kind: ir.VectorType) -> str:
    words = ("poison" if lane is None else str(lane) for lane in lanes)
    return f"<{', '.join(f'{kind.element} {word}' for word in words)}>"


def _read_lanes(constant: str, count: int) -> Lanes | None:
    """The elements of a constant vector of integers, *count* if its text does not say; `None` if it is something
    else."""
    cursor = Cursor(constant)
    if cursor.accept_word("zeroinitializer"):
        return [0] * count
    if cursor.accept_word("splat"):
        cursor.expect_mark("(")
        lane = _read_lane(cursor)
        return None if lane is False else [lane] * count
    if not cursor.accept_mark("<"):
        return None
    lanes: Lanes = []
    while not cursor.accept_mark(">"):
        lane = _read_lane(cursor)
        if lane is False:
            return None
        lanes.append(lane)
        cursor.accept_mark(",")
    return lanes


def _read_lane(cursor: Cursor) -> int | Literal[False] | None:
    """An integer with its type: `None` if it is undefined, `False` if it is not an integer."""
    kind = cursor.take(TokenKind.WORD)
    item = cursor.take_item()
    text = item[0].text if len(item) == 1 else ""
    if text in ("poison", "undef"):
        return None
    if text in ("true", "false"):
        return 1 if text == "true" else 0
    return int(text) % (1 << int(kind[1:])) if text.lstrip("-").isdigit() and kind[1:].isdigit() else False
