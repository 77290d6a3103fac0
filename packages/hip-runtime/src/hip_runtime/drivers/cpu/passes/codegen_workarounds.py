"""Optimised code of which LLVM's code generator for x86-64 makes wrong code, said in other words before it sees it.

llvmlite cannot change an instruction that LLVM made, so the printed ones are read token by token, and what stands for
them is parsed with the rest of the module. All of what is looked for is right as LLVM IR:

- Vectors of which each lane is shifted by another number, with lanes that nobody looks at. Of ``a >> 40`` and
  ``b & 255`` that are stored side by side, LLVM's SLP vectoriser makes a shift of both, by 40 and 255, an ``and`` of
  both, and a choice. What is shifted by as much as it has bits may be anything, also what is shifted ``exact``, but not
  exactly. The code generator takes such a lane for 0, and puts the two together by ``or``, as it does with zeros
  (``matchBinaryPermuteShuffle``); but the processor's lane has bits of ``b >> 63``. LLVM 20 to 22 do so. Here no lane
  is shifted by more than it can be, and no shift of that kind has flags.
- Narrowed numbers that are stored under a mask of which one lane is set, with AVX-512: what is stored is as wide as it
  was before (LLVM 22, LLVM issue 179489). Here the lane is stored as a scalar.
- The same where what is stored is a choice, by such a mask, of narrowed numbers and what was there. Here the choice is
  a shuffle.
- Gathers whose indices may be anything, for which `gather_workaround` has a module of its own.
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
"""What stands for an instruction, `None` where it may stay."""

Lanes = list[int | None]
"""The numbers of a constant vector; `None` is one that may be any."""

_SHIFTS = ("shl", "shl nuw", "shl nsw", "shl nuw nsw", "lshr", "lshr exact", "ashr", "ashr exact")


def avoid_miscompiled_patterns(text: str) -> str:
    """The module *text*, as LLVM printed it, in words that its code generator understands: *text* itself mostly."""
    return define_gather_lanes(_Rewording(text).run())


class _Rewording:
    def __init__(self, text: str) -> None:
        self._text = text
        self._types = TypeTable(ir.Context())
        self._names = (name for number in range(len(text)) if (name := f"%reworded.{number}") not in text)
        self._place = 0
        """Where the instruction in question starts."""

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
        """A shift whose lanes are shifted by different numbers, by numbers that they can be, and without flags."""
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
            masked, most = next(self._names), _spell([width - 1] * kind.count, kind)
            return [
                f"{masked} = and {spelling} {amounts}, {most}",
                f"{result} = {opcode} {spelling} {shifted}, {masked}{rest}",
            ]
        known = [number for number in numbers if number is not None]
        possible = [number for number in known if number < width]
        if not possible or (len(possible) == len(known) and (not flags or len(set(known)) == 1)):
            return None
        kept: Lanes = [number if number is None or number < width else possible[0] for number in numbers]
        return [f"{result} = {opcode} {spelling} {shifted}, {_spell(kept, kind)}{rest}"]

    def _may_have(self, value: str, kind: ir.VectorType, least: int) -> bool:
        """Whether a vector that is put together of others and of numbers has a number of *least* or more in it."""
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
        """What the vector *value* is put together of."""
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
        """A store under a mask of which one lane is set, as one of a scalar."""
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

    def choice(self, cursor: Cursor) -> Lines:
        """A choice of numbers by a constant mask, as a shuffle."""
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

    def _take_type(self, cursor: Cursor) -> tuple[ir.Type, str]:
        """A type, and how it is spelt."""
        start = cursor.place
        kind = self._types.read(cursor)
        return kind, cursor.text_since(start)


_CHANGES: dict[str, Callable[[_Rewording, Cursor], Lines]] = {
    **{f" = {shift} <": _Rewording.shift for shift in _SHIFTS},
    "@llvm.masked.store.": _Rewording.store,
    " = select <": _Rewording.choice,
}
"""What a line has in it that may have to be changed, and how."""


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
    """What else is said of an instruction, with the comma in front of it."""
    start = cursor.place
    while not cursor.at_end:
        cursor.take()
    return cursor.text_since(start) if cursor.place > start else ""


def _skip_hints(cursor: Cursor) -> int:
    """Take attributes of a parameter, and tell the alignment that they say."""
    align = 1
    while hint := cursor.accept_word(*HINT_ATTRIBUTES):
        if cursor.is_mark("("):
            cursor.take_group()
        elif cursor.token.kind is TokenKind.NUMBER:
            number = int(cursor.take())
            align = number if hint == "align" else align
    return align


def _spell(lanes: Lanes, kind: ir.VectorType) -> str:
    words = ("poison" if lane is None else str(lane) for lane in lanes)
    return f"<{', '.join(f'{kind.element} {word}' for word in words)}>"


def _read_lanes(constant: str, count: int) -> Lanes | None:
    """The numbers in a vector of constants, *count* where it does not say; `None` where it is not one of numbers."""
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
    """A number with its type, `None` for any number, `False` for what is none."""
    kind = cursor.take(TokenKind.WORD)
    item = cursor.take_item()
    text = item[0].text if len(item) == 1 else ""
    if text in ("poison", "undef"):
        return None
    if text in ("true", "false"):
        return 1 if text == "true" else 0
    return int(text) % (1 << int(kind[1:])) if text.lstrip("-").isdigit() and kind[1:].isdigit() else False
