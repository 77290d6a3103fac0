"""Generates random kernels with computed indices: which threads work on which elements, and the arrays."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from tools.fuzz.indexed_program import IndexedCase, Launch, Made
from tools.fuzz.indexed_updates import UpdateGenerator
from tools.fuzz.indexed_values import BINS, MARKS, STORED, THEMES, code
from tools.fuzz.program import WAIT, Line, Text, group

BLOCKS = (
    (64, 1, 1), (33, 1, 1), (100, 1, 1), (128, 1, 1), (7, 1, 1), (1, 1, 1), (97, 1, 1), (256, 1, 1),
    (16, 4, 1), (7, 3, 1), (5, 5, 5), (1, 64, 1), (2, 3, 11), (32, 2, 1), (3, 31, 1), (1, 1, 40),
)  # fmt: skip
"""The extents of blocks."""

FLAT = "hip.threadIdx.x + hip.blockDim.x * (hip.threadIdx.y + hip.blockDim.y * hip.threadIdx.z)"
"""The number of a thread in its block."""

FRAMES = ("within", "returning", "exact", "stride", "stride", "two strides", "two strides", "typed", "backwards",
          "shifted", "parts", "rows", "picture", "picture strides", "box")  # fmt: skip
"""How elements are given to threads."""

LAYOUTS = (*["plain"] * 7, "offset", "fortran", "fortran", "gaps", "every second", "every third", "backwards",
           "rows backwards")  # fmt: skip

SMALL = "generator.integers(0, 30, {}).astype({!r})"
"""Small numbers of any shape and type."""


@dataclass
class IndexedGenerator(UpdateGenerator):
    """Generates the kernel of *seed*."""

    def make(self) -> IndexedCase:
        """The case of the seed."""
        choose = self.choose
        self.block = choose.choice(BLOCKS)
        self.threads = self.block[0] * self.block[1] * self.block[2]
        self.frame, self.wave = choose.choice(FRAMES), choose.choice((32, 64))
        self.waves = choose.random() < 0.2
        checked = choose.random() < 0.3
        self.theme = choose.choice((THEMES[0], *THEMES))
        self.most = choose.choice((1, 2, 3, 5))
        self.reports = checked and choose.random() < 0.4
        self.ends = choose.random() < 0.4 and "stride" in self.frame and "picture" not in self.frame
        lines = [code("s = np.int64(0)"), code("t = np.int64(2)"), code("u = np.int64(5)")]
        lines += getattr(self, f"_frame_{self.frame.replace(' ', '_')}")()
        launches = tuple(self._launch() for _ in range(3))
        numbers = choose.choice(("int64", "int64", "int32"))
        names = sorted(self.used)
        choose.shuffle(names)
        arrays = {name: Made(*self._array(name)) for name in names}
        return IndexedCase(self.seed, self.block, self.wave, checked, numbers, launches, arrays, tuple(lines))

    # Which threads work on which elements.

    def _number(self) -> list[Line]:
        """The thread's number and the number of threads."""
        if self.block[1:] == (1, 1):
            number = "hip.blockIdx.x * hip.blockDim.x + hip.threadIdx.x"
            number = self.one_of("hip.grid(1)", number, "np.int32(hip.grid(1))")
            step = self.one_of("hip.gridsize(1)", "hip.gridDim.x * hip.blockDim.x")
        else:
            number, step = f"hip.blockIdx.x * {self.threads} + {FLAT}", f"hip.gridDim.x * {self.threads}"
        return [code(f"g = {number}"), code(f"step = {step}")]

    def _work(self, key: str = "0", most: int = 0) -> tuple[Line, ...]:
        """What is done for the element ``q``, with up to *most* statements."""
        begin = [code(f"s = q & {self.choose.choice((7, 31))}"), code("t = q % 11")] * (self.choose.random() < 0.7)
        if not self.rows and self.choose.random() < 0.4:
            width = self.one_of("w", "w", "w32", "np.int64(w32)")
            begin += [code(f"r = np.int64(q // {width})"), code(f"c = np.int64(q % {width})")]
            self.rows = "r", "c"
        begin += [self.late_load()] * self.reports
        body = self.body(self.choose.randint(1, most or self.most), 1, key)
        ends = self.use("ends")
        return (*begin, *body, code(f"{ends}[q, 0] = s"), code(f"{ends}[q, 1] = t"))

    def _frame_within(self) -> list[Line]:
        return [*self._number(), code("q = np.int64(g)"), code("if q < n:", *self._work())]

    def _frame_returning(self) -> list[Line]:
        self.leaves = "return"
        return [*self._number(), code("q = np.int64(g)"), code("if q >= n:", code("return")), *self._work()]

    def _frame_exact(self) -> list[Line]:
        self.leaves = "return"
        return [*self._number(), code("q = np.int64(g)"), *self._work()]

    def _frame_stride(self) -> list[Line]:
        self.leaves = "continue"
        sums, ends = self._sums("a")
        loop = code("for q in range(g, n, step):", *self._work("q // step"), *sums)
        return [*self._number(), code("a = np.int64(0)"), loop, *ends]

    def _frame_two_strides(self) -> list[Line]:
        """Two loops in a row; what the first one found is used behind the second."""
        self.leaves = "continue"
        first, second = self.one_of("n", "n", "n - 3"), self.one_of("n", "n", "n - 5")
        kept, more = self.rows, self.choose.random() < 0.5
        found = self.choose.random() < 0.5
        if found:  # sums only
            one = [code(f"a += {self.simple_load()}")]
        else:
            one = [*self._work("0, q // step", 2)]
        self.rows = kept
        sums, ends = self._sums("b")
        self.rows = kept
        two = [code(f"b += {self.simple_load()}")] if more else [*self._work("1, q // step", 3), *sums]
        carried = self.use("carried")
        stored = [code(f"{carried}[g, 0] = a"), code(f"{carried}[g, 1] = b"), code(f"{carried}[g, 2] = t")]
        return [
            *self._number(), code("a = np.int64(0)"), code("b = np.int64(0)"),
            code(f"for q in range(g, {first}, step):", *one), code(f"for q in range(g, {second}, step):", *two),
            *stored, *(ends if not more else []),
        ]  # fmt: skip

    def _frame_typed(self) -> list[Line]:
        """A loop whose counter has another type."""
        kind = self.one_of("int32", "uint32", "int64", "uint64", "int16", "uint16")
        self.leaves = "continue"
        take = code("q = np.int64(k)")
        step = code(f"k = np.{kind}(np.int64(k) + step)", held=True)
        loop = code("while np.int64(k) < n:", group(take, step), *self._work("q // step"))
        return [*self._number(), code(f"k = np.{kind}(g)"), loop]

    def _frame_backwards(self) -> list[Line]:
        self.leaves = "continue"
        return [*self._number(), code("for q in range(n - 1 - g, -1, -step):", *self._work("(n - 1 - q) // step"))]

    def _frame_shifted(self) -> list[Line]:
        """The loop's counter begins below zero."""
        self.leaves = "continue"
        by = self.one_of("1", "5", "17", "64", "w")
        self.numbers = ["k", "(k // w)", "(k % w)"]
        loop = code(f"for k in range(g - {by}, n - {by}, step):", code(f"q = k + {by}"), *self._work("q // step"))
        return [*self._number(), loop]

    def _frame_parts(self) -> list[Line]:
        """Each thread has neighbouring elements."""
        self.leaves = "continue"
        loop = code("for q in range(g * part, min((g + 1) * part, n)):", *self._work("q - g * part"))
        return [*self._number(), code("part = -(-n // step)"), loop]

    def _frame_rows(self) -> list[Line]:
        """Each block has rows, each thread elements of them."""
        self.leaves, self.rows = "continue", ("r", "c")
        work = self._work("r // hip.gridDim.x, c // hip.blockDim.x".replace("hip.", "at."))
        inner = code("for c in range(hip.threadIdx.x, w, hip.blockDim.x):", code("q = r * w + c"), *work)
        self.block = (self.threads, 1, 1)
        return [code("for r in range(hip.blockIdx.x, h, hip.gridDim.x):", inner)]

    def _frame_picture(self) -> list[Line]:
        self.rows = "r", "c"
        within = self.one_of("if r < h and c < w:", "if c < w and r < h:")
        names = "c, r" if self._is_flat() else "r, c"
        return [code(f"{names} = hip.grid(2)"), code(within, code("q = r * w + c"), *self._work())]

    def _frame_picture_strides(self) -> list[Line]:
        self.leaves, self.rows = "continue", ("r", "c")
        names, (x, y) = ("c0, r0", "xy") if self._is_flat() else ("r0, c0", "yx")
        work = self._work(f"r // at.gridsize(2)[{'xy'.index(y)}], c // at.gridsize(2)[{'xy'.index(x)}]")
        inner = code(f"for c in range(c0, w, hip.gridDim.{x} * hip.blockDim.{x}):", code("q = r * w + c"), *work)
        outer = code(f"for r in range(r0, h, hip.gridDim.{y} * hip.blockDim.{y}):", inner)
        return [code(f"{names} = hip.grid(2)"), outer]

    def _is_flat(self) -> bool:
        """Whether columns are along x; blocks have two axes then, or in any case."""
        self.block = (self.block[0], self.block[1] * self.block[2], 1)
        self.along_x = self.choose.random() < 0.75
        return self.along_x

    def _frame_box(self) -> list[Line]:
        """The rows are along y and z."""
        self.rows = "r", "c"
        test = code("if c < w and y < part and r < h:", code("q = r * w + c"), *self._work())
        return [code("c, y, z = hip.grid(3)"), code("part = -(-h // 3)"), code("r = z * part + y"), test]

    def _sums(self, name: str) -> tuple[list[Line], list[Line]]:
        """Lines in a loop that add to the variable *name*; and behind the loop, of all threads of a block."""
        if not self.ends:
            return [code(f"{name} += s")], []
        sums, kind = self.use("sums"), self.one_of("int64", "int32", "float64")
        add = code(f"hip.atomic.add({sums}, hip.blockIdx.x % {BINS}, np.int64(x))")
        if self.choose.random() < 0.4:
            return [code(f"{name} += s")], [code(f"hip.atomic.add({sums}, g % {BINS}, {name})")]
        half = 1 << (self.threads - 1).bit_length() >> 1
        join = code(f"if tid < k and tid + k < {self.threads}:", code("shared[tid] += shared[tid + k]"))
        barrier = Line(Text(WAIT.text.hip, 'yield "barrier", ()'))
        tree = code("while k > 0:", join, barrier, code("k = k // 2"))
        return [code(f"{name} += s")], [
            group(
                code(f"shared = hip.shared.array({self.threads}, np.{kind})"), code(f"tid = {FLAT}"),
                code(f"shared[tid] = {name} & 0xffff"), barrier, code(f"k = {half}"), tree, code("x = shared[0]"),
                code("if tid == 0:", add),
            )
        ]  # fmt: skip

    # Launches and arrays.

    def _launch(self) -> Launch:
        choose, block = self.choose, self.block
        widths = (1, 2, 3, 5, 7, 8, 13, 16, 17, 24, 32, 33, 47, 64, 65, 100)
        most = choose.choice((600, 600, 600, 600, 2500))
        while True:
            columns, rows = choose.choice(widths), choose.choice((1, 1, 2, 3, 4, 5, 7, 9, 16, 23, 40))
            if self.frame == "exact":
                columns = ceil(columns / self.threads) * self.threads
            few = columns * rows <= max(most, 1400 * (self.frame == "exact"))
            if few and columns * rows >= max(self.least, 6) and min(rows, columns) >= self.side:
                break
        number, more = columns * rows, choose.choice((0, 0, 1))
        if self.frame in ("within", "returning"):
            return Launch(rows, columns, (ceil(number / self.threads) + more, 1, 1))
        if self.frame == "exact":
            return Launch(rows, columns, (number // self.threads, 1, 1))
        if self.frame == "box":
            x, y, z = map(ceil, (columns / block[0], ceil(rows / 3) / block[1], 3 / block[2]))
            return Launch(rows, columns, (x, y, z))
        if self.frame.startswith("picture"):
            extents = (columns, rows) if self.along_x else (rows, columns)
            x, y = (ceil(extent / size) for extent, size in zip(extents, block, strict=False))
            if "strides" in self.frame:
                x, y = max(1, x // choose.choice((1, 2, 3))), max(1, y // choose.choice((1, 2)))
            return Launch(rows, columns, (x, y, 1))
        return Launch(rows, columns, (choose.choice((1, 1, 2, 3)), 1, 1))

    def _array(self, name: str) -> tuple[str, str]:
        """The values and the layout of the array *name*."""
        choose = self.choose
        layout = choose.choice(LAYOUTS)
        kind = choose.choice(STORED)
        if name.startswith("out_"):
            return SMALL.format("(h, w)", name.removeprefix("out_")), layout
        if name in ("numbers", "picture") and choose.random() < 0.06:
            layout = "one for all"
        shapes = {"numbers": "n", "picture": "(h, w)", "rows_7": "(n, 7)", "own": "n", "real_sums": BINS, "sums": BINS}
        if name.startswith("fixed_"):
            columns = name.removeprefix("fixed_")
            return SMALL.format(f"(max(n // {columns} + 2, n), {columns})", kind), layout
        if name.startswith("table_"):
            return SMALL.format(name.removeprefix("table_"), kind), layout
        made = {
            "text": f"generator.choice({MARKS}, n).astype(np.uint8)",
            "reals": f"(generator.integers(-20, 60, n) / 4).astype({choose.choice(('float32', 'float64'))!r})",
            "places": f"generator.integers(0, n, n).astype({choose.choice(('int32', 'int64'))!r})",
            "ends": "np.full((n, 2), -7, np.int64)",
            "carried": "np.full((threads, 3), -7, np.int64)",
            "greatest": f"np.full({BINS}, -700, {choose.choice(('int32', 'int64'))!r})",
            "least": f"np.full({BINS}, 700, {choose.choice(('int32', 'int64'))!r})",
            "real_greatest": f"np.full({BINS}, -700, {choose.choice(('float32', 'float64'))!r})",
            "real_least": f"np.full({BINS}, 700, {choose.choice(('float32', 'float64'))!r})",
            "real_sums": f"np.zeros({BINS}, {choose.choice(('float32', 'float64'))!r})",
            "flips": f"np.zeros({BINS}, {choose.choice(('int32', 'uint32', 'int64'))!r})",
            "flags": f"np.zeros({BINS}, {choose.choice(('int32', 'uint32', 'int64'))!r})",
            "rounds": f"np.zeros({BINS}, np.uint32)",
            "both": f"np.zeros(({BINS}, 4), {choose.choice(('int32', 'int64', 'float32', 'float64'))!r})",
            "count": "np.zeros(1, np.int32)",
            "list_found": f"np.full(2 * n, 99, {choose.choice(('int32', 'int64', 'float32', 'int16'))!r})",
            "own": f"generator.integers(0, 30, n).astype({choose.choice(('int32', 'int64'))!r})",
            "own_reals": f"generator.integers(0, 30, n).astype({choose.choice(('float32', 'float64'))!r})",
            "sums": f"np.zeros({BINS}, {choose.choice(('int32', 'int64', 'uint32'))!r})",
        }
        return made.get(name) or SMALL.format(shapes[name], kind), layout


def make_indexed_case(seed: int) -> IndexedCase:
    """The random kernel of *seed*; the same each time."""
    return IndexedGenerator(seed).make()
