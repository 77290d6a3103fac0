"""Random numbers and simple statements of kernels with computed indices, as source of the kernel and of its reference
in plain Python."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tools.fuzz.indices import IndexGenerator
from tools.fuzz.program import Line, Text, group

COLUMNS = 7, 8
"""The constant lengths of rows."""

TABLES = 5, 8, 13, 16, 64, 100, 256
"""How many elements small tables have."""

STORED = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float32", "float64")
"""The types of results, and of what is loaded."""

BINS = 13
"""How many counters there are."""

LONG = "2147483648", "4294967291", "4294967297"
"""Numbers that more than 32 bits are needed for, with a sign."""

MARKS = (34, 44, 92, 10, 65)
"""The bytes that a text consists of."""


LARGE = ("if", "apart", "slice", "window", "nested", "states", "search", "private", "narrow", "row")
"""The kinds of statements that contain others."""

THEMES = (
    (
        "update",
        "store",
        "store",
        "fill",
        "atomic",
        "atomic",
        "bounded",
        "chain",
        "mixed",
        "edge",
        *LARGE,
        "slice",
        "window",
    ),
    ("slice", "slice", "slice", "apart", "window", "bounded", "update", "if"),
    ("edge", "edge", "edge", "around", "around", "around", "bounded", "apart", "update", "window"),
    ("mixed", "mixed", "nested", "around", "fill", "store", "update", "if", "row"),
    ("atomic", "atomic", "atomic", "private", "narrow", "if", "window"),
    ("states", "states", "choice", "choice", "search", "window", "store", "if"),
    ("store", "chain", "fill", "update", "if"),
)
"""Kinds of statements, of which those of a kernel are."""


def plain(text: str) -> str:
    """The reference's source for the kernel's."""
    text = re.sub(r"\bnp\.(u?int\d+)\(", r"to_\1(", text.replace("hip.", "at."))
    return re.sub(r"\bint\(", "to_int64(", text.replace(" range(", " span("))


def code(text: str, *body: Line, other: tuple[Line, ...] = (), held: bool = False) -> Line:
    """A line of the kernel, and the same of the reference."""
    return Line(Text(text, plain(text)), body, other, held)


def store(array: str, place: str, value: str) -> Line:
    """A store that converts *value*."""
    return Line(Text(f"{array}[{place}] = {value}", f"put({array}, ({plain(place)}), {plain(value)})"))


def increase(array: str, place: str, value: str) -> Line:
    """An element of integers, of which there is one for each thread, is increased."""
    told = f"put({array}, ({plain(place)}), to_int64({array}[{plain(place)}]) + {plain(value)})"
    return Line(Text(f"{array}[{place}] += {value}", told))


@dataclass
class ValueGenerator(IndexGenerator):
    """Generates the statements that are executed for the element ``q`` of arrays. ``s``, ``t`` and ``u`` are the
    thread's numbers."""

    leaves: str = ""
    """What ends the work on this element: ``continue``, ``return`` or nothing."""
    waves: bool = False
    theme: tuple[str, ...] = THEMES[0]
    reports: bool = False
    """Whether some indices are out of range, which is reported."""
    turns: list[str] = field(default_factory=list)
    """What the key of an operation of a wave consists of here: counters of loops, and numbers of statements."""

    # Values.

    def load(self) -> str:
        """An element as a number."""
        which = self.choose.randrange(11)
        if which < 4:
            return f"np.int64({self.use(self.one_of('numbers', 'reals'))}[{self.index()}])"
        if which == 10:
            count = self.choose.choice(TABLES)
            return f"np.int64({self.use(f'table_{count}')}[{self._small_index(count)}])"
        if which < 7:
            return f"np.int64({self.use('picture')}[{self.cell()}])"
        if which == 7:
            columns = self.choose.choice(COLUMNS)
            return f"np.int64({self.use(f'fixed_{columns}')}[{self.fixed_cell(columns)}])"
        if which == 8:
            return f"np.int64({self.use('fixed_8')}[{self.inside()}, {self.choose.randrange(8)}])"
        return f"np.int64({self.use('text')}[{self.index()}])"

    def _small_index(self, count: int) -> str:
        """An index of a table of *count* elements, which is known to be one."""
        one, two = (self.one_of("s", "t", "u", "q", f"{self.use('numbers')}[{self.index()}]") for _ in "ab")
        bits = count.bit_length() - 1
        return self.one_of(
            f"({one}) & {(1 << bits) - 1}", f"({one}) % {count}", f"(({one}) >> 1) & {(1 << bits) - 1}",
            f"np.uint8({one}) >> {8 - bits}", f"min(({one}) & 127, {count - 1})",
            f"np.uint32({one}) % np.uint32({count})",
            f"(({one}) & {(1 << bits - 1) - 1}) + (({two}) & {(1 << bits - 1) - 1})",
        )  # fmt: skip

    def late_load(self) -> Line:
        """A load of an element that is not there for the last threads, or for none."""
        place = self.one_of(
            "q", "q + 1", "q + 2", f"q - {self.choose.randint(3, 9)} - n // 2", "(q + 1) * 2 // 3", "n - q"
        )
        line = self._target(f"np.int64({self.use(self.one_of('numbers', 'text'))}[{place}])")
        return line if self.choose.random() < 0.5 else code(f"if {self.condition()}:", line)

    def simple_load(self) -> str:
        """An element as a number, often the thread's own."""
        return self.load() if self.choose.random() < 0.5 else f"np.int64({self.use('numbers')}[q])"

    def value(self, depth: int = 2) -> str:
        """A number below 2 ** 40."""
        which = self.choose.randrange(10)
        if depth <= 0 or which < 4:
            return self.one_of(self.load(), self.simple_load(), "s", "t", "u", "q", *self.inner, *self.numbers)
        one, two = self.value(depth - 1), self.value(depth - 1)
        if which < 6:
            return f"({one} {self.one_of('+', '-', '^', '&', '|')} {two})"
        if which == 6:
            by = self.one_of("w", "h", "3", "10", "-7", f"(({two}) & 7 | 1)", self.one_of(*LONG))
            return self.one_of(f"({one} // {by})", f"({one} % {by})", f"int(({one}) / {self.one_of('3', *LONG)})")
        if which == 7 and self.choose.random() < 0.5:
            mixed, long = f"(({self.load()} << 8) {self.one_of('|', '^')} {self.load()})", self.one_of(*LONG)
            return self.one_of(f"({mixed} // {long})", f"({mixed} % {long})", f"int({mixed} / {long})")
        if which == 7:
            limit = self.one_of(f"min({one}, {self.one_of(*LONG)})", f"max({one}, -{self.one_of(*LONG)})")
            return self.one_of(f"min({one}, {two})", f"max({one}, {two})", limit)
        if which == 8:
            return f"({one} if {self.condition()} else {two})"
        return f"({one} >> {self.choose.randint(1, 3)})"

    def condition(self) -> str:
        """A condition."""
        which = self.choose.randrange(7)
        if which < 2:
            return f"{self.load()} {self.one_of('<', '>', '==', '>=')} {self.choose.randint(0, 30)}"
        if which == 2:
            return f"({self.one_of('s', 't', 'q')} & {self.one_of('1', '3', '7')}) == {self.choose.randint(0, 1)}"
        if which == 3 and self.rows:
            row, column = self.rows
            return self.one_of(f"{column} > 0", f"{column} + 1 < w", f"0 < {row} < h - 1", f"{row} == {column}")
        if which == 4:
            return self.one_of("q < n - 5", "q > 31", "q >= n // 2", "q % 3 == 1", "q == 0", "q == n - 1")
        return f"{self.one_of('s', 't', 'u')} {self.one_of('<', '>')} {self.one_of('s', 't', '9', '40')}"

    # Statements.

    def body(self, count: int, depth: int, key: str | None = None) -> tuple[Line, ...]:
        """*count* statements, in which the key of operations of waves begins with *key*."""
        kept = [*self.inner], [*self.numbers], self.waves
        if key is not None:
            self.turns.append(key)
        lines: list[Line] = []
        for number in range(count):
            self.turns.append(str(number))
            lines += self.statement(depth)
            self.turns.pop()
        if key is not None:
            self.turns.pop()
        self.inner, self.numbers, self.waves = kept
        return tuple(lines)

    def statement(self, depth: int) -> list[Line]:
        """A random statement."""
        kinds = [*self.theme, *["ballot", "shuffle"] * self.waves]
        if self.leaves and depth == 1:
            kinds += ["leave"]
        if depth > 1:
            kinds = [kind for kind in kinds if kind not in LARGE] or ["update", "store"]
        return list(getattr(self, f"_{self.choose.choice(kinds)}")(depth))

    def _target(self, value: str) -> Line:
        name, mask = self.choose.choice((("s", "0xfff"), ("t", "0xff"), ("u", "0x3f"), ("s", "0xffff")))
        return code(f"{name} = ({name} * {self.choose.choice((1, 3))} + {value}) & {mask}")

    def _update(self, depth: int) -> list[Line]:
        if self.choose.random() < 0.2:
            return [code(f"t = {self.value()} % 301 - 150")]
        return [self._target(self.value())]

    def _store(self, depth: int) -> list[Line]:
        """A number is stored as one of another type, which may be too small for it."""
        kind = self.choose.choice(STORED)
        array = self.use(f"out_{kind}")
        value = f"({self.value()} * {self.one_of('1', '1', '77', '100003')})"
        if kind.startswith("float"):
            value = self.one_of(value, f"np.float64({value}) / 8.0", f"np.float32({value} & 0xffff) * np.float32(0.5)")
        elif self.choose.random() < 0.4:
            return [increase(array, self.own(), value)]
        return [store(array, self.own(), value)]

    def own(self) -> str:
        """The index of the thread's own element of an array of h rows of w elements."""
        if self.rows and self.choose.random() < 0.6:
            return ", ".join(self.rows)
        return self.one_of("q // w, q % w", "q // w, q - q // w * w", "np.int32(q) // np.int32(w), q % w")

    def _fill(self, depth: int) -> list[Line]:
        """All elements of a row are stored one by one, in any order."""
        lines, columns = [], list(range(7))
        if self.choose.random() < 0.5:
            self.choose.shuffle(columns)
        for column in columns[: self.choose.choice((2, 4, 7, 7))]:
            lines.append(store(self.use("rows_7"), f"q, {column}", f"{self.value(1)} & 127"))
        return lines

    def _if(self, depth: int) -> list[Line]:
        body = self.body(self.choose.randint(1, 2), depth + 1, "0")
        other = self.body(1, depth + 1, "1") if self.choose.random() < 0.4 else ()
        return [code(f"if {self.condition()}:", *body, other=other)]

    def _leave(self, depth: int) -> list[Line]:
        lines = (self._target(self.value(1)),) if self.choose.random() < 0.4 else ()
        return [code(f"if {self.condition()}:", *lines, code(self.leaves))]

    def _mixed(self, depth: int) -> list[Line]:
        """A quotient and a remainder of one number in different types are a row and a column."""
        row, column, name = self.new("y"), self.new("z"), self.new("k")
        make = code(f"{name} = {self.one_of('q', f'q - {self.small(most=9)}')}")
        parts = code(f"{row} = {self.quotient(name)}"), code(f"{column} = {self.rest(name)}")
        return [group(make, *parts, self._target(f"np.int64({self.use('picture')}[{row}, {column}])"))]

    def _chain(self, depth: int) -> list[Line]:
        """Divisions and roots, stored with more or fewer bits."""
        kind = self.one_of("float32", "float64")
        one = f"np.{kind}({self.value(1)} & 0xfff)"
        root = f"math.sqrt(np.float64({one}) + 1.0) / (np.float64({one}) + 3.0)"
        value = self.one_of(
            f"np.{kind}(3) / (np.{kind}(2) / ({one} / np.{kind}(7) + np.{kind}(2)) + np.{kind}(1))",
            root, f"{one} * np.{kind}(0.1)",
        )  # fmt: skip
        stored = store(self.use(f"out_{self.one_of('float32', 'float64')}"), self.own(), value)
        if self.choose.random() < 0.4:
            return [code(f"if {self.condition()}:", stored)]
        return [stored]
