"""What a program leaves in memory, evaluated with NumPy for all threads of a block at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from spmd_fuzz.nodes import CELLS, COMMUTATIVE, DTYPES, FLOATS, PRIVATE, SCALARS, Node, Program, bits_of
from spmd_fuzz.writer import walk_limit

Array = np.ndarray[Any, Any]
Memory = dict[str, Array]

MOST_ROUNDS = 64
"""No loop of a program goes round as often. What is left of one that is made smaller may never end."""


class TooManyRoundsError(Exception):
    """A loop that is no loop of a program."""


def make_memory(program: Program, seed: int) -> Memory:
    """The arrays in device memory before the kernel runs, by the names of its parameters."""
    generator = np.random.default_rng(seed)
    memory: Memory = {}
    for kind in SCALARS:
        memory[f"in_{kind}"] = _numbers(generator, kind, program.input_size)
        memory[f"walked_{kind}"] = _numbers(generator, kind, program.walked_size)
        # Nothing is more than any maximum, nor less than any minimum, of these.
        memory[f"cells_{kind}"] = np.resize(_numbers(generator, kind, 1) if kind not in FLOATS else 0, 8).astype(
            DTYPES[kind]
        )
    for kind, layout in program.layouts.items():
        memory[f"own_{kind}"] = (np.arange(layout.size) * 7 % 100).astype(DTYPES[kind])
    return memory


def _numbers(generator: Any, kind: str, count: int) -> Array:
    """Numbers of all sizes, some of them special, with runs of equal ones."""
    if kind not in FLOATS:
        numbers = generator.integers(-(2**63), 2**63 - 1, count, np.int64, endpoint=True)
        numbers >>= generator.integers(0, 64, count)
        special = np.array([0, 1, -1, 2**63 - 1, -(2**63), 127, 128, 255, -128, 2**31, -(2**31), 2**15], np.int64)
        chosen = generator.random(count) < 0.25
        numbers[chosen] = generator.choice(special, chosen.sum())
        found = numbers.astype(DTYPES[kind])
        found[generator.random(count) < 0.1] = np.iinfo(DTYPES[kind]).min
    else:
        found = (generator.standard_normal(count) * 2.0 ** generator.integers(-6, 70, count)).astype(np.float64)
        whole = generator.random(count) < 0.5
        found[whole] = generator.integers(-300, 300, whole.sum())
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 127.5, -128.5, 2.0**31, -(2.0**31), 2.0**63, 2.0**64])
        chosen = generator.random(count) < 0.2
        found[chosen] = generator.choice(special, chosen.sum())
        with np.errstate(over="ignore"):
            found = found.astype(DTYPES[kind])
    if generator.random() < 0.2:
        found[:] = found[0]
    return found


def evaluate(program: Program, memory: Memory) -> None:
    """Run *program* on *memory*, which it changes."""
    with np.errstate(all="ignore"):
        for block in range(program.blocks):
            Block(program, memory, block).run(program.statements, np.ones(program.threads, bool))


def unsigned(value: Array) -> Array:
    """The bits of signed integers as unsigned ones."""
    return value.view(np.dtype(f"u{value.dtype.itemsize}"))


def signed(value: Array) -> Array:
    """The bits of unsigned integers as signed ones."""
    return value.view(np.dtype(f"i{value.dtype.itemsize}"))


def as_unsigned(function: Callable[..., Any]) -> Callable[..., Any]:
    """*function* of the bits of integers as unsigned ones."""
    return lambda *values: signed(np.asarray(function(*map(unsigned, values))))


def divide(operation: str, one: Array, two: Array) -> Array:
    """Towards zero, by 1 instead of 0, and of -1 where the result would not fit."""
    least = np.iinfo(one.dtype).min
    two = np.where((two == 0) | ((one == least) & (two == -1) & (operation[0] == "s")), one.dtype.type(1), two)
    if operation[0] == "u":
        ones, twos = unsigned(one), unsigned(two)
        return signed(ones // twos if operation == "udiv" else ones % twos)
    ones, twos = unsigned(np.where(one < 0, -one, one)), unsigned(np.where(two < 0, -two, two))
    if operation == "sdiv":
        found = signed(ones // twos)
        return np.where((one < 0) != (two < 0), -found, found)
    found = signed(ones % twos)
    return np.where(one < 0, -found, found)


def saturate(exact: Callable[[int, int], int], kind: str, sign: bool) -> Callable[[Array, Array], Array]:
    """An operation whose result is the nearest number of its type."""
    bits = bits_of(kind)
    low, high = (-1 << (bits - 1), (1 << (bits - 1)) - 1) if sign else (0, (1 << bits) - 1)

    def run(one: Array, two: Array) -> Array:
        if not sign:
            one, two = unsigned(one), unsigned(two)
        found = [min(max(exact(int(a), int(b)), low), high) for a, b in zip(one, two, strict=True)]
        return np.array(found, one.dtype).view(DTYPES[kind])

    return run


BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "shl": lambda a, b: signed(unsigned(a) << unsigned(b)),
    "lshr": lambda a, b: signed(unsigned(a) >> unsigned(b)), "ashr": lambda a, b: a >> b,
    "smax": np.maximum, "smin": np.minimum, "umax": as_unsigned(np.maximum), "umin": as_unsigned(np.minimum),
    "fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide,
}  # fmt: skip

COMPARE: dict[str, Callable[..., Any]] = {
    "eq": np.equal, "ne": np.not_equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
}  # fmt: skip

UPDATE: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "nand": lambda a, b: ~(a & b), "xchg": lambda a, b: b, "max": np.maximum, "min": np.minimum,
    "umax": as_unsigned(np.maximum), "umin": as_unsigned(np.minimum), "fadd": np.add,
    "uinc_wrap": as_unsigned(lambda a, b: np.where(a >= b, a.dtype.type(0), a + a.dtype.type(1))),
    "udec_wrap": as_unsigned(lambda a, b: np.where((a == 0) | (a > b), b, a - a.dtype.type(1))),
}  # fmt: skip

UNARY: dict[str, Callable[..., Any]] = {
    "abs": lambda a: np.where(a < 0, -a, a), "neg": np.negative, "fneg": np.negative, "fabs": np.abs, "sqrt": np.sqrt,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
}  # fmt: skip


def count_bits(operation: str, value: Array) -> Array:
    """What `ctpop`, `ctlz`, `cttz` and `bitreverse` give, from the digits of each number."""
    bits = value.dtype.itemsize * 8
    digits = [f"{int(number):0{bits}b}" for number in unsigned(value)]
    counted: dict[str, Callable[[str], int]] = {
        "ctpop": lambda text: text.count("1"), "ctlz": lambda text: len(text) - len(text.lstrip("0")),
        "cttz": lambda text: len(text) - len(text.rstrip("0")), "bitreverse": lambda text: int(text[::-1], 2),
    }  # fmt: skip
    found = np.array([counted[operation](text) for text in digits], np.uint64)
    return found.astype(unsigned(value).dtype).view(value.dtype)


def compare(predicate: str, one: Array, two: Array) -> Array:
    """What ``icmp`` and ``fcmp`` give."""
    if one.dtype.kind != "f":
        if predicate[0] == "u":
            one, two = unsigned(one), unsigned(two)
        return np.asarray(COMPARE[predicate if predicate in COMPARE else predicate[1:]](one, two))
    neither = np.isnan(one) | np.isnan(two)
    if predicate in ("ord", "uno"):
        return neither if predicate == "uno" else ~neither
    found = np.asarray(COMPARE[predicate[1:]](one, two))
    return found | neither if predicate[0] == "u" else found & ~neither


def to_integer(value: Array, kind: str, sign: bool) -> Array:
    """Floating-point numbers as integers: the nearest where they are out of range, and 0 for NaN."""
    bits = bits_of(kind)
    low, high = (-1 << (bits - 1), (1 << (bits - 1)) - 1) if sign else (0, (1 << bits) - 1)
    found = [
        0 if np.isnan(one) else low if one <= low else high if one >= high else int(one)
        for one in value.astype(np.float64)
    ]
    return np.array(found, np.dtype(f"{'i' if sign else 'u'}{bits // 8}")).view(DTYPES[kind])


class Expressions:
    """Evaluates expressions; *arguments* are those of the function that is called."""

    arguments: Sequence[Array] = ()

    def __init__(self, program: Program, memory: Memory, number: int) -> None:
        self.program, self.memory, self.block = program, memory, number
        self.threads = program.threads
        self.thread = np.arange(self.threads)
        self.row = number * self.threads + self.thread
        width, height, _ = program.block
        self.indices = {
            "thread": self.thread, "number": self.row, "block": np.full(self.threads, number),
            "lane": self.thread % program.wave_size, "x": self.thread % width, "y": self.thread // width % height,
        }  # fmt: skip
        self.values: dict[str, Array] = {}
        self.private: dict[str, Array] = {kind: np.zeros((self.threads, PRIVATE), DTYPES[kind]) for kind in SCALARS}
        self.slots: dict[str, Array] = {kind: np.zeros(self.threads, DTYPES[kind]) for kind in SCALARS}

    def value(self, node: Node) -> Array:
        """What *node* is for each thread."""
        found: Array = getattr(self, f"_{node.kind}")(node)
        return found

    def _const(self, node: Node) -> Array:
        return np.full(self.threads, node.words[0], DTYPES[node.type])

    def _arg(self, node: Node) -> Array:
        return self.arguments[node.words[0]]

    def _n(self, node: Node) -> Array:
        return np.full(self.threads, self.program.n, np.int64)

    def _index(self, node: Node) -> Array:
        return self.indices[node.words[0]]

    def _get(self, node: Node) -> Array:
        return self.values.setdefault(node.words[0], np.zeros(self.threads, DTYPES[node.type]))

    def _binary(self, node: Node) -> Array:
        operation = node.words[0].removesuffix(" fast")
        one, two = (self.value(part) for part in node.parts)
        if operation.endswith(("div", "rem")) and operation[0] != "f":
            return divide(operation, one, two)
        if operation.endswith(".sat"):
            exact = (lambda a, b: a + b) if "add" in operation else (lambda a, b: a - b)
            return saturate(exact, node.type, operation[0] == "s")(one, two)
        return np.asarray(BINARY[operation](one, two))

    def _unary(self, node: Node) -> Array:
        (operation,), value = node.words, self.value(node.parts[0])
        return np.asarray(UNARY[operation](value)) if operation in UNARY else count_bits(operation, value)

    def _cast(self, node: Node) -> Array:
        (how,), value = node.words, self.value(node.parts[0])
        if how.endswith(".sat"):
            return to_integer(value, node.type, how == "fptosi.sat")
        if how in ("zext", "uitofp"):
            value = value.astype(np.uint8) if value.dtype == bool else unsigned(value)
        return value.astype(DTYPES[node.type])

    def _compare(self, node: Node) -> Array:
        return compare(node.words[0], *(self.value(part) for part in node.parts))

    def _both(self, node: Node) -> Array:
        one, two = (self.value(part) for part in node.parts)
        return np.asarray({"and": one & two, "select": one & two, "or": one | two, "xor": one ^ two}[node.words[0]])

    def _select(self, node: Node) -> Array:
        return np.where(*(self.value(part) for part in node.parts))

    def _call(self, node: Node) -> Array:
        function = self.program.functions[node.words[0]]
        given, outer = [self.value(part) for part in node.parts], self.arguments
        self.arguments = given
        found = np.where(self.value(function.condition), self.value(function.then), self.value(function.other))
        self.arguments = outer
        return found

    def _load(self, node: Node) -> Array:
        how, scale, offset = node.words
        size = self.program.input_size
        place = self.row * scale + offset
        split = (self.row & (1 << scale) - 1) + 2 * (self.row >> scale) + offset
        places = {
            "plain": place, "reversed": size - 1 - place, "modulo": place % modulus(self.program), "split": split
        }  # fmt: skip
        return self.memory[f"in_{node.type}"][places.get(how, np.full(self.threads, offset))]

    def own(self, kind: str, column: int) -> Array:
        """Where the elements of a column are that belong to the threads."""
        layout = self.program.layouts[kind]
        return layout.first + self.row * layout.rows + column * layout.columns

    def _own(self, node: Node) -> Array:
        return self.memory[f"own_{node.type}"][self.own(node.type, node.words[0])]

    def _slot(self, node: Node) -> Array:
        return self.slots[node.type].copy()

    def _walked(self, node: Node) -> Array:
        array = self.memory[f"walked_{node.type}"]
        return array[np.minimum(self.values[node.words[0]], len(array) - 1)]

    def _fetch(self, node: Node) -> Array:
        return self.private[node.type][self.thread, self.value(node.parts[0]) & (PRIVATE - 1)]


def modulus(program: Program) -> int:
    """The argument ``size`` of the kernel."""
    return min(program.input_size, 37 + program.n)


class Block(Expressions):
    """The threads of one block: every variable is an array with a value for each."""

    def __init__(self, program: Program, memory: Memory, number: int) -> None:
        super().__init__(program, memory, number)
        self.gone = np.zeros(self.threads, bool)
        """Threads that returned, or left the innermost loop or its round."""
        self.returned = np.zeros(self.threads, bool)
        self.cells: dict[str, Array] = {kind: np.zeros(CELLS, DTYPES[kind]) for kind in SCALARS}
        self.exchanged: dict[str, Array] = {kind: np.zeros(self.threads, DTYPES[kind]) for kind in SCALARS}
        self._loops: list[tuple[Array, Array]] = []

    def run(self, statements: Sequence[Node], mask: Array) -> None:
        """Run *statements* for the threads of *mask* that are still there."""
        for statement in statements:
            active = mask & ~self.returned
            for left in self._loops[-1] if self._loops else ():
                active = active & ~left
            if not active.any():
                return
            getattr(self, f"_{statement.kind}")(statement, active)

    def set(self, name: str, value: Array, active: Array) -> None:
        """Set a variable for the threads that are active."""
        before = self.values.setdefault(name, np.zeros(self.threads, value.dtype))
        self.values[name] = np.where(active, value, before)

    def _waves(self) -> Iterator[slice]:
        for first in range(0, self.threads, self.program.wave_size):
            yield slice(first, min(first + self.program.wave_size, self.threads))

    def _set(self, node: Node, active: Array) -> None:
        self.set(node.words[0], self.value(node.parts[0]), active)

    def _store(self, node: Node, active: Array) -> None:
        value = self.value(node.parts[0])
        self.memory[f"own_{node.type}"][self.own(node.type, node.words[0])[active]] = value[active]

    def _keep(self, node: Node, active: Array) -> None:
        place, value = self.value(node.parts[0]) & (PRIVATE - 1), self.value(node.parts[1])
        self.private[node.type][self.thread[active], place[active]] = value[active]

    def _refill(self, node: Node, active: Array) -> None:
        scale, count = node.words
        for place in range(count):
            read = self.memory[f"in_{node.type}"][self.row * scale + place]
            self.private[node.type][self.thread[active], place] = read[active]

    def _put(self, node: Node, active: Array) -> None:
        place, value = self.values[node.words[0]], self.value(node.parts[0])
        self.memory[f"walked_{node.type}"][place[active]] = value[active]

    def _atomic(self, node: Node, active: Array) -> None:
        (operation,) = node.words
        cell = COMMUTATIVE.index(operation) if operation in COMMUTATIVE else 0
        self._update(self.memory[f"cells_{node.type}"], operation, cell, self.value(node.parts[0]), active)

    def _update(self, array: Array, operation: str, place: Any, value: Array, active: Array) -> None:
        places = np.broadcast_to(place, self.threads)
        for thread in np.flatnonzero(active):
            one = slice(places[thread], places[thread] + 1)
            array[one] = UPDATE[operation](array[one], value[thread : thread + 1])

    def _own_atomic(self, node: Node, active: Array) -> None:
        operation, memory, column, target = node.words
        values = [self.value(part) for part in node.parts]
        array = self.slots[node.type] if memory == "slot" else self.memory[f"own_{node.type}"]
        places = self.thread if memory == "slot" else self.own(node.type, column)
        old = array[places]
        if operation == "cmpxchg":
            new = np.where(old == values[0], values[1], old)
        else:
            new = np.asarray(UPDATE[operation](old, values[0]))
        array[places[active]] = new[active]
        self.set(target, old, active)

    # Control flow.

    def _if(self, node: Node, active: Array) -> None:
        taken = self.value(node.parts[0])
        self.run(node.body, active & taken)
        self.run(node.other, active & ~taken)

    def _uniform_if(self, node: Node, active: Array) -> None:
        self.run(node.body if self.program.n > node.words[0] else node.other, active)

    def _leave(self, node: Node, active: Array) -> None:
        if not self._loops:
            return
        leaving = active & self.value(node.parts[0])
        left = self._loops[-1][0 if node.words[0] == "break" else 1]
        left |= leaving

    def _return(self, node: Node, active: Array) -> None:
        self.returned |= active & self.value(node.parts[0])

    def _rounds(self, node: Node, active: Array, first: Array, limit: Array, step: int) -> None:
        name, broken = node.words[0], np.zeros(self.threads, bool)
        self.set(name, first, active)
        for _ in range(MOST_ROUNDS):
            inside = active & ~broken & ~self.returned & (self.values[name] < limit)
            if not inside.any():
                return
            self._loops.append((broken, np.zeros(self.threads, bool)))
            self.run(node.body, inside)
            self._loops.pop()
            self.set(name, self.values[name] + first.dtype.type(step), inside & ~broken & ~self.returned)
        raise TooManyRoundsError(f"a loop goes round more than {MOST_ROUNDS} times")

    def _repeat(self, node: Node, active: Array) -> None:
        limit = self.value(node.parts[0])
        self._rounds(node, active, np.zeros(self.threads, limit.dtype), limit, 1)

    def _uniform_repeat(self, node: Node, active: Array) -> None:
        limit = np.full(self.threads, (self.program.n & 1) + node.words[1], np.int32)
        self._rounds(node, active, np.zeros(self.threads, np.int32), limit, 1)

    def _walk(self, node: Node, active: Array) -> None:
        limit = np.full(self.threads, walk_limit(self.program, node))
        self._rounds(node, active, self.row, limit, self.program.rows)

    # Threads that wait for one another.

    def _exchange(self, node: Node, active: Array) -> None:
        target, distance = node.words
        values = self.exchanged[node.type]
        values[active] = self.value(node.parts[0])[active]
        self.set(target, values[(self.thread + distance) % self.threads], active)

    def _gather(self, node: Node, active: Array) -> None:
        operation, target = node.words
        condition, given, taken, value = (self.value(part) for part in node.parts)
        cells = self.cells[node.type]
        self._update(cells, operation, given & (CELLS - 1), value, active & condition)
        self.set(target, cells[taken & (CELLS - 1)], active)

    def _barrier(self, node: Node, active: Array) -> None:
        pass

    def _meet(self, node: Node, active: Array) -> None:
        pass

    def _count(self, node: Node, active: Array) -> None:
        votes = np.sum(active & self.value(node.parts[0]))
        self.set(node.words[0], np.full(self.threads, votes, np.int32), active)

    def _bits(self, votes: Array) -> Array:
        result = np.zeros(self.threads, np.uint64)
        for wave in self._waves():
            result[wave] = sum(1 << int(lane) for lane in np.flatnonzero(votes[wave]))
        return signed(result)

    def _ballot(self, node: Node, active: Array) -> None:
        self.set(node.words[0], self._bits(active & self.value(node.parts[0])), active)

    def _active(self, node: Node, active: Array) -> None:
        self.set(node.words[0], self._bits(active), active)

    def _shuffle(self, node: Node, active: Array) -> None:
        target, how = node.words
        value = self.value(node.parts[0])
        lane = self.indices["lane"]
        wanted = self.value(node.parts[1]) if how == "data" else lane ^ 1 if how == "xor" else lane + how
        other = self.thread - lane + wanted
        there = (wanted >= 0) & (wanted < self.program.wave_size) & (other < self.threads)
        other = np.where(there, other, self.thread)
        self.set(target, np.where(active[other], value[other], value), active)
