"""Makes random kernels with numbers of all sizes, each with a second text that says the same of one thread.

The kernel is for the CPU device. The second text, `reference`, is run for one thread after another, in plain Python and
compiled by ``njit``, where threads wait in plain Python alone, in turns. What a cast of a number out of range, a
division or an atomic operation gives is written out there (`semantics`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
KINDS = INTEGERS + FLOATS
UPDATED = ("int32", "int64", "uint32", "uint64")
"""Types of what atomic operations change."""

COMMUTATIVE = ("add", "max", "min", "and_", "or_", "xor")
OWN = (*COMMUTATIVE, "sub", "exch", "cas", "inc", "dec")

BLOCKS = ((1, 1), (2, 1), (3, 1), (4, 1), (31, 1), (33, 1), (37, 1), (63, 1), (65, 1), (5, 7), (8, 8), (100, 1))
WHOLE_WAVES = ((64, 1), (128, 1), (16, 4))
"""Threads of a block along x and y; the second where lanes exchange numbers."""

SEMANTICS = (Path(__file__).parent / "semantics.py").read_text()

HEAD = '''"""Random kernel {seed}: run it for what differs from plain Python. NUMBA_HIP_CPU_FORM
and NUMBA_HIP_CPU_WIDTH choose the form of its code."""

import os

os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")

from numba import hip

BLOCKS, BLOCK, WAVE, N = {blocks}, {block}, {wave}, {number}
THREADS, WIDTH = {threads}, {width}
ROWS = BLOCKS * THREADS
'''

TAIL = """

def make_arrays():
    generator = np.random.default_rng({seed})
    return [
{arrays}    ]


NAMES = {names}
WAITS = {waits}

if __name__ == "__main__":
    right, found = make_arrays(), make_arrays()
    run_reference(reference, right, N, BLOCKS, THREADS, WAVE, WAITS)
    kernel[BLOCKS, BLOCK](*found, N)
    failed = False
    for name, one, other in zip(NAMES, right, found):
        for place in zip(*np.nonzero(differ(one, other))):
            failed = True
            print(f"{{name}}[{{', '.join(map(str, place))}}] is {{other[place]!r}}, must be {{one[place]!r}}")
    raise SystemExit(failed)
"""


class Text(NamedTuple):
    """Something in the text of the kernel, and the same for the reference."""

    hip: str
    plain: str


@dataclass(frozen=True)
class Line:
    """A line, and those inside of it."""

    text: Text
    body: tuple[Line, ...] = ()
    other: tuple[Line, ...] = ()

    def write(self, depth: int, which: int) -> Iterator[str]:
        """The lines of the kernel, or with 1 for *which* of the reference."""
        yield "    " * depth + self.text[which]
        for line in self.body:
            yield from line.write(depth + 1, which)
        if self.other:
            yield "    " * depth + "else:"
            for line in self.other:
                yield from line.write(depth + 1, which)


@dataclass(frozen=True)
class TypedCase:
    """A kernel and its reference; *arrays* are the parameters with the expressions that make them."""

    seed: int
    block: tuple[int, int]
    blocks: int
    wave: int
    number: int
    waits: bool
    fast: bool
    arrays: dict[str, str]
    lines: tuple[Line, ...]

    @property
    def compares_with_njit(self) -> bool:
        """Whether ``njit`` can compile the reference."""
        return not self.waits and not any("float16" in name for name in self.arrays)

    @property
    def text(self) -> str:
        """The program, which runs by itself."""
        threads = self.block[0] * self.block[1]
        head = HEAD.format(
            seed=self.seed, blocks=self.blocks, block=self.block, wave=self.wave, number=self.number, threads=threads,
            width=self.block[0],
        )  # fmt: skip
        names = ", ".join([*self.arrays, "n"])
        options = f"wave_size={self.wave}" + (", fastmath=True" if self.fast else "")
        parts = [head + "\n" + SEMANTICS, "", f"@hip.jit({options})", f"def kernel({names}):"]
        parts += [line for one in self.lines for line in one.write(1, 0)]
        parts += ["", "", f"def reference(block, t, shared, {names}):"]
        parts += [line for one in self.lines for line in one.write(1, 1)]
        made = "".join(f"        {expression},\n" for expression in self.arrays.values())
        tail = TAIL.format(seed=self.seed, arrays=made, names=list(self.arrays), waits=self.waits)
        return "\n".join(parts) + "\n" + tail


WAIT = Line(Text("hip.syncthreads()", 'yield "barrier"'))


def both(template: str, *parts: Text) -> Text:
    """The same text around *parts* in kernel and reference."""
    return Text(template.format(*(part.hip for part in parts)), template.format(*(part.plain for part in parts)))


def same(text: str) -> Text:
    """A text that is the same in both."""
    return Text(text, text)


@dataclass
class TypedGenerator:
    """Makes the kernel of *seed*."""

    seed: int
    arrays: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)
    deep: set[str] = field(default_factory=set)
    """Arrays of three dimensions; the others have two."""

    def __post_init__(self) -> None:
        self.choose = random.Random(self.seed)
        self.waits, self.fast = self.choose.random() < 0.3, self.choose.random() < 0.15
        self.loops = 0

    def make(self) -> TypedCase:
        """The case of the seed."""
        choose = self.choose
        block = choose.choice(WHOLE_WAVES if self.waits else BLOCKS)
        blocks, wave = choose.randint(1, 2), choose.choice((32, 64))
        lines = self._where(block)
        for number in range(choose.randint(2, 4)):
            lines.append(self._set(f"v{number}", choose.choice(KINDS)))
        for _ in range(choose.randint(3, 7)):
            lines += self._statement(0)
        lines += [self._put(kind, same(name)) for name, kind in list(self.variables.items())]
        lines += [WAIT] if self.waits else []  # also where nothing else waits the reference is to be a generator
        made = self.arrays | {name: self._make_own(name) for name in self.columns}
        return TypedCase(
            self.seed, block, blocks, wave, choose.randint(0, 3), self.waits, self.fast, made, tuple(lines)
        )

    def _make_own(self, name: str) -> str:
        shape = f"(ROWS + 70, {self.columns[name]}{', 2' * (name in self.deep)})"
        kind = name.removeprefix("own_")
        return f'np.full({shape}, 7, np.dtype("{kind}"), order={self.choose.choice("CF")!r})'

    def _where(self, block: tuple[int, int]) -> list[Line]:
        place = "np.int64(hip.threadIdx.x)" if block[1] == 1 else "np.int64(hip.threadIdx.x + WIDTH * hip.threadIdx.y)"
        lines = [Line(Text(f"t = {place}", "t = np.int64(t)"))]
        lines.append(Line(Text("g = t + THREADS * np.int64(hip.blockIdx.x)", "g = np.int64(t + THREADS * block)")))
        if self.waits:
            lines.append(Line(Text("lane = np.int64(hip.laneid)", "lane = np.int64(t % WAVE)")))
        return lines

    # Statements.

    def _statement(self, depth: int, looping: bool = False) -> list[Line]:
        choose = self.choose
        kinds = ["assign"] * 3 + ["store", "neighbours", "private", "atomic", "own_atomic", "divide"]
        if depth < 2:
            kinds += ["if", "if", "loop", "within"]
        if looping:
            kinds += ["leave"]
        if self.waits and depth == 0:
            kinds += ["exchange", "gather", "count", "ballot", "shuffle", "match", "repeat"]
        return list(getattr(self, f"_{choose.choice(kinds)}")(depth))

    def _body(self, depth: int, looping: bool = False) -> tuple[Line, ...]:
        return tuple(
            line for _ in range(self.choose.randint(1, 2)) for line in self._statement(depth + 1, looping=looping)
        )

    def _set(self, name: str, kind: str) -> Line:
        value = self.value(kind, 2)
        self.variables[name] = kind
        return Line(both(f"{name} = {{}}", value))

    def _assign(self, depth: int) -> list[Line]:
        name, kind = self.choose.choice(list(self.variables.items()))
        return [Line(both(f"{name} = {{}}", self.value(kind, 3)))]

    def _column(self, kind: str) -> str:
        name = f"own_{kind}"
        if name not in self.columns and self.choose.random() < 0.3:
            self.deep.add(name)
        self.columns[name] = self.columns.get(name, 0) + 1
        return f"{name}[g, {self.columns[name] - 1}{', 1' * (name in self.deep)}]"

    def _put(self, kind: str, value: Text) -> Line:
        return Line(both(f"{self._column(kind)} = {{}}", value))

    def _store(self, depth: int) -> list[Line]:
        kind = self.choose.choice(KINDS)
        if self.choose.random() < 0.15:
            return [self._put("bool", self.condition(2))]
        if self.choose.random() < 0.15 and not self.fast:
            return [self._put("float16", self.value("float32", 1))]
        return [self._put(kind, self.value(kind, 2))]

    def _neighbours(self, depth: int) -> list[Line]:
        """Loads of neighbours, cast to narrow types and stored side by side."""
        choose, count = self.choose, self.choose.choice((2, 3, 4, 4))
        source, result = choose.choice(("int64", "int64", *INTEGERS)), choose.choice(("int64", "int64", *INTEGERS))
        array, offset = self._input(source), choose.randint(0, 2)
        place = choose.choice(("g + {}", "g + {}", "(g * 3 + {}) % 37"))
        self.loops += 1
        loads, puts = [], []
        for number in range(count):
            name, kind = f"q{self.loops}_{number}", choose.choice(INTEGERS)
            index = place.format(offset + number)
            loads.append(Line(both(f"{name} = {{}}", cast(same(f"{array}[{index}]"), source, kind))))
            puts.append(self._put(result, cast(same(name), kind, result)))
        return [*loads, *puts]

    def _private(self, depth: int) -> list[Line]:
        """A private array that a loop writes and a place of which is read."""
        self.loops += 1
        kind, name = self.choose.choice(KINDS), f"a{self.loops}"
        if self.fast and kind in FLOATS:
            kind = "int32"
        other = self.choose.choice(INTEGERS)
        product = both(f"np.{other}(np.{other}(q) * {{}})", self.value(other, 1))
        fill = Line(same("for q in range(8):"), (Line(both(f"{name}[q] = {{}}", cast(product, other, kind))),))
        make = Line(Text(f"{name} = hip.local.array(8, np.{kind})", f"{name} = np.zeros(8, np.{kind})"))
        place = both("{} & 7", self.value("int64", 1))
        target, wanted = self.choose.choice(list(self.variables.items()))
        change = Line(both(f"{name}[{{}}] = {{}}", place, self.value(kind, 1)))
        read = Line(both(f"{target} = {{}}", cast(same(f"{name}[g & 7]"), kind, wanted)))
        return [make, fill, change, read] if self.choose.random() < 0.5 else [make, fill, read]

    def _divide(self, depth: int) -> list[Line]:
        """A division, often of the least number there is or the one above it by -1."""
        kind = self.choose.choice(INTEGERS)
        name, operation = self.choose.choice((("floor_divide", "//"), ("modulo", "%")))
        special = not kind.startswith("u") and self.choose.random() < 0.5
        two = both(f"np.{kind}({{}} | np.{kind}(1){f' | np.{kind}(-2)' if special else ''})", self.value(kind, 1))
        one = self.value(kind, 1)
        if special and self.choose.random() < 0.7:
            one = both(f"np.{kind}(({{}} & np.{kind}(1)) ^ np.{kind}({np.iinfo(kind).min}))", one)
        found = Text(f"np.{kind}({one.hip} {operation} {two.hip})", f"{name}_{kind}({one.plain}, {two.plain})")
        return [self._put(kind, found)]

    def _cells(self, kind: str) -> str:
        self.arrays.setdefault(f"cells_{kind}", f"np.full({len(COMMUTATIVE)}, 77, np.{kind})")
        return f"cells_{kind}"

    def _atomic(self, depth: int) -> list[Line]:
        kind = self.choose.choice(UPDATED)
        place = self.choose.randrange(len(COMMUTATIVE))
        return [self._update(COMMUTATIVE[place], self._cells(kind), str(place), self.value(kind, 2))]

    def _update(self, operation: str, array: str, place: str, *values: Text, target: str = "") -> Line:
        given = ", ".join(["{}"] * len(values))
        text = both(f"{{}}{operation}({array}, {place}, {given})", Text("hip.atomic.", "atomic_"), *values)
        return Line(both(f"{target} = {{}}", text) if target else text)

    def _own_atomic(self, depth: int) -> list[Line]:
        """On an element of the thread's own, often at the bit of the sign; what it gives is put away."""
        kind, operation = self.choose.choice(UPDATED), self.choose.choice(OWN)
        if operation in ("inc", "dec"):
            kind = self.choose.choice(("uint32", "uint64"))
        self.loops += 1
        name, column = f"o{self.loops}", self._column(kind)
        begin = Line(both(f"{column} = {{}}", self.value(kind, 1)))
        array, place = column[: column.index("[")], "(" + column[column.index("[") + 1 : -1] + ")"
        values = [self.value(kind, 1)]
        if operation == "cas":
            values = [self.choose.choice((same(column), self.value(kind, 1))), *values]
        change = self._update(operation, array, place, *values, target=name)
        return [begin, change, self._put(kind, same(name))]

    def _if(self, depth: int) -> list[Line]:
        other = self._body(depth) if self.choose.random() < 0.5 else ()
        return [Line(both("if {}:", self.condition(2)), self._body(depth), other)]

    def _within(self, depth: int) -> list[Line]:
        place = self.choose.choice(("g", "t", "g + n", "2 * t + g"))
        bound = f"{place} {self.choose.choice(('<', '<', '>='))} {self.choose.choice((0, 1, 20, 31))} + n * 30"
        return [Line(same(f"if {bound}:"), self._body(depth))]

    def _loop(self, depth: int) -> list[Line]:
        """A loop of as many rounds as each thread needs, of one kind or the other."""
        self.loops += 1
        number, limit = self.loops, self.value("int64", 1)
        if self.choose.random() < 0.5:
            head = both(f"for turn_{number} in range({{}} & 3):", limit)
            return [Line(head, self._body(depth, looping=True))]
        down = Line(same(f"left_{number} = left_{number} - 1"))
        head = both(f"while left_{number} > 0 and {{}}:", self.condition(1))
        begin = Line(both(f"left_{number} = {{}} & 3", limit))
        return [begin, Line(head, (down, *self._body(depth, looping=True)))]

    def _leave(self, depth: int) -> list[Line]:
        what = Line(same(self.choose.choice(("break", "continue"))))
        return [Line(both("if {}:", self.condition(1)), (what,))]

    # Threads that wait for one another, where all of them come.

    def _exchange(self, depth: int) -> list[Line]:
        target, kind = self.choose.choice(list(self.variables.items()))
        self.loops += 1
        name = f"s{self.loops}"
        make = Text(f"{name} = hip.shared.array(THREADS, np.{kind})", f'{name} = shared("{name}", THREADS, np.{kind})')
        put = Line(both(f"{name}[t] = {{}}", self.value(kind, 2)))
        get = Line(same(f"{target} = {name}[(t + {self.choose.randint(1, 70)}) % THREADS]"))
        return [Line(make), put, WAIT, get, WAIT]

    def _repeat(self, depth: int) -> list[Line]:
        """A loop of all threads around what they wait in."""
        self.loops += 1
        lines = tuple(self._exchange(depth))
        return [lines[0], Line(same(f"for turn_{self.loops} in range(n + 1):"), lines[1:])]

    def _gather(self, depth: int) -> list[Line]:
        """Atomic operations of some threads on shared memory, which all read then."""
        self.loops += 1
        kind, name, operation = self.choose.choice(UPDATED), f"s{self.loops}", self.choose.choice(COMMUTATIVE)
        make = Text(f"{name} = hip.shared.array(4, np.{kind})", f'{name} = shared("{name}", 4, np.{kind})')
        clear = Line(same("if t < 4:"), (Line(same(f"{name}[t] = np.{kind}(9)")),))
        change = self._update(operation, name, "t & 3", self.value(kind, 2))
        some = Line(both("if {}:", self.condition(1)), (change,))
        target, wanted = self.choose.choice(list(self.variables.items()))
        read = Line(both(f"{target} = {{}}", cast(same(f"{name}[(t + 1) & 3]"), kind, wanted)))
        return [Line(make), clear, WAIT, some, WAIT, read, WAIT]

    def _collect(self, kind: str, call: str, ask: str, *parts: Text) -> list[Line]:
        self.loops += 1
        name = f"c{self.loops}"
        hip_text, plain = both(call, *parts).hip, both(ask, *parts).plain
        return [
            Line(Text(f"{name} = np.{kind}({hip_text})", f"{name} = np.{kind}((yield {plain}))")),
            self._put(kind, same(name)),
        ]

    def _count(self, depth: int) -> list[Line]:
        which = self.choose.choice(("count", "and", "or"))
        # What and and or give for true is any number but 0.
        end = "" if which == "count" else " != 0"
        return self._collect("int32", f"hip.syncthreads_{which}({{}}){end}", f'"{which}", {{}}', self.condition(1))

    def _ballot(self, depth: int) -> list[Line]:
        which = self.choose.choice(("ballot", "any", "all"))
        kind = "uint64" if which == "ballot" else "int32"
        return self._collect(kind, f"hip.{which}({{}})", f'"{which}", {{}}', self.condition(1))

    def _shuffle(self, depth: int) -> list[Line]:
        kind = self.choose.choice(("int32", "int64", "float32", "float64"))
        which, by = self.choose.choice((("", "(lane + 5) % WAVE"), ("_xor", "3"), ("", "7"), ("_down", "1")))
        value = self.value(kind, 1)
        source = {"": by, "_xor": f"lane ^ {by}", "_down": f"lane + {by}"}[which]
        return self._collect(kind, f"hip.shfl{which}({{}}, {by})", f'"shuffle", {{}}, {source}', value)

    def _match(self, depth: int) -> list[Line]:
        low = both("np.int32({} & 3)", self.value("int64", 1))
        return self._collect("uint64", "hip.match_any({})", '"match", {}', low)

    # Expressions.

    def _input(self, kind: str) -> str:
        self.arrays.setdefault(f"in_{kind}", f'numbers(generator, np.dtype("{kind}"), 2 * ROWS + 40)')
        return f"in_{kind}"

    def loaded(self) -> tuple[Text, str]:
        """An element of an array of numbers, and its type."""
        kind = self.choose.choice(INTEGERS if self.fast else (*KINDS, "float16", "bool"))
        array = self._input(kind)
        place = self.choose.choice(
            ("[g]", "[g + 1]", "[(g * 3 + 1) % 37]", "[-1 - g]", "[::-1][g]", "[1::2][g]", "[5 - t % 9]", "[3]")
        )
        return same(array + place), kind

    def value(self, kind: str, depth: int) -> Text:
        """An expression of type *kind*."""
        choose = self.choose
        if kind in FLOATS and self.fast:
            return self._exact(kind)
        which = choose.random()
        if depth <= 0 or which < 0.2:
            if self.variables and choose.random() < 0.6:
                name = choose.choice([*self.variables])
                return cast(same(name), self.variables[name], kind)
            return cast(*self.loaded(), kind)
        if which < 0.35:
            other = choose.choice(KINDS)
            return cast(self.value(other, depth - 1), other, kind)
        if which < 0.45:
            one, two = self.value(kind, depth - 1), self.value(kind, depth - 1)
            return both("({} if {} else {})", one, self.condition(depth - 1), two)
        if which < 0.5:
            number = choose.choice((0, 1, 7, 100))
            return same(f"np.{kind}({number})")
        return self._operation(kind, depth - 1)

    def _operation(self, kind: str, depth: int) -> Text:
        choose = self.choose
        one, two = self.value(kind, depth), self.value(kind, depth)
        if kind in FLOATS:
            if choose.random() < 0.2:
                return both(f"np.{kind}({{}} / (abs({{}}) + np.{kind}(1)))", one, two)
            return both(f"np.{kind}({{}} {choose.choice('+-*')} {{}})", one, two)
        which = choose.random()
        if which < 0.6:
            return both(f"np.{kind}({{}} {choose.choice('+-*&|^')} {{}})", one, two)
        if which < 0.75:
            mask = {"8": 7, "6": 15, "2": 31, "4": 63}[kind[-1]]
            operation = choose.choice(("<<", ">>"))
            return both(f"np.{kind}({{}} {operation} np.{kind}({{}} & np.{kind}({mask})))", one, two)
        if which < 0.85:
            return both(f"{choose.choice(('min', 'max'))}({{}}, {{}})", one, two)
        if which < 0.92:
            return both(f"np.{kind}(abs({{}}))", one) if not kind.startswith("u") else one
        return both(f"np.{kind}(-{{}})", one)

    def _exact(self, kind: str) -> Text:
        """Operations with which neither the order nor rounding makes a difference."""
        parts = [both(f"np.{kind}({{}} & 255)", self.value("int32", 1)) for _ in range(3)]
        return both(f"np.{kind}({{}} * {{}} {self.choose.choice('+-')} {{}} + np.{kind}(0.5))", *parts)

    def condition(self, depth: int) -> Text:
        """A condition."""
        choose = self.choose
        kind = choose.choice(INTEGERS if self.fast else KINDS)
        if choose.random() < 0.5 and kind in INTEGERS:
            mask = choose.choice((1, 3, 7))
            low = both(f"np.{kind}({{}} & np.{kind}({mask}))", self.value(kind, depth - 1))
            return both(f"({{}} == np.{kind}({choose.randint(0, mask)}))", low)
        return both(
            f"({{}} {choose.choice(('<', '>=', '!=', '=='))} {{}})", *(self.value(kind, depth - 1) for _ in "ab")
        )


def cast(value: Text, source: str, kind: str) -> Text:
    """*value*, of type *source*, as one of type *kind*."""
    if source == kind:
        return value
    if source.startswith("float") and kind in INTEGERS:
        return Text(f"np.{kind}({value.hip})", f"to_{kind}({value.plain})")
    return both(f"np.{kind}({{}})", value)


def make_typed_case(seed: int) -> TypedCase:
    """The random kernel of *seed*; the same each time."""
    return TypedGenerator(seed).make()
