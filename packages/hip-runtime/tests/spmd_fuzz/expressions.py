"""Makes random expressions of a type."""

from __future__ import annotations

import random
from typing import Any

from spmd_fuzz.nodes import FLOATS, INTEGERS, SCALARS, DeviceFunction, Node, bits_of

INTEGER_OPERATIONS = ("add", "sub", "mul", "and", "or", "xor")
DIVISIONS = ("sdiv", "srem", "udiv", "urem")
SHIFTS = ("shl", "lshr", "ashr")
INTEGER_CALLS = ("smax", "smin", "umax", "umin", "sadd.sat", "uadd.sat", "ssub.sat", "usub.sat")
COUNTING = ("ctpop", "ctlz", "cttz", "bitreverse")
OPPOSITES = ("abs", "neg")
"""Of the least number there is these give that number."""

FLOAT_OPERATIONS = ("fadd", "fsub", "fmul", "fdiv")
FLOAT_CALLS = ("fabs", "sqrt", "floor", "ceil", "trunc", "rint")
INTEGER_PREDICATES = ("eq", "ne", "ugt", "uge", "ult", "ule", "sgt", "sge", "slt", "sle")
FLOAT_PREDICATES = ("oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno")


def constants(kind: str) -> tuple[Any, ...]:
    """Numbers of type *kind* at which something changes."""
    if kind in FLOATS:
        return (0.0, -0.0, 1.0, -1.0, 0.5, 255.0, -129.0, 65504.0, float("inf"), float("-inf"), float("nan"))
    most = (1 << (bits_of(kind) - 1)) - 1
    return (0, 1, -1, 2, 7, most, -most - 1, most // 2 + 1, 100, -128)


class ExpressionGenerator:
    """Makes expressions of *variables*, or of *arguments* where there are some, and calls *functions*."""

    def __init__(self, choose: random.Random) -> None:
        self.choose = choose
        self.variables: dict[str, str] = {}
        self.turns: dict[str, str] = {}
        """The variables of the loops around; nothing but these sets them."""
        self.arguments: tuple[str, ...] = ()
        self.functions: list[DeviceFunction] = []

    def binary(self, operation: str, one: Node, two: Node) -> Node:
        """An operation of two numbers of one type."""
        return Node("binary", one.type, (operation,), (one, two))

    def leaf(self, kind: str) -> Node:
        """A value of type *kind* that is there."""
        choose = self.choose
        if choose.random() < 0.15:
            return Node("const", kind, (choose.choice(constants(kind)),))
        if self.arguments:
            place = choose.randrange(len(self.arguments))
            return self.cast(Node("arg", self.arguments[place], (place,)), kind)
        which = choose.random()
        if which < 0.15 or not self.variables:
            return self.cast(self.loaded(), kind)
        if which < 0.2:
            return self.cast(self.split(), kind)
        if which < 0.3:
            name = choose.choice(("thread", "number", "block", "lane", "x", "y", "n"))
            return self.cast(Node("n", "i64") if name == "n" else Node("index", "i64", (name,)), kind)
        same = [name for name, known in self.variables.items() if known == kind]
        if same and which < 0.7:
            return Node("get", kind, (choose.choice(same),))
        known = self.variables | self.turns
        name = choose.choice([*known, *self.turns])
        return self.cast(Node("get", known[name], (name,)), kind)

    def index(self) -> Node:
        """An index of the thread, of 64 or 32 bits, or the variable of a loop."""
        choose = self.choose
        found = Node("index", "i64", (choose.choice(("thread", "number", "lane", "x", "y")),))
        if self.turns and choose.random() < 0.3:
            name = choose.choice([*self.turns])
            found = Node("get", self.turns[name], (name,))
        return found if choose.random() < 0.5 else self.cast(found, "i32")

    def split(self) -> Node:
        """What is above or below a power of two in an index."""
        index, power = self.index(), 1 << self.choose.randint(1, 6)
        operation, number = self.choose.choice(
            (
                ("and", power - 1), ("and", -power), ("lshr", power.bit_length() - 1), ("udiv", 3 * power),
                ("urem", 3 * power), ("urem", power), ("or", power), ("xor", power), ("ashr", power.bit_length() - 1),
            )
        )  # fmt: skip
        return self.binary(operation, index, Node("const", index.type, (number,)))

    def loaded(self) -> Node:
        """An element of an array of numbers."""
        choose, kind = self.choose, self.choose.choice(SCALARS)
        how = choose.choice(("plain", "plain", "plain", "reversed", "modulo", "modulo", "uniform", "split"))
        scale = choose.randint(1, 6) if how == "split" else choose.choice((1, 1, 2, 3, 5))
        return Node("load", kind, (how, scale, choose.randint(0, 7)))

    def cast(self, value: Node, kind: str, signed: bool | None = None) -> Node:
        """*value* as one of type *kind*, *signed* or not where that makes a difference; by default either."""
        signs = self.choose.random() < 0.6 if signed is None else signed
        source = value.type
        if source == kind:
            return value
        if source in FLOATS and kind in FLOATS:
            how = "fpext" if bits_of(kind) > bits_of(source) else "fptrunc"
        elif source in FLOATS:
            how = "fptosi.sat" if signs else "fptoui.sat"
        elif kind in FLOATS:
            if kind == "half" and bits_of(source) > 16:  # NumPy rounds these twice
                value = Node("cast", "i16", ("trunc",), (value,))
            how = "sitofp" if signs else "uitofp"
        elif bits_of(kind) < bits_of(source):
            how = "trunc"
        else:
            how = "sext" if signs else "zext"
        return Node("cast", kind, (how,), (value,))

    def expression(self, kind: str, depth: int) -> Node:
        """An expression of type *kind*, at most *depth* operations deep."""
        if depth <= 0 or self.choose.random() < 0.15:
            return self.leaf(kind)
        return self._real(kind, depth - 1) if kind in FLOATS else self._integer(kind, depth - 1)

    def _common(self, kind: str, depth: int) -> Node | None:
        choose = self.choose
        which = choose.random()
        if which < 0.12:
            return Node(
                "select", kind, (), (self.condition(depth), self.expression(kind, depth), self.expression(kind, depth))
            )
        if which < 0.3:
            return self.cast(self.expression(choose.choice(SCALARS), depth), kind)
        if which < 0.38 and self.functions:
            place = choose.randrange(len(self.functions))
            function = self.functions[place]
            arguments = tuple(self.expression(one, depth - 1) for one in function.parameters)
            return self.cast(Node("call", function.then.type, (place,), arguments), kind)
        return None

    def _integer(self, kind: str, depth: int) -> Node:
        choose = self.choose
        common = self._common(kind, depth)
        if common is not None:
            return common
        which = choose.random()
        one = self.expression(kind, depth)
        if which < 0.12:
            operation = choose.choice((*COUNTING, *OPPOSITES))
            if operation in OPPOSITES and choose.random() < 0.5:  # the least number, or the one above it
                low = self.binary("and", one, Node("const", kind, (1,)))
                one = self.binary("xor", low, Node("const", kind, (-1 << (bits_of(kind) - 1),)))
            return Node("unary", kind, (operation,), (one,))
        two = self.expression(kind, depth)
        if which < 0.55:
            return self.binary(choose.choice(INTEGER_OPERATIONS), one, two)
        if which < 0.7:
            mask = Node("const", kind, (bits_of(kind) - 1,))
            return self.binary(choose.choice(SHIFTS), one, self.binary("and", two, mask))
        if which < 0.85:
            return self.binary(choose.choice(DIVISIONS), one, two)
        return self.binary(choose.choice(INTEGER_CALLS), one, two)

    def _real(self, kind: str, depth: int) -> Node:
        choose = self.choose
        common = self._common(kind, depth)
        if common is not None:
            return common
        which = choose.random()
        if which < 0.2:
            return Node("unary", kind, (choose.choice((*FLOAT_CALLS, "fneg")),), (self.expression(kind, depth),))
        if which < 0.35 and kind != "half":
            return self._fast(kind)
        operation = choose.choice(FLOAT_OPERATIONS)
        return self.binary(operation, self.expression(kind, depth), self.expression(kind, depth))

    def small(self, kind: str) -> Node:
        """A whole number below 256 as a floating-point number: sums of a few thousand of them are exact."""
        mask = Node("const", "i32", (255,))
        return Node("cast", kind, ("sitofp",), (self.binary("and", self.expression("i32", 1), mask),))

    def _fast(self, kind: str) -> Node:
        """Operations that may be done in another order, on numbers with which that makes no difference."""
        total = Node("binary", kind, ("fmul fast",), (self.small(kind), self.small(kind)))
        for _ in range(self.choose.randint(1, 3)):
            operation = self.choose.choice(("fadd fast", "fsub fast"))
            total = Node("binary", kind, (operation,), (total, self.small(kind)))
        return self.binary("fadd", total, Node("const", kind, (0.5,)))  # which zero a zero is was left open

    def condition(self, depth: int) -> Node:
        """A condition."""
        choose = self.choose
        which = choose.random()
        if depth > 1 and which < 0.2:
            parts = self.condition(depth - 1), self.condition(depth - 1)
            return Node("both", "i1", (choose.choice(("and", "or", "xor", "select")),), parts)
        kind = choose.choice((*SCALARS, *INTEGERS))
        if kind in INTEGERS and which < 0.5:
            mask = choose.choice((1, 3, 7))
            low = self.binary("and", self.expression(kind, depth - 1), Node("const", kind, (mask,)))
            return Node("compare", "i1", ("eq",), (low, Node("const", kind, (choose.randint(0, mask),))))
        if kind in INTEGERS and which < 0.65 and not self.arguments:
            index = self.index()
            limit = (choose.randint(0, 3) << choose.randint(2, 6)) + choose.choice((0, 0, -1, 1))
            parts = index, Node("const", index.type, (limit,))
            return Node("compare", "i1", (choose.choice(INTEGER_PREDICATES),), parts[:: choose.choice((1, -1))])
        predicates = FLOAT_PREDICATES if kind in FLOATS else INTEGER_PREDICATES
        parts = self.expression(kind, depth - 1), self.expression(kind, depth - 1)
        return Node("compare", "i1", (choose.choice(predicates),), parts)
