"""Generates random kernels: Python programs in which every value has one exact result.

Each operation has operands of one type, and its result is cast to that type, so that Numba's arithmetic and that of
NumPy's scalars agree. Floats are only used in operations with one correct rounding in IEEE 754. Accesses of several
threads to the same memory are separated by a barrier, or atomic with a result that does not depend on the order; a
plain load may be the first guess of what a compare-and-swap finds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tools.fuzz.case import CELLS, FLOATS, INTEGERS, VARIABLES, Case, Emitted, make_lines
from tools.fuzz.program import wrapping_type

SHAPES = ((1, 1), (7, 1), (32, 1), (64, 1), (33, 2), (8, 8), (16, 3), (100, 1))
"""The extents of a block along x and y."""

FETCHES = (
    "picture[min(max({0}, 0), picture.shape[0] - 1), min(max({1}, 0), picture.shape[1] - 1)]",
    "picture[{0}, {1}] if 0 <= {0} < picture.shape[0] and 0 <= {1} < picture.shape[1] else int32(3)",
    "picture[({0}) % picture.shape[0], ({1}) % picture.shape[1]]",
)
"""An element of the picture at a row and a column, which may be outside."""

NEAR = ("ty + 1, tx", "ty + 1, tx + 2", "ty, tx + 1", "ty + 2, tx + 1")
"""The places in the tile that are next to that of a thread."""

MOST_DEPTH = 3


def arithmetic(kind: str, operation: str, one: str, two: str) -> str:
    """An operation on two integers of type *kind*, with a result of that type."""
    unsigned = wrapping_type(kind, operation)
    if unsigned is None:
        return f"{kind}({one} {operation} {two})"
    return f"{kind}({unsigned}({one}) {operation} {unsigned}({two}))"


class Generator:
    """Generates the program of *seed*."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.choose = random.Random(seed)
        self.lines: list[Emitted] = []
        self.groups, self.grouped = 0, False
        self.functions: dict[str, str] = {}
        self.loops = 0
        self.waits = self.choose.random() < 0.5
        self.tile: tuple[int, int] | None = None
        """The extents along x and y of a part of a picture in shared memory, with neighbours on each side."""

    def make(self) -> Case:
        """The case of the seed."""
        block, blocks, number = self.choose.choice(SHAPES), self.choose.randint(1, 3), self.choose.randint(0, 3)
        for _ in range(self.choose.randint(0, 2)):
            self._function(f"helper_{len(self.functions)}")
        self._kernel(*block)
        lines = make_lines(self.lines)
        return Case(self.seed, block, blocks, number, self.waits, tuple(self.functions.items()), lines)

    # Functions.

    def _function(self, name: str) -> None:
        self.lines = []
        for variable in ("l1", "d0"):
            self.emit(1, f"{variable} = {VARIABLES[variable]}({'l0' if variable == 'l1' else 'f0'})")
        names = ("l0", "f0", "l1", "d0")
        for _ in range(self.choose.randint(1, 3)):
            self._plain(1, names)
        self.emit(1, f"if {self.condition(names)}:")
        self.emit(2, f"return {self._cast('l1', 'int64')}")
        self.emit(1, f"for turn in range(l0 & int64({self.choose.choice((1, 3, 7))})):")
        self._assign(2, names)
        self.emit(2, f"l1 = {arithmetic('int64', '+', 'l1', 'int64(turn)')}")
        self.emit(1, f"return {self.integer('int64', names)}")
        body = "\n".join("    " * line.depth + line.text for line in self.lines)
        self.functions[name] = f"@hip.jit(device=True)\ndef {name}(l0, f0):\n{body}\n"

    def _kernel(self, width: int, height: int) -> None:
        self.lines = []
        self.tile = (width + 2, height + 2) if self.waits and self.choose.random() < 0.4 else None
        self.emit(1, f"t = int64(hip.threadIdx.x + {width} * hip.threadIdx.y)")
        self.emit(1, "g = int64(hip.blockIdx.x * THREADS + t)")
        for place, (name, kind) in enumerate(INTEGERS.items()):
            self.emit(1, f"{name} = {kind}(words[g] >> int64({place}))")
        for place, (name, kind) in enumerate(FLOATS.items()):
            self.emit(1, f"{name} = {kind}(numbers[g] + {place}.0)")
        self.emit(1, "private = hip.local.array(8, int32)")
        self.emit(1, "for turn in range(8):")
        self.emit(2, "private[turn] = int32(i0 + int32(turn))")
        if self.waits:
            self._share()
        names = tuple(VARIABLES)
        if not self.waits and self.choose.random() < 0.1:
            for _ in range(self.choose.randint(0, 3)):
                self._plain(1, names)
            self._claim(1, names)
            return
        if self.tile is not None and self.choose.random() < 0.4:
            for _ in range(self.choose.randint(1, 3)):
                with self._group():
                    self._tile(1, *self.tile)
        else:
            for _ in range(self.choose.randint(4, 9)):
                self._uniform(1, names)
        for place, name in enumerate(INTEGERS):
            self.emit(1, f"rows[g, {place}] = int64({name})")
        for place, name in enumerate(FLOATS):
            self.emit(1, f"reals[g, {place}] = float64({name})")

    def _share(self) -> None:
        with self._group():
            self.emit(1, "shared = hip.shared.array(THREADS, int64)")
            self.emit(1, "sums = hip.shared.array(4, int32)")
            self.emit(1, "shared[t] = l0")
            self.emit(1, "if t == 0:")
            self.emit(2, "for turn in range(4):")
            self.emit(3, "sums[turn] = int32(0)")
            if self.tile is not None:
                width, height = self.tile
                self.emit(1, "tx, ty = int64(hip.threadIdx.x), int64(hip.threadIdx.y)")
                self.emit(1, f"x = int64(hip.blockIdx.x * {width - 2}) + tx")
                self.emit(1, f"tile = hip.shared.array(({height}, {width}), int32)")
                self.emit(1, f"for turn in range(t, {width * height}, THREADS):")
                self.emit(2, f"tile[turn // {width}, turn % {width}] = int32(turn)")
            self.emit(1, "hip.syncthreads()")

    # Statements.

    def emit(self, depth: int, line: str, held: bool = False) -> None:
        """Add a line, *depth* levels deep."""
        self.lines.append(Emitted(depth, line, held, self.groups if self.grouped else 0))

    @contextmanager
    def _group(self) -> Iterator[None]:
        """Lines that are emitted in this context stay together."""
        self.groups += 1
        self.grouped = True
        yield
        self.grouped = False

    def _uniform(self, depth: int, names: Sequence[str]) -> None:
        """A statement at a place that all threads reach that have not returned."""
        if not self.waits or self.choose.random() < 0.55:
            self._plain(depth, names, kernel=True)
            return
        kind = self.choose.choice(("exchange", "count", "sums", "if", "for") if depth < 3 else ("exchange", "count"))
        if kind in ("if", "for"):
            number = self.choose.randint(0, 3)
            self.emit(
                depth, f"if n > {number}:" if kind == "if" else f"for turn_{self._loop()} in range(n + {number}):"
            )
            for _ in range(self.choose.randint(1, 3)):
                self._uniform(depth + 1, names)
            return
        with self._group():
            if kind == "exchange" and self.tile is not None and self.choose.random() < 0.7:
                self._tile(depth, *self.tile)
            else:
                getattr(self, f"_{kind}")(depth, names)

    def _exchange(self, depth: int, names: Sequence[str]) -> None:
        self.emit(depth, f"shared[t] = {self.integer('int64', names)}")
        self.emit(depth, "hip.syncthreads()")
        self.emit(depth, f"l1 = shared[(t + {self.choose.randint(1, 70)}) % THREADS]")
        self.emit(depth, "hip.syncthreads()")

    def _tile(self, depth: int, width: int, height: int) -> None:
        """Fill the tile with a part of the picture, and add up what is around each thread's own place."""
        number, fetch = self._loop(), self.choose.choice(FETCHES)
        way = self.choose.choice(("turns", "rows", "halo"))
        if way == "halo":
            self._halo(depth, width, height, fetch)
        else:
            row, column, inner = f"row_{number}", f"column_{number}", depth + 1
            if way == "turns":
                self.emit(depth, f"for turn_{number} in range(t, {width * height}, THREADS):")
                self.emit(inner, f"{row}, {column} = turn_{number} // {width}, turn_{number} % {width}")
            else:
                inner += 1
                self.emit(depth, f"for {row} in range(ty, {height}, {height - 2}):")
                self.emit(depth + 1, f"for {column} in range(tx, {width}, {width - 2}):")
            self.emit(inner, f"tile[{row}, {column}] = {fetch.format(f'{row} - 1', f'x - tx + {column} - 1')}")
        self.emit(depth, "hip.syncthreads()")
        self._around(depth, number)
        self.emit(depth, "hip.syncthreads()")

    def _halo(self, depth: int, width: int, height: int, fetch: str) -> None:
        """Each thread loads its own place; those at the beginning of a row or a column, what is outside of it, too."""
        self.emit(depth, f"tile[ty + 1, tx + 1] = {fetch.format('ty', 'x')}")
        self.emit(depth, "if tx < 1:")
        self.emit(depth + 1, f"tile[ty + 1, 0] = {fetch.format('ty', 'x - 1')}")
        self.emit(depth + 1, f"tile[ty + 1, {width - 1}] = {fetch.format('ty', f'x + {width - 2}')}")
        self.emit(depth, "if ty < 1:")
        self.emit(depth + 1, f"tile[0, tx + 1] = {fetch.format('ty - 1', 'x')}")
        self.emit(depth + 1, f"tile[{height - 1}, tx + 1] = {fetch.format(f'ty + {height - 2}', 'x')}")

    def _around(self, depth: int, number: int) -> None:
        """Add up neighbours in the tile: the four next ones, or all, until one ends the search, or both."""
        which = self.choose.choice(("near", "all", "both"))
        for place in NEAR if which != "all" else ():
            self.emit(depth, f"l1 = {arithmetic('int64', '+', 'l1', f'int64(tile[{place}])')}")
        if which == "near":
            return
        limit = self.choose.choice(("int32(i0 & int32(31))", "tile[ty + 1, tx + 1]"))
        self.emit(depth, f"for down_{number} in range(3):")
        self.emit(depth + 1, f"for along_{number} in range(3):")
        self.emit(depth + 2, f"met_{number} = tile[ty + down_{number}, tx + along_{number}]")
        self.emit(depth + 2, f"if met_{number} {self.choose.choice(('>', '<'))} {limit}:")
        self.emit(depth + 3, self.choose.choice(("break", "continue")))
        self.emit(depth + 2, f"l1 = {arithmetic('int64', '+', 'l1', f'int64(met_{number})')}")

    def _count(self, depth: int, names: Sequence[str]) -> None:
        which = self.choose.choice(("count", "and", "or"))
        predicate = f"int32(1) if {self.condition(names)} else int32(0)"
        self.emit(depth, f"met = int32(hip.syncthreads_{which}({predicate}))")
        self.emit(depth, "i1 = int32(i1 + (met if met < int32(2) else met * int32(3)))")

    def _sums(self, depth: int, names: Sequence[str]) -> None:
        inner = depth
        if self.choose.random() < 0.5:
            self.emit(depth, f"if {self.condition(names)}:")
            inner += 1
        self.emit(inner, f"hip.atomic.add(sums, int64({self.choose.choice(tuple(INTEGERS))} & 3), int32(i0))")
        self.emit(depth, "hip.syncthreads()")
        self.emit(depth, "i0 = int32(i0 ^ sums[int64(i1 & int32(3))])")
        self.emit(depth, "hip.syncthreads()")

    def _loop(self) -> int:
        self.loops += 1
        return self.loops

    def _plain(self, depth: int, names: Sequence[str], kernel: bool = False, looping: bool = False) -> None:
        """A statement that any subset of the threads can reach."""
        kinds = ["assign"] * 4
        if depth <= MOST_DEPTH:
            kinds += ["if", "if", "range", "while"] + (["within", "within", "walk"] if kernel else [])
        if kernel:
            kinds += ["atomic", "private", "store", "swap"] + (["return"] if self.choose.random() < 0.4 else [])
        if looping:
            kinds += ["leave"]
        kind = self.choose.choice(kinds)
        if kind == "assign":
            self._assign(depth, names)
        elif kind == "if":
            self.emit(depth, f"if {self.condition(names)}:")
            self._body(depth + 1, names, kernel, looping)
            if self.choose.random() < 0.6:
                self.emit(depth, "else:")
                self._body(depth + 1, names, kernel, looping)
        elif kind == "within":
            self.emit(depth, f"if {self._bound()}:")
            self._body(depth + 1, names, kernel, looping)
        elif kind == "walk":
            self._walk(depth, names)
        elif kind in ("range", "while"):
            self._repeat(depth, names, kernel, kind)
        elif kind == "leave":
            self.emit(depth, f"if {self.condition(names)}:")
            self.emit(depth + 1, self.choose.choice(("break", "continue")))
        elif kind == "return":
            self.emit(depth, f"if (l0 & int64(7)) == int64(5) and {self.condition(names)}:")
            self.emit(depth + 1, "return")
        else:
            self._touch(depth, names, kind)

    def _body(self, depth: int, names: Sequence[str], kernel: bool, looping: bool) -> None:
        for _ in range(self.choose.randint(1, 3)):
            self._plain(depth, names, kernel, looping)

    def _repeat(self, depth: int, names: Sequence[str], kernel: bool, kind: str) -> None:
        number, mask = self._loop(), self.choose.choice((1, 3, 7))
        limit = f"{self.integer('int64', names)} & int64({mask})"
        if kind == "range":
            self.emit(depth, f"for turn_{number} in range({limit}):")
            name = self.choose.choice([one for one in names if one in INTEGERS])
            kind = VARIABLES[name]
            self.emit(depth + 1, f"{name} = {arithmetic(kind, '+', name, f'{kind}(turn_{number})')}")
        else:
            self.emit(depth, f"left_{number} = {limit}")
            self.emit(depth, f"while left_{number} > int64(0) and {self.condition(names)}:")
            self.emit(depth + 1, f"left_{number} = int64(left_{number} - int64(1))", held=True)
        self._body(depth + 1, names, kernel, looping=True)

    def _bound(self) -> str:
        """A condition on the index of the thread, such as ``i < n``."""
        place = self.choose.choice(("g", "t", "g + n", "g - 5", "2 * t + g"))
        return f"{place} {self.choose.choice(('<', '<', '>=', '<='))} {self.choose.choice((0, 20, 60))} + n * 30"

    def _walk(self, depth: int, names: Sequence[str]) -> None:
        """A grid-stride loop over an array: each thread has its own elements."""
        number = self._loop()
        limit = self.choose.choice(("walked.size", "walked.size - n", "min(walked.size, n * 70)"))
        self.emit(depth, f"for place_{number} in range(g, {limit}, STEP):")
        self.emit(depth + 1, f"l1 = {arithmetic('int64', '+', 'l1', f'walked[place_{number}]')}")
        if self.choose.random() < 0.5:
            self._assign(depth + 1, names)
        if self.choose.random() < 0.4:
            self._plain(depth + 1, names, kernel=True, looping=True)
        self.emit(depth + 1, f"walked[place_{number}] = {self.integer('int64', names)}")

    def _touch(self, depth: int, names: Sequence[str], kind: str) -> None:
        if kind == "atomic" and self.choose.random() < 0.2:
            self._claim(depth, names)
        elif kind == "atomic" and self.choose.random() < 0.2:
            self.emit(depth, "hip.atomic.add(total, 0, float64(i0 & int32(255)))")
        elif kind == "atomic":
            cell = self.choose.randrange(len(CELLS))
            self.emit(depth, f"hip.atomic.{CELLS[cell]}(totals, {cell}, {self.integer('int64', names)})")
        elif kind == "private":
            self.emit(depth, f"private[int64(u0 & uint32(7))] = {self.integer('int32', names)}")
            self.emit(depth, "i1 = int32(i1 ^ private[int64(i0 & int32(7))])")
        elif kind == "swap":
            self.emit(depth, "kept = walked[g]")
            self.emit(depth, f"walked[g] = {self.integer('int64', names)}")
            self.emit(depth, f"{self.choose.choice(('l0', 'l1'))} = kept")
        else:
            self.emit(depth, f"rows[g, {self.choose.randrange(len(INTEGERS))}] = {self.integer('int64', names)}")

    def _claim(self, depth: int, names: Sequence[str]) -> None:
        """A maximum or minimum by compare-and-swap, which begins with a plain load."""
        operation = self.choose.choice(("max", "min"))
        cell, number = CELLS.index(operation), self._loop()
        with self._group():
            self.emit(depth, f"own_{number} = {self.integer('int64', names)}")
            self.emit(depth, f"old_{number} = totals[{cell}]")
            self.emit(depth, f"while own_{number} {'>' if operation == 'max' else '<'} old_{number}:")
            self.emit(depth + 1, f"met_{number} = hip.atomic.cas(totals, {cell}, old_{number}, own_{number})")
            self.emit(depth + 1, f"if met_{number} == old_{number}:")
            self.emit(depth + 2, "break")
            self.emit(depth + 1, f"old_{number} = met_{number}")

    def _assign(self, depth: int, names: Sequence[str]) -> None:
        # A parameter keeps its type, as other variables do: callers cast their arguments.
        name = self.choose.choice(names)
        kind = VARIABLES[name]
        self.emit(depth, f"{name} = {self.integer(kind, names) if name in INTEGERS else self.real(kind, names)}")

    # Expressions.

    def condition(self, names: Sequence[str]) -> str:
        """A condition on the variables *names*."""
        name, other = self.choose.choice(names), self.choose.choice(names)
        kind = VARIABLES[name]
        if name in FLOATS:
            return f"{name} < {self._cast(other, kind)}"
        which = self.choose.choice(("bits", "less", "equal"))
        if which == "bits" or other in FLOATS:
            mask = self.choose.choice((1, 3, 7))
            return f"({name} & {kind}({mask})) == {kind}({self.choose.randint(0, mask)})"
        return f"{name} {'<' if which == 'less' else '!='} {self._cast(other, kind)}"

    def _cast(self, name: str, kind: str) -> str:
        return name if VARIABLES[name] == kind else f"{kind}({name})"

    def integer(self, kind: str, names: Sequence[str]) -> str:
        """An expression whose type is the integer type *kind*."""
        choose = self.choose
        integers = [name for name in names if name in INTEGERS]
        one, two = choose.choice(integers), choose.choice(integers)
        a, b = f"{kind}({one})", f"{kind}({two})"
        which = choose.randrange(12)
        if which < 5:
            return arithmetic(kind, choose.choice("+-*&|^"), a, b)
        if which < 7:
            return f"{kind}({a} {choose.choice(('<<', '>>'))} {kind}({b} & {kind}(15)))"
        if which == 7:
            return f"{kind}({a} {choose.choice(('//', '%'))} {kind}(({b} & {kind}(7)) + {kind}(1)))"
        if which == 8 and kind.startswith("int"):
            real = choose.choice([name for name in names if name in FLOATS])
            return f"({kind}({real}) if abs({real}) < {VARIABLES[real]}(1000) else {b})"
        if which == 9:
            return f"{kind}(hip.{choose.choice(('popc', 'clz', 'ffs', 'brev'))}({one}))"
        if which == 10 and self.functions:
            real = choose.choice([name for name in names if name in FLOATS])
            return f"{kind}({choose.choice([*self.functions])}(int64({one}), float32({real})))"
        return f"({a} if {self.condition(names)} else {kind}({choose.randint(0, 1000)}))"

    def real(self, kind: str, names: Sequence[str]) -> str:
        """An expression whose type is the floating-point type *kind*."""
        one, two = (f"{kind}({self.choose.choice(names)})" for _ in range(2))
        which = self.choose.randrange(6)
        if which < 3:
            return f"{kind}({one} {self.choose.choice('+-*')} {two})"
        if which == 3:
            return f"{kind}({one} / {kind}(abs({kind}({two})) + {kind}(1)))"
        if which == 4:
            return f"({one} if {self.condition(names)} else {kind}({self.choose.randint(0, 100)}))"
        return f"{kind}({one} * {kind}({self.choose.choice((0.5, 0.25, 2.0))}))"


def make_case(seed: int) -> Case:
    """The random program of *seed*; the same each time."""
    return Generator(seed).make()
