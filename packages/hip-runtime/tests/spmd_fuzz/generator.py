"""Makes a program of a seed. Every value in it has one result: what threads do to the same memory is apart by a barrier
or atomic and commutative, and floating-point numbers meet only operations that IEEE 754 rounds in one way."""

from __future__ import annotations

import random
from typing import Any

from spmd_fuzz.expressions import ExpressionGenerator
from spmd_fuzz.nodes import COMMUTATIVE, FLOATS, INTEGERS, PRIVATE, SCALARS, DeviceFunction, Layout, Node, Program

SMALL_BLOCKS = ((1, 1, 1), (2, 1, 1), (2, 3, 1), (3, 1, 1), (3, 5, 1), (4, 1, 1), (5, 7, 1), (7, 3, 2), (7, 1, 1))
"""Threads of blocks along x, y and z, of whose loops LLVM does not make vectors."""

BLOCKS = (
    (8, 8, 1), (16, 3, 1), (31, 1, 1), (32, 1, 1), (33, 1, 1), (33, 2, 1), (37, 1, 1), (63, 1, 1), (64, 1, 1),
    (65, 1, 1), (100, 1, 1), (128, 1, 1),
)  # fmt: skip

OWN_OPERATIONS = (*COMMUTATIVE, "sub", "nand", "xchg", "uinc_wrap", "udec_wrap", "cmpxchg")
"""Atomic operations on a place that only one thread uses, so that what they give is known."""

SHUFFLED = ("i32", "i64", "float", "double")
MOST_DEPTH = 3

SIZES = (1, 1, 1, 2, 2, 3, 5)
"""Statements of a program beside those at its beginning and end. Compiling takes nearly all of the time, so that small
programs find more in the same time than large ones."""


class Generator(ExpressionGenerator):
    """Makes the program of *seed*."""

    def __init__(self, seed: int) -> None:
        choose = random.Random(seed)
        super().__init__(choose)
        self.waits = choose.random() < 0.35
        self.waves = self.waits and choose.random() < 0.5
        self.branches = choose.random() < 0.5
        self._loops = 0
        self._columns: dict[str, int] = {}

    def program(self) -> Program:
        """The whole program."""
        choose = self.choose
        if choose.random() < 0.3:
            self.functions += [self._function() for _ in range(choose.randint(1, 2))]
        first = [self._begin(number) for number in range(choose.choice((1, 2, 3)))]
        body = self._carry(0, True) if self.waits and choose.random() < 0.4 else []
        body += self.statements(choose.choice(SIZES), 0, True)
        last = [self._put(Node("get", kind, (name,))) for name, kind in list(self.variables.items())]
        block, blocks = choose.choice(choose.choice((SMALL_BLOCKS, BLOCKS, BLOCKS))), choose.randint(1, 3)
        rows = blocks * block[0] * block[1] * block[2]
        layouts = {kind: self._layout(rows, count) for kind, count in self._columns.items()}
        return Program(
            (*first, *body, *last), tuple(self.functions), block, blocks, choose.choice((32, 64)),
            choose.randint(0, 3), layouts,
        )  # fmt: skip

    def _layout(self, rows: int, columns: int) -> Layout:
        """C or Fortran order, either with gaps or backwards; what lies around the elements must stay as it is."""
        known, gap = self.choose.random() < 0.7, self.choose.choice((1, 1, 1, 1, 1, 2, 3))
        row, column = self.choose.choice(((columns, 1), (columns, 1), (columns, 1), (1, rows), (1, rows + 3)))
        row, column = row * gap, column * gap
        reach = (rows - 1) * row + (columns - 1) * column
        first = 70
        if self.choose.random() < 0.2:
            first, row = first + (rows - 1) * row, -row
        return Layout(row, column, first, reach + 140, known)

    def _function(self) -> DeviceFunction:
        kinds = tuple(self.choose.choice(SCALARS) for _ in range(self.choose.randint(1, 3)))
        inside = ExpressionGenerator(self.choose)
        inside.arguments = kinds
        result = self.choose.choice(SCALARS)
        parts = inside.expression(result, 2), inside.expression(result, 2)
        return DeviceFunction(kinds, inside.condition(1), *parts, inlined=self.choose.random() < 0.6)

    # Statements.

    def statements(self, count: int, depth: int, together: bool, looping: bool = False) -> list[Node]:
        """About *count* statements; *together* where all threads that have not returned run them at the same time."""
        found: list[Node] = []
        while len(found) < count:
            found += self._statement(depth, together, looping)
        return found

    def _statement(self, depth: int, together: bool, looping: bool) -> list[Node]:
        choose = self.choose
        kinds = ["assign"] * 4 + ["store", "neighbours", "neighbours", "private", "fill", "atomic", "own_atomic"]
        if depth < MOST_DEPTH and self.branches:
            kinds += ["if", "if", "within", "repeat", "repeat", "walk"]
            kinds += ["uniform_if", "uniform_repeat"] if together and self.waits else []
        if self.branches and depth < 2:
            kinds += ["return"] if choose.random() < 0.3 else []
        if looping:
            kinds += ["leave", "leave"]
        if together and self.waits:
            kinds += ["exchange", "exchange", "count", "barrier", "gather", "gather", "carry"]
        if self.waves and not looping:
            kinds += ["ballot", "active", "shuffle", "shuffle", "meet"]
        return getattr(self, f"_{choose.choice(kinds)}")(depth, together)

    def _begin(self, number: int) -> Node:
        kind = self.choose.choice(SCALARS)
        value = self.expression(kind, 1) if self.choose.random() < 0.3 else self.cast(self.loaded(), kind)
        return self._set(f"v{number}", value)

    def _set(self, name: str, value: Node) -> Node:
        self.variables[name] = value.type
        return Node("set", value.type, (name,), (value,))

    def _assign(self, depth: int, together: bool) -> list[Node]:
        name, kind = self.choose.choice(list(self.variables.items()))
        return [Node("set", kind, (name,), (self.expression(kind, 2),))]

    def _column(self, kind: str) -> int:
        self._columns[kind] = self._columns.get(kind, 0) + 1
        return self._columns[kind] - 1

    def _put(self, value: Node) -> Node:
        return Node("store", value.type, (self._column(value.type),), (value,))

    def _store(self, depth: int, together: bool) -> list[Node]:
        kind = self.choose.choice(SCALARS)
        value = self.expression(kind, 2)
        if kind in self._columns and self.choose.random() < 0.5:
            column = self.choose.randrange(self._columns[kind])
            operation = self.choose.choice(("fadd", "fsub", "fmul") if kind in FLOATS else ("add", "xor", "sub"))
            value = self.binary(operation, Node("own", kind, (column,)), value)
            return [Node("store", kind, (column,), (value,))]
        return [self._put(value)]

    def _neighbours(self, depth: int, together: bool) -> list[Node]:
        """Loads of neighbours, cast to narrow types with and without signs, cast to one and stored side by side."""
        choose = self.choose
        source, result = choose.choices(("i64", choose.choice(SCALARS)), (3, 1), k=2)
        scale, count = choose.choice((1, 1, 1, 2, 4)), choose.choice((2, 3, 4, 4, 4, 8))
        common, odd = choose.random() < 0.7, choose.randrange(count)
        kinds = choose.choices(INTEGERS[:3] if choose.random() < 0.7 else SCALARS, k=2)
        first = choose.randint(0, 2)
        self._loops += 1
        loads, puts = [], []
        for place in range(count):
            kind, sign = choose.choice(kinds), common ^ (place == odd or choose.random() < 0.1)
            name = f"n{self._loops}_{place}"
            load = self.cast(Node("load", source, ("plain", scale, first + place)), kind)
            loads.append(Node("set", kind, (name,), (load,)))
            puts.append(self._put(self.cast(Node("get", kind, (name,)), result, sign)))
        if choose.random() < 0.3:
            return [one for pair in zip(loads, puts, strict=True) for one in pair]
        return [*loads, *puts]

    def _private(self, depth: int, together: bool, kind: str = "") -> list[Node]:
        kind = kind or self.choose.choice(SCALARS)
        keep = Node("keep", kind, (), (self.expression("i32", 1), self.expression(kind, 2)))
        name = self.choose.choice([*self.variables])
        fetched = self.cast(Node("fetch", kind, (), (self.expression("i32", 1),)), self.variables[name])
        return [keep, Node("set", self.variables[name], (name,), (fetched,))]

    def _fill(self, depth: int, together: bool, kind: str = "") -> list[Node]:
        """A private array that a loop writes, with numbers made of the loop's variable."""
        kind, turn = kind or self.choose.choice(SCALARS), self._turn()
        value = self.expression(self.choose.choice(INTEGERS), 1)
        product = self.binary("mul", self.cast(Node("get", "i32", (turn,)), value.type), value)
        keep = Node("keep", kind, (), (Node("get", "i32", (turn,)), self.cast(product, kind)))
        limit = Node("const", "i32", (PRIVATE,))
        return [Node("repeat", "i32", (turn,), (limit,), (keep,))]

    def _carry(self, depth: int, together: bool) -> list[Node]:
        """A private array that is written before a barrier, and of which all elements are added up behind it."""
        kind, turn = self.choose.choice(SCALARS), self._turn()
        (fill,) = self._fill(depth, together, kind)
        before = [fill, *(self._private(depth, together, kind) if self.choose.random() < 0.7 else [])]
        if self.choose.random() < 0.5:
            words = (self.choose.choice((1, 2, 3)), self.choose.randint(1, PRIVATE))
            before.insert(
                self.choose.randint(0, 1), Node("refill", kind, words, (Node("load", kind, ("plain", 1, 0)),))
            )
        behind = self._private(depth, together, kind) if self.choose.random() < 0.5 else []
        name, result = f"n{turn}", self.choose.choice(SCALARS)
        fetched = self.cast(Node("fetch", kind, (), (Node("get", "i32", (turn,)),)), result)
        total = self.binary("fadd" if result in FLOATS else "sub", fetched, Node("get", result, (name,)))
        limit = Node("const", "i32", (PRIVATE,))
        added = Node("repeat", "i32", (turn,), (limit,), (Node("set", result, (name,), (total,)),))
        return [*before, Node("barrier"), *behind, added, self._put(Node("get", result, (name,)))]

    def _turn(self) -> str:
        self._loops += 1
        return f"t{self._loops}"

    def _atomic(self, depth: int, together: bool) -> list[Node]:
        """On a place in device memory that all threads use."""
        kind = self.choose.choice((*INTEGERS, "float", "double"))
        if kind in FLOATS:
            return [Node("atomic", kind, ("fadd",), (self.small(kind),))]
        return [Node("atomic", kind, (self.choose.choice(COMMUTATIVE),), (self.expression(kind, 2),))]

    def _own_atomic(self, depth: int, together: bool) -> list[Node]:
        """On a place of the thread's own; what the operation gives is put away."""
        kind, memory = self.choose.choice(INTEGERS), "own"
        if self.waits and self.choose.random() < 0.5:
            memory = "slot"
        operation, column = self.choose.choice(OWN_OPERATIONS), self._column(kind)
        name = f"o{kind}"
        self.variables.setdefault(name, kind)
        parts = [self.expression(kind, 2)]
        if operation == "cmpxchg":
            old = Node("own", kind, (column,)) if memory == "own" else Node("slot", kind)
            parts = [old if self.choose.random() < 0.6 else self.expression(kind, 1), *parts]
        return [Node("own_atomic", kind, (operation, memory, column, name), tuple(parts))]

    # Control flow.

    def _inside(self, depth: int, together: bool = False, looping: bool = False, least: int = 1) -> tuple[Node, ...]:
        return tuple(self.statements(self.choose.randint(least, 2), depth + 1, together, looping))

    def _if(self, depth: int, together: bool) -> list[Node]:
        return [Node("if", "", (), (self.condition(2),), self._inside(depth), self._inside(depth, least=0))]

    def _within(self, depth: int, together: bool) -> list[Node]:
        """A branch on a comparison of where the thread is with a bound, as ``i < n``."""
        place = Node("index", "i64", (self.choose.choice(("number", "number", "thread")),))
        scaled = self.binary("mul", Node("n", "i64"), Node("const", "i64", (self.choose.choice((20, 31)),)))
        bound = self.binary("add", scaled, Node("const", "i64", (self.choose.choice((0, 1, 7)),)))
        condition = Node("compare", "i1", (self.choose.choice(("slt", "slt", "sge", "ult", "sle")),), (place, bound))
        other = self._inside(depth, least=0) if self.choose.random() < 0.4 else ()
        return [Node("if", "", (), (condition,), self._inside(depth), other)]

    def _repeat(self, depth: int, together: bool) -> list[Node]:
        """A loop of as many rounds as each thread needs; some leave it early."""
        kind = self.choose.choice(("i32", "i64"))
        turn = self._turn()
        limit = self.binary("and", self.expression(kind, 1), Node("const", kind, (self.choose.choice((1, 3, 7)),)))
        self.turns[turn] = kind
        body = self._inside(depth, looping=True)
        del self.turns[turn]
        return [Node("repeat", kind, (turn,), (limit,), body)]

    def _leave(self, depth: int, together: bool) -> list[Node]:
        return [Node("leave", "", (self.choose.choice(("break", "continue")),), (self.condition(1),))]

    def _return(self, depth: int, together: bool) -> list[Node]:
        return [Node("return", "", (), (self.condition(1),))]

    def _walk(self, depth: int, together: bool) -> list[Node]:
        """A loop through an array in steps of the size of the grid."""
        place, kind = self._turn(), self.choose.choice(SCALARS)
        name = self.choose.choice([*self.variables])
        found = self.cast(Node("walked", kind, (place,)), self.variables[name])
        read = Node("set", self.variables[name], (name,), (found,))
        write = Node("put", kind, (place,), (self.expression(kind, 2),))
        body = (read, *self._inside(depth, looping=True, least=0), write)
        return [Node("walk", "i64", (place, self.choose.choice((0, 5, 1000))), (), body)]

    def _uniform_if(self, depth: int, together: bool) -> list[Node]:
        words = (self.choose.randint(0, 3),)
        return [
            Node("uniform_if", "", words, (), self._inside(depth, together), self._inside(depth, together, least=0))
        ]

    def _uniform_repeat(self, depth: int, together: bool) -> list[Node]:
        words = (self._turn(), self.choose.randint(1, 3))
        self.turns[words[0]] = "i32"
        body = self._inside(depth, together)
        del self.turns[words[0]]
        return [Node("uniform_repeat", "i32", words, (), body)]

    # Threads that wait for one another.

    def _target(self, kinds: tuple[str, ...]) -> tuple[str, str]:
        kind = self.choose.choice(kinds)
        names = [name for name, known in self.variables.items() if known == kind]
        if not names:
            names = [f"w{kind}"]
            self.variables[names[0]] = kind
        return self.choose.choice(names), kind

    def _exchange(self, depth: int, together: bool) -> list[Node]:
        """Each thread writes a place in shared memory and reads another's."""
        name, kind = self._target(SCALARS)
        return [Node("exchange", kind, (name, self.choose.randint(1, 70)), (self.expression(kind, 2),))]

    def _gather(self, depth: int, together: bool) -> list[Node]:
        """Some threads change shared memory with atomic operations, then all read it."""
        name, kind = self._target((*INTEGERS, "float", "double"))
        if kind in FLOATS:
            operation, value = "fadd", self.small(kind)
        else:
            operation, value = self.choose.choice(COMMUTATIVE), self.expression(kind, 2)
        places = self.expression("i32", 1), self.expression("i32", 1)
        return [Node("gather", kind, (operation, name), (self.condition(1), *places, value))]

    def _count(self, depth: int, together: bool) -> list[Node]:
        name, _ = self._target(("i32",))
        return [Node("count", "i32", (name,), (self.condition(2),))]

    def _barrier(self, depth: int, together: bool) -> list[Node]:
        return [Node("barrier")]

    def _meet(self, depth: int, together: bool) -> list[Node]:
        return [Node("meet")]

    def _ballot(self, depth: int, together: bool) -> list[Node]:
        name, _ = self._target(("i64",))
        return [Node("ballot", "i64", (name,), (self.condition(2),))]

    def _active(self, depth: int, together: bool) -> list[Node]:
        name, _ = self._target(("i64",))
        return [Node("active", "i64", (name,))]

    def _shuffle(self, depth: int, together: bool) -> list[Node]:
        name, kind = self._target(SHUFFLED)
        how: Any = self.choose.choice((1, 2, 5, 31, -1, "xor", "data"))
        lane = self.binary("and", self.expression("i32", 1), Node("const", "i32", (63,)))
        return [Node("shuffle", kind, (name, how), (self.expression(kind, 1), *([lane] if how == "data" else [])))]


def make_program(seed: int) -> Program:
    """The random program of *seed*; the same each time."""
    return Generator(seed).program()
