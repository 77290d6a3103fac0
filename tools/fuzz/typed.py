"""Generates random kernels with numbers of all sizes, each with a reference for one thread with the same meaning.

The kernel is for the CPU device. The reference is run for one thread after another, in plain Python and compiled by
``njit``; if threads wait, in plain Python only, in turns. It spells out the results of casts of numbers out of range,
divisions and atomic operations (`semantics`).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from tools.fuzz.program import WAIT, Line, Text, TypedCase, arithmetic, both, group, same
from tools.fuzz.typed_expressions import FLOATS, INTEGERS, KINDS, ExpressionGenerator

UPDATED = ("int32", "int64", "uint32", "uint64")
"""The types that atomic operations are used on."""

SMOOTH = ("sin({})", "cos({})", "exp(-{})", "tanh({})", "atan({})", "log1p({})")
"""Functions of `math`, which HIP has under the same names."""

OFTEN = 0.1
"""The share of kernels that call one of these in more places than are inlined."""

STATEMENTS = (3, 7)
"""The least and the largest number of statements in a kernel."""

COMMUTATIVE = ("add", "max", "min", "and_", "or_", "xor")
OWN = (*COMMUTATIVE, "sub", "exch", "cas", "inc", "dec")

BLOCKS = ((1, 1), (2, 1), (3, 1), (4, 1), (31, 1), (33, 1), (37, 1), (63, 1), (65, 1), (5, 7), (8, 8), (100, 1))
WHOLE_WAVES = ((64, 1), (128, 1), (16, 4))
WAITING_BLOCKS = ((1, 1), (7, 1), (31, 1), (33, 1), (5, 7), (100, 1))
"""The extents of a block along x and y; for kernels whose lanes exchange numbers; for other kernels whose threads
wait."""


@dataclass
class TypedGenerator(ExpressionGenerator):
    """Generates the kernel of *seed*."""

    columns: dict[str, int] = field(default_factory=dict)
    deep: set[str] = field(default_factory=set)
    """Arrays of three dimensions; the others have two."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.loops = 0

    def make(self) -> TypedCase:
        """The case of the seed."""
        choose = self.choose
        block = choose.choice(WHOLE_WAVES if self.waves else WAITING_BLOCKS if self.waits else BLOCKS)
        self.threads = block[0] * block[1]
        blocks, wave = choose.randint(1, 2), choose.choice((32, 64))
        lines = self._where(block)
        for number in range(choose.randint(2, 4)):
            lines.append(self._set(f"v{number}", choose.choice(KINDS)))
        for _ in range(choose.randint(*STATEMENTS)):
            lines += self._statement(0)
        if random.Random(f"calls of {self.seed}").random() < OFTEN:
            lines += self._calls()
        lines += [self._put(kind, same(name)) for name, kind in list(self.variables.items())]
        lines += [WAIT] if self.waits else []  # the reference must be a generator, even if nothing else waits
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
        kinds = ["assign"] * 3 + ["store", "neighbours", "private", "atomic", "own_atomic", "divide", "opposite"]
        if depth < 2:
            kinds += ["if", "if", "loop", "within"]
        if looping:
            kinds += ["leave"]
        if self.waits and depth == 0:
            kinds += ["exchange", "gather", "count", "repeat", "reduce"]
        if self.waves and depth == 0:
            kinds += ["ballot", "shuffle", "match"]
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
        if self.halves and self.choose.random() < 0.3:
            return [self._put("float16", self.value("float32", 1))]
        return [self._put(kind, self.value(kind, 2))]

    def _neighbours(self, depth: int) -> list[Line]:
        """Loads of neighbours, cast to narrow types and stored next to each other."""
        choose, count = self.choose, self.choose.choice((2, 3, 4, 4))
        source, result = choose.choice(("int64", "int64", *INTEGERS)), choose.choice(("int64", "int64", *INTEGERS))
        array, offset = self._input(source), choose.randint(0, 2)
        place = choose.choice(("g + {}", "g + {}", "(g * 3 + {}) % 37"))
        self.loops += 1
        loads, puts = [], []
        for number in range(count):
            name, kind = f"q{self.loops}_{number}", choose.choice(INTEGERS)
            index = place.format(offset + number)
            loads.append(Line(both(f"{name} = {{}}", self.cast(same(f"{array}[{index}]"), source, kind))))
            puts.append(self._put(result, self.cast(same(name), kind, result)))
        return [*loads, *puts]

    def _private(self, depth: int) -> list[Line]:
        """A private array that a loop fills, and of which one element is read."""
        self.loops += 1
        kind, name = self.choose.choice(KINDS), f"a{self.loops}"
        if self.fast and kind in FLOATS:
            kind = "int32"
        other = self.choose.choice(INTEGERS)
        product = arithmetic(other, "*", same(f"np.{other}(q)"), self.value(other, 1))
        fill = Line(same("for q in range(8):"), (Line(both(f"{name}[q] = {{}}", self.cast(product, other, kind))),))
        make = Line(Text(f"{name} = hip.local.array(8, np.{kind})", f"{name} = np.zeros(8, np.{kind})"))
        place = both("{} & 7", self.value("int64", 1))
        target, wanted = self.choose.choice(list(self.variables.items()))
        change = Line(both(f"{name}[{{}}] = {{}}", place, self.value(kind, 1)))
        read = Line(both(f"{target} = {{}}", self.cast(same(f"{name}[g & 7]"), kind, wanted)))
        return [group(make, fill, change, read) if self.choose.random() < 0.5 else group(make, fill, read)]

    def _divide(self, depth: int) -> list[Line]:
        """A division, often of the lowest number, or the one above it, by -1."""
        kind = self.choose.choice(INTEGERS)
        name, operation = self.choose.choice((("floor_divide", "//"), ("modulo", "%")))
        special = not kind.startswith("u") and self.choose.random() < 0.5
        two = both(f"np.{kind}({{}} | np.{kind}(1){f' | np.{kind}(-2)' if special else ''})", self.value(kind, 1))
        one = self._least(kind) if special and self.choose.random() < 0.7 else self.value(kind, 1)
        compiled = f"np.{kind}({one.hip} {operation} {two.hip})"
        return [self._put(kind, self._spell(compiled, f"{name}_{kind}({{}}, {{}})", one, two))]

    def _least(self, kind: str) -> Text:
        """The lowest number of type *kind*, or the one above it, computed so that the compiler does not know it."""
        return both(f"np.{kind}(({{}} & np.{kind}(1)) ^ np.{kind}({np.iinfo(kind).min}))", self.value(kind, 1))

    def _opposite(self, depth: int) -> list[Line]:
        """A negated number and its absolute value, often of the lowest number, which both of them are then equal to."""
        kind = self.choose.choice(("int8", "int16", "int32", "int64", "int64"))
        number = self._least(kind) if self.choose.random() < 0.7 else self.value(kind, 1)
        self.loops += 1
        name = f"w{self.loops}"
        given = Line(both(f"{name} = {{}}", number))
        wanted = self.choose.choice((kind, "int64", "float64"))
        puts = [
            self._put(wanted, self.cast(same(f"np.{kind}({operation})"), kind, wanted))
            for operation in self.choose.sample((f"-{name}", f"abs({name})", f"-abs({name})"), 2)
        ]
        return [group(given, *puts)]

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
        """An atomic operation on the thread's own element, often at the sign bit; the result is stored."""
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

    def _calls(self) -> list[Line]:
        """A math function called in so many places that it is not inlined, in some threads or in all.

        Its results are converted to integers such that neither their last bits nor exactness matter."""
        choose, lines = self.choose, list[Line]()
        function = choose.choice(SMOOTH)
        for _ in range(choose.randint(9, 12)):
            module = "math" if self.simulated else choose.choice(("hip", "math"))
            name = Text(f"{module}.{function}", f"math.{function}")
            number = both("np.float64({} & np.int64(1023)) / 64.0", self.value("int64", 1))
            called = Text(name.hip.format(number.hip), name.plain.format(number.plain))
            whole = both("np.int64(math.floor({} * 4096.0 + 0.5))", called)
            target, kind = choose.choice(list(self.variables.items()))
            line = Line(both(f"{target} = {{}}", self.cast(whole, "int64", kind)))
            lines.append(line if choose.random() < 0.5 else Line(both("if {}:", self.condition(1)), (line,)))
        return lines

    def _if(self, depth: int) -> list[Line]:
        other = self._body(depth) if self.choose.random() < 0.5 else ()
        return [Line(both("if {}:", self.condition(2)), self._body(depth), other)]

    def _within(self, depth: int) -> list[Line]:
        place = self.choose.choice(("g", "t", "g + n", "2 * t + g"))
        bound = f"{place} {self.choose.choice(('<', '<', '>='))} {self.choose.choice((0, 1, 20, 31))} + n * 30"
        return [Line(same(f"if {bound}:"), self._body(depth))]

    def _loop(self, depth: int) -> list[Line]:
        """A loop with a different number of iterations in each thread, of either kind."""
        self.loops += 1
        number, limit = self.loops, self.value("int64", 1)
        if self.choose.random() < 0.5:
            head = both(f"for turn_{number} in range({{}} & 3):", limit)
            return [Line(head, self._body(depth, looping=True))]
        down = Line(same(f"left_{number} = left_{number} - 1"), held=True)
        head = both(f"while left_{number} > 0 and {{}}:", self.condition(1))
        begin = Line(both(f"left_{number} = {{}} & 3", limit))
        return [begin, Line(head, (down, *self._body(depth, looping=True)))]

    def _leave(self, depth: int) -> list[Line]:
        what = Line(same(self.choose.choice(("break", "continue"))))
        return [Line(both("if {}:", self.condition(1)), (what,))]

    # Operations at which threads wait, in places that all threads reach.

    def _exchange(self, depth: int) -> list[Line]:
        return [group(*self._swap())]

    def _swap(self) -> list[Line]:
        """Each thread writes a place in shared memory and reads another's."""
        target, kind = self.choose.choice(list(self.variables.items()))
        self.loops += 1
        name = f"s{self.loops}"
        put = Line(both(f"{name}[t] = {{}}", self.value(kind, 2)))
        get = Line(same(f"{target} = {name}[(t + {self.choose.randint(1, 70)}) % THREADS]"))
        return [self._share(name, kind, "THREADS"), put, WAIT, get, WAIT]

    def _repeat(self, depth: int) -> list[Line]:
        """A uniform loop around operations at which threads wait."""
        self.loops += 1
        make, *lines = self._swap()
        return [group(make, Line(same(f"for turn_{self.loops} in range(n + 1):"), tuple(lines)))]

    def _reduce(self, depth: int) -> list[Line]:
        """A tree reduction over all threads in shared memory."""
        self.loops += 1
        kind, name, left = self.choose.choice(INTEGERS), f"s{self.loops}", f"left_{self.loops}"
        operation = self.choose.choice(("+", "^", "max({}, {})", "min({}, {})"))
        parts = same(f"{name}[t]"), same(f"{name}[t + {left}]")
        joined = both(operation, *parts) if "{" in operation else arithmetic(kind, operation, *parts)
        join = Line(both(f"{name}[t] = np.{kind}({{}})", joined))
        change = Line(same(f"if t < {left} and t + {left} < THREADS:"), (join,))
        half = Line(same(f"{left} = {left} // 2"))
        target, wanted = self.choose.choice(list(self.variables.items()))
        return [
            group(
                self._share(name, kind, "THREADS"), Line(both(f"{name}[t] = {{}}", self.value(kind, 2))), WAIT,
                Line(same(f"{left} = {1 << (self.threads - 1).bit_length() >> 1}")),
                Line(same(f"while {left} > 0:"), (change, WAIT, half)),
                Line(both(f"{target} = {{}}", self.cast(same(f"{name}[0]"), kind, wanted))), WAIT,
            )
        ]  # fmt: skip

    def _share(self, name: str, kind: str, count: str) -> Line:
        """A shared array."""
        made = f"{name} = hip.shared.array({count}, np.{kind})"
        return Line(Text(made, f'{name} = shared("{name}", {count}, np.{kind})'))

    def _gather(self, depth: int) -> list[Line]:
        """Atomic operations of some threads on shared memory, which all threads read afterwards."""
        self.loops += 1
        kind, name, operation = self.choose.choice(UPDATED), f"s{self.loops}", self.choose.choice(COMMUTATIVE)
        fill = Line(same("for q in range(4):"), (Line(same(f"{name}[q] = np.{kind}(9)")),))
        clear = Line(same("if t == 0:"), (fill,))
        change = self._update(operation, name, "t & 3", self.value(kind, 2))
        some = Line(both("if {}:", self.condition(1)), (change,))
        target, wanted = self.choose.choice(list(self.variables.items()))
        read = Line(both(f"{target} = {{}}", self.cast(same(f"{name}[(t + 1) & 3]"), kind, wanted)))
        return [group(self._share(name, kind, "4"), clear, WAIT, some, WAIT, read, WAIT)]

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
        # For true, `and` and `or` return any number other than 0.
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


def make_typed_case(seed: int, simulated: bool = False) -> TypedCase:
    """The random kernel of *seed*, or its variant for the simulator if *simulated*; the same each time."""
    return TypedGenerator(seed, simulated).make()
