"""Random loops of kernels with computed indices: over slices, windows, neighbours in pictures, and bytes of texts."""

from __future__ import annotations

from dataclasses import dataclass

from tools.fuzz.indexed_values import MARKS, STORED, ValueGenerator, code, store
from tools.fuzz.indices import Axis
from tools.fuzz.program import Line, group


@dataclass
class LoopGenerator(ValueGenerator):
    """Generates statements with loops, and with private arrays."""

    def _slice_text(self) -> str:
        one, two = (self.one_of("q", "q - 2", "q + 3", "t - 9", "max(q - 3, 0)", "n - q", "max(n - q, 0)", "q // 2")
                    for _ in "ab")  # fmt: skip
        size = self.choose.randint(1, 8)
        return self.one_of(
            f"{one}:{one} + {size}", f"max({one}, 0):max({one}, 0) + {size}",
            f"max({one}, 0):min({two} + 2, {one} + 9)",
            f"{one}:{one} + 9:{self.choose.randint(2, 3)}", f"{one} + 6:{one}:-1", f"min({one}, {two}):{one} + {size}",
            f"-{size}:", f":{size}", f"{self.inside()}:{self.inside()} + {size}",
        )  # fmt: skip

    def view(self) -> str:
        """A view of an array with one axis, of any length."""
        which = self.choose.randrange(6)
        if which < 3:
            return f"{self.use(self.one_of('numbers', 'reals', 'text'))}[{self._slice_text()}]"
        row, column = self.axes() if self.rows else (Axis("h", "(q // w)"), Axis("w", "(q % w)"))
        picture = self.use("picture")
        if which == 3:
            return f"{picture}[{self.index(row)}]"
        if which == 4:
            return f"{picture}[:, {self.index(column)}]"
        part = self.one_of(
            f"{column.place}:{column.place} + 3", f"max({column.place} - 1, 0):{column.place} + 2", "::2"
        )
        return f"{picture}[{self.index(row)}, {part}]"

    def _slice(self, depth: int) -> list[Line]:
        """What is done with all elements of a slice."""
        which, name, number, one = self.choose.randrange(5), self.new("v"), self.new("j"), self.new("x")
        leave = code(f"if {one} > {self.one_of('9', '20', 't')}:", code(self.one_of("break", "continue", "t += 1")))
        some = (leave,) if self.choose.random() < 0.5 else ()
        add = code(f"s = (s * 3 + np.int64({one})) & 0xfff")
        if which == 0:
            return [code(f"for {one} in {self.view()}:", *some, add)]
        if which == 1:
            add = code(f"s = (s + np.int64({one}) * {number}) & 0xfff")
            return [code(f"for {number}, {one} in enumerate({self.view()}):", *some, add)]
        if which == 2:
            add = code(f"s = (s + np.int64({number}) * 2 + np.int64({one})) & 0xfff")
            return [code(f"for {number}, {one} in zip({self.view()}, {self.view()}):", *some, add)]
        make = code(f"{name} = {self.view()}")
        if which == 3:
            place = self.one_of(number, "-1", f"len({name}) - 1 - {number}", f"{number} - 1", f"{number} // 2")
            take = code(f"{one} = {name}[{place}]")
            return [group(make, code(f"for {number} in range(len({name})):", group(take, *some, add)))]
        place = self.one_of("0", "-1", f"t % {name}.shape[0]", f"{name}.shape[0] // 2")
        use = code(f"if {name}.shape[0] > {self.choose.randint(0, 2)}:", self._target(f"np.int64({name}[{place}])"))
        return [group(make, self._target(f"{name}.shape[0]"), use)]

    def _window(self, depth: int) -> list[Line]:
        """A loop whose bounds are clamped, or over indices that are clamped, reflected or continued in it."""
        number, place = self.new("j"), self.new("p")
        if self.choose.random() < 0.5:
            low = self.one_of(f"max(q - {self.choose.randint(1, 3)}, 0)", self.inside(), "q")
            head = f"for {number} in range({low}, min({self.one_of('q', low)} + {self.choose.randint(1, 6)}, n)):"
            return [code(head, *self._with(number, depth))]
        head = f"for {number} in range({self.choose.choice((-1, -2, -3))}, {self.choose.randint(1, 3)}):"
        moved = code(f"{place} = q {self.one_of('+', '-')} {number}")
        self.least = max(self.least, 4)
        left = [f"if {place} < 0:", self.one_of("continue", "break"), f"if {place} >= n:", "break"]
        put = self._put_within(place, "n", left if self.choose.random() < 0.2 else None)
        return [code(head, group(moved, *put), *self._with(place, depth))]

    def _put_within(self, place: str, extent: str, chosen: list[str] | None = None) -> list[Line]:
        """Tests that put *place*, which is a few elements beyond an edge at most, within bounds, or *chosen* ones."""
        before, behind = f"if {place} < 0:", self.one_of(f"if {place} >= {extent}:", f"if {place} > {extent} - 1:")
        edges = (
            [before, f"{place} = 0", behind, f"{place} = {extent} - 1"],
            [before, f"{place} = -{place}", behind, f"{place} = 2 * {extent} - 2 - {place}"],
            [before, f"{place} = -1 - {place}", behind, f"{place} = 2 * {extent} - 1 - {place}"],
            [before, f"{place} += {extent}", behind, f"{place} -= {extent}"],
            [f"if {place} < 0 or {place} >= {extent}:", f"{place} = {place} % {extent}"],
        )
        told = chosen or self.choose.choice(edges)
        return [code(test, code(change)) for test, change in zip(told[::2], told[1::2], strict=True)]

    def _edge(self, depth: int) -> list[Line]:
        """A neighbour, on the other side of an edge or not, along one axis."""
        axis = self.choose.choice((Axis("n", "q"), *(self.axes() if self.rows else ())))
        place, by = self.new("i"), self.small(axis)
        moved = code(f"{place} = {axis.place} {self.one_of('+', '-')} {by}")
        lines = [moved, *self._put_within(place, axis.extent)]
        if axis.extent == "n":
            loaded = f"{self.use(self.one_of('numbers', 'reals', 'text'))}[{place}]"
        else:
            row, column = (place if axis.extent == other.extent else other.place for other in self.axes())
            loaded = f"{self.use('picture')}[{row}, {column}]"
        if self.choose.random() < 0.5:
            return [
                group(*lines, store(self.use(f"out_{self.choose.choice(STORED)}"), self.own(), f"np.int64({loaded})"))
            ]
        return [group(*lines, self._target(f"np.int64({loaded})"))]

    def _around(self, depth: int) -> list[Line]:
        """The neighbours of an element of a picture on both sides along both axes, edges being treated alike."""
        row, column = self.axes() if self.rows else (Axis("h", "(q // w)"), Axis("w", "(q % w)"))
        kind = self.choose.randrange(4)
        up, left = (self._neighbour(axis, "-", kind) for axis in (row, column))
        down, right = (self._neighbour(axis, "+", kind) for axis in (row, column))
        self.side = max(self.side, 2)
        picture, middle = self.use("picture"), (row.place, column.place)
        cells = [(up, middle[1]), (down, middle[1]), (middle[0], left), (middle[0], right), (up, left), (down, right)]
        chosen = self.choose.sample(cells, self.choose.randint(2, 4))
        return [self._target(" + ".join(f"np.int64({picture}[{one}, {other}])" for one, other in chosen))]

    def _neighbour(self, axis: Axis, sign: str, kind: int) -> str:
        """The next index along *axis*."""
        place, extent = axis.place, axis.extent
        last = f"{extent} - 1"
        if sign == "-":
            modulo = self.one_of(f"({place} - 1) % {extent}", f"({place} - 1 + {extent}) % {extent}")
            test = f"({place} - 1 if {place} > 0 else {last})"
            return (f"max({place} - 1, 0)", modulo, test, f"abs({place} - 1)")[kind]
        test = self.one_of(f"({place} + 1 if {place} < {last} else 0)", f"(0 if {place} == {last} else {place} + 1)")
        back = f"({place} + 1 if {place} + 1 < {extent} else {extent} - 2)"
        return (f"min({place} + 1, {last})", f"({place} + 1) % {extent}", test, back)[kind]

    def _with(self, place: str, depth: int) -> list[Line]:
        """Statements in a loop that use the valid index *place*."""
        kept, self.waves = self.waves, False
        self.inner.append(place)
        lines = [*self.body(1, depth + 1), self._target(self.load()), *self._some_leave()]
        self.inner.remove(place)
        self.waves = kept
        return lines

    def _some_leave(self) -> list[Line]:
        if self.choose.random() < 0.6:
            return []
        return [code(f"if {self.condition()}:", code(self.one_of("break", "continue")))]

    def _nested(self, depth: int) -> list[Line]:
        """Neighbours of an element of a picture, in two loops that may be left."""
        one, other, row, column = (self.new(prefix) for prefix in "ijyz")
        place = self.rows or ("(q // w)", "(q % w)")
        low, high = self.choose.choice(((-1, 2), (-1, 2), (-2, 3), (0, 2)))
        self.side = max(self.side, 3)
        lines = [code(f"{row} = {place[0]} + {one}"), code(f"{column} = {place[1]} + {other}")]
        which = self.choose.randrange(5)
        if which == 0:
            told = f"if {row} < 0 or {row} >= h or {column} < 0 or {column} >= w:"
            lines.append(code(told, code(self.one_of("continue", "continue", "break"))))
        elif which == 1:
            lines.append(
                code(f"if not (0 <= {row} < h and 0 <= {column} < w):", code(self.one_of("continue", "break")))
            )
        elif which == 2:
            lines += [code(f"{row} = min(max({row}, 0), h - 1)"), code(f"{column} = min(max({column}, 0), w - 1)")]
        elif which == 3:
            lines += [code(f"{row} = ({row} + h) % h"), code(f"{column} = ({column} + 2 * w) % w")]
        else:
            lines.append(code(f"if {row} < 0:", code(f"{row} = -{row}")))
            lines.append(code(f"if {row} > h - 1:", code(f"{row} = 2 * (h - 1) - {row}")))
            lines.append(code(f"{column} = abs({column})"))
            lines.append(code(f"if {column} >= w:", code(f"{column} = 2 * w - 2 - {column}")))
        picture = self.use("picture")
        inner = [group(*lines)]
        if self.choose.random() < 0.4:
            tested = f"{picture}[{row}, {column}] {self.one_of('>', '<')} {self.choose.randint(5, 25)}"
            inner.append(code(f"if {tested}:", code(self.one_of("continue", "break", "t += 1"))))
        weight = f"({one} * 2 + {other} + 3)"
        inner.append(code(f"s = (s + np.int64({picture}[{row}, {column}]) * {weight}) & 0xfffff"))
        outer = [code(f"for {other} in range({low}, {high}):", *inner)]
        outer += [code(f"if s > {self.choose.choice((40, 300))}:", code("break"))] * (self.choose.random() < 0.3)
        return [code(f"for {one} in range({low}, {high}):", *outer)]

    def _states(self, depth: int) -> list[Line]:
        """A state that changes with each byte of a text."""
        state, number, mark = self.new("m"), self.new("j"), self.new("b")
        count = self.choose.randint(2, 4)
        chain: tuple[Line, ...] = ()
        for one in reversed(range(count)):
            inner: tuple[Line, ...] = ()
            for tested in self.choose.sample(MARKS, self.choose.randint(1, 3)):
                then = (code(f"{state} = {self.choose.randrange(count)}"), *self._mark())
                inner = (code(f"if {mark} == {tested}:", *then, other=inner),)
            chain = (code(f"if {state} == {one}:", *inner, other=chain),)
        byte = f"{self.use('text')}[{number}]"
        take = code(f"{mark} = {self.one_of(f'np.int64({byte})', byte)}")
        bounds = self.one_of(
            "q, min(q + 12, n)", "max(q - 5, 0), q", "q, n, 3" if self.choose.random() < 0.2 else "q, q + 1"
        )
        leave = [code(f"if {mark} == {self.choose.choice(MARKS)}:", code("break"))] * (self.choose.random() < 0.4)
        begin = code(f"{state} = {self.one_of('0', '1', 's & 1')}")
        loop = code(f"for {number} in range({bounds}):", group(take, *leave), *chain)
        return [group(begin, loop, self._target(state))]

    def _choice(self, depth: int) -> list[Line]:
        """One of some constants with few bits, by a small number."""
        name, kind, mask = self.new("k"), self.one_of("uint8", "int8", "uint16", "int16"), self.choose.choice((1, 3, 7))
        count = self.choose.randint(2, mask + 1)
        numbers = [f"np.{kind}(np.int64({self.choose.randint(0, 120)}))" for _ in range(count + 1)]
        text = (
            "".join(f"{number} if {name} == {place} else " for place, number in enumerate(numbers[:-1])) + numbers[-1]
        )
        small = self.one_of(f"({self.value(1)}) & {mask}", f"np.int64({self.use('text')}[q]) % {count}")
        take = code(f"{name} = {self.one_of(small, f'np.uint8({small})')}")
        return [group(take, store(self.use(f"out_{self.one_of(kind, 'int64')}"), self.own(), text))]

    def _mark(self) -> list[Line]:
        return [code(self.one_of("s += 1", "t += 1", "u = u ^ 5"))] if self.choose.random() < 0.5 else []

    def _apart(self, depth: int) -> list[Line]:
        """A loop that lanes leave one after another, whose last index is used behind it."""
        place, number = self.new("p"), self.new("j")
        self.least = max(self.least, 4)
        low = self.one_of("q - 3", "q - 1", "q", "max(q - 2, 0)")
        head = f"for {number} in range({low}, min(q + {self.choose.randint(1, 9)}, n)):"
        within = self.one_of(f"({number} + n if {number} < 0 else {number})", f"max({number}, 0)", f"abs({number})")
        tested = f"np.int64({self.use('numbers')}[q]) + {number} > {self.one_of('9', '40', 't', 'n')}"
        leave = code(f"if {self.one_of(tested, self.condition())}:", code(self.one_of("break", "break", "continue")))
        take = self._target(f"np.int64({self.use(self.one_of('numbers', 'reals', 'text'))}[{place}])")
        lines = [leave, take] if self.choose.random() < 0.6 else [take, leave]
        loop = code(head, code(f"{place} = {within}"), *lines)
        behind = self._target(self.one_of(place, f"np.int64({self.use('numbers')}[{place}])"))
        return [group(code(f"{place} = q"), loop, behind)]

    def _search(self, depth: int) -> list[Line]:
        """A loop without a counter."""
        place = self.new("p")
        if self.choose.random() < 0.5:
            test, step = f"{place} < n", self.choose.randint(1, 3)
        else:
            test, step = f"{place} >= 0", -self.choose.randint(1, 2)
        tested = f"{self.use('numbers')}[{place}] {self.one_of('!=', '<', '>')} {self.one_of('t & 31', '7', '20')}"
        loop = code(f"while {test} and {tested}:", code(f"{place} += {step}", held=True))
        return [group(code(f"{place} = q"), loop, self._target(place))]

    def _private(self, depth: int) -> list[Line]:
        """A private array that is filled, changed and read at computed places."""
        name, number = self.new("a"), self.new("j")
        kind = self.choose.choice(STORED)
        fill = code(f"for {number} in range(8):", store(name, number, self.one_of(number, f"(q + {number}) & 31", "0")))
        change = store(name, self.one_of("s & 7", "2", "q & 7"), f"{self.value(1)} & 127")
        read = self._target(f"np.int64({name}[{self.one_of('t & 7', 's & 7', '5', 'q & 7')}])")
        return [group(code(f"{name} = hip.local.array(8, np.{kind})"), fill, change, read)]

    def _narrow(self, depth: int) -> list[Line]:
        """A counter of few bits that goes round, and is an index."""
        name, number = self.new("b"), self.new("j")
        kind, first = self.choose.choice((("uint8", 251), ("uint16", 65530), ("uint32", 4294967290), ("int32", 5)))
        step = code(f"{name} = np.{kind}(np.int64({name}) + {self.choose.randint(1, 3)})")
        use = self._target(f"np.int64({self.use('numbers')}[np.int64({name}) % n])")
        loop = code(f"for {number} in range({self.one_of('9', 's & 15', 't & 3')}):", step, use)
        return [group(code(f"{name} = np.{kind}(np.int64({first}))"), loop)]

    def _row(self, depth: int) -> list[Line]:
        """A row is a view, whose elements are stored in a loop."""
        name, number = self.new("v"), self.new("j")
        place = self.one_of(number, f"6 - {number}", f"-1 - {number}")
        put = store(name, place, f"(s + {number} * {self.one_of('1', 't', '3')}) & 63")
        return [group(code(f"{name} = {self.use('rows_7')}[q]"), code(f"for {number} in range(7):", put))]

    def _bounded(self, depth: int) -> list[Line]:
        """An index that `if` puts within bounds, one of which is put within bounds before."""
        name, low = self.new("i"), self.new("low")
        lines = [code(f"{low} = q - {self.choose.randint(1, 6)}"), code(f"if {low} < 0:", code(f"{low} = 0"))]
        lines.append(
            code(f"{name} = {self.one_of(self.outside(Axis('n', 'q')), f'{low} + {self.choose.randint(0, 9)}')}")
        )
        below = code(f"if {name} < {low}:", code(f"{name} = {low}"))
        above = code(f"if {name} > n - 1:", code(f"{name} = n - 1"))
        lines += [below, above]
        array = self.use(self.one_of("numbers", "reals", "text"))
        lines.append(self._target(f"np.int64({array}[{name}])"))
        return [group(*lines)]
