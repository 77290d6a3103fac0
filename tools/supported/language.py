"""Rows of Python's own language: statements, expressions, functions, types."""

from __future__ import annotations

import enum
from collections import namedtuple
from typing import Any

import numpy as np
from numba import hip, int8

from tools.supported.model import FLOATS, SIGNED, row

Pair = namedtuple("Pair", "first second")
TABLE = np.array([10, 20, 30, 40, 50])
SCALES = (2, 3, 5)
PRIMES = {2, 3, 5, 7}
DAYS = np.timedelta64(3, "D")


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 7


class Mark(enum.IntFlag):
    SEEN = 1
    KEPT = 2


class Shade(enum.Enum):
    DARK = 1
    LIGHT = 2


@row("Statements", "`if`, `elif`, `else`")
def choose(x: Any) -> Any:
    if x < 2:
        y = 1
    elif x < 4:
        y = 2
    else:
        y = 3
    return y


@row("Statements", "`while`, `break`, `continue`, and `else` of a loop")
def loop_while(x: Any) -> Any:
    steps = 0
    while x > 0:
        x -= 1
        if x % 3 == 0:
            continue
        steps += 1
        if steps > 10:
            break
    else:
        steps += 100
    return steps


@row("Statements", "`for` over `range`, with a step, and `else`")
def loop_for(x: Any) -> Any:
    total = 0
    for i in range(x, 0, -2):
        total += i
    else:
        total += 1000
    return total


@row("Statements", "`for` over a tuple")
def loop_tuple(x: Any) -> Any:
    total = 0
    for scale in SCALES:
        total += scale * x
    return total


@row("Statements", "`for` over an array that the kernel captures")
def loop_array(x: Any) -> Any:
    total = 0
    for value in TABLE:
        total += value * x
    return total


@row("Statements", "`match` with numbers, `|`, guards and `_`")
def match_number(x: Any) -> Any:
    match x:
        case 1 | 2:
            return 10
        case y if y > 5:
            return y
        case _:
            return 0


@row("Statements", "unpacking, also with nested targets")
def unpack(x: Any) -> Any:
    (a, b), c = (x, x + 1), x + 2
    a, b = b, a
    return 100 * a + 10 * b + c


@row("Statements", "augmented assignment: `+=`, `**=`, `//=`, `<<=`")
def augment(x: Any) -> Any:
    x += 3
    x **= 2
    x //= 3
    x <<= 1
    return x


@row("Statements", "`raise`, and `assert` (on AMD GPUs with `exceptions=True` or `debug=True`)")
def check(x: Any) -> Any:
    assert x > 0
    if x < 0:
        raise ValueError("negative")
    return x


@row("Statements", "`pass`, and `return` anywhere")
def early(x: Any) -> Any:
    if x > 3:
        return x
    if x == 2:
        pass
    return 0


@row("Expressions", "assignments within expressions: `while (n := n // 2) > 1`")
def assignment_expression(x: Any) -> Any:
    steps = total = 0
    while (x := x // 2) > 0 and (steps := steps + 1) < 9:
        total += (last := x * steps) + last
    return total if (count := steps) else count - 1


@row("Expressions", "arithmetic: `+ - * / // % **`, `divmod`, signs as in Python")
def arithmetic(x: Any) -> Any:
    quotient, remainder = divmod(-x, 3)
    return quotient * 100 + remainder + x / 4 + x**2 - (-x) // 2


@row("Expressions", "bits: `& | ^ ~ << >>`")
def bits(x: Any) -> Any:
    return ((x & 6) | 1) ^ (~x << 2) >> 1


@row("Expressions", "comparisons in chains: `0 < x <= 3`, `and`, `or`, `not`")
def compare(x: Any) -> Any:
    return 0 < x <= 3 or (not x < 7 and x != 9)


@row("Expressions", "conditional expressions")
def conditional(x: Any) -> Any:
    return x * 2 if x > 5 else -x


@row("Expressions", "complex numbers: arithmetic, `abs`, `.real`, `.conjugate()`", np.array([1 + 2j, -0.5j]))
def complex_numbers(x: Any) -> Any:
    return (x * x.conjugate()).real + abs(x * (1 + 1j))


@row("Expressions", "tuples: literals, indices, slices, `+`, `len`, comparisons")
def tuples(x: Any) -> Any:
    t = (x, 2 * x, 3) + SCALES  # noqa: RUF005
    return t[0] + len(t[1:]) + (3 if 3 in SCALES else 0) + (10 if (x, 1) < (2, 0) else 20)


@row("Expressions", "members of tuples and sets: `x in (1, 2.5)`, `x not in {3, 5}`, sets that the kernel captures")
def look_for(x: Any) -> Any:
    return 4 * (x in (1, 2.5)) + 2 * (x not in {3, 5}) + (x in PRIMES)


@row("Expressions", "indices and slices of arrays that the kernel captures, negative ones too")
def captured(x: Any) -> Any:
    part = TABLE[1:4]
    return TABLE[-1] + part[x % 3] + part.size


@row("Expressions", "text that is known when the kernel is compiled: comparisons")
def text(x: Any) -> Any:
    mode = "double"
    return 2 * x if mode == "double" else x


@row("Functions", "calls with keywords and defaults")
def keywords(x: Any) -> Any:
    return _scaled(x, offset=3) + _scaled(value=x)


@hip.jit(device=True)
def _scaled(value, factor=2, offset=1):
    return factor * value + offset


@row("Functions", "`*args` in the definition and in the call")
def rest(x: Any) -> Any:
    return _first_of(x, 2, 3) + _first_of(*(x, 5))


@hip.jit(device=True)
def _first_of(*values):
    return values[0] * len(values)


@row("Functions", "inner functions and `lambda`, with variables around them")
def inner(x: Any) -> Any:
    offset = x + 1

    def add(y: Any) -> Any:
        return y + offset

    return add(x) + (lambda y: y * offset)(2)


@row("Functions", "recursion of device functions")
def recursion(x: Any) -> Any:
    return _factorial(min(x, 10))


@hip.jit(device=True)
def _factorial(n):
    if n <= 1:
        return 1
    return n * _factorial(n - 1)


@row("Functions", "functions that a condition or an index chooses")
def choice(x: Any) -> Any:
    one = _factorial if x % 2 else abs
    return one(min(x, 10)) + (abs, _factorial)[x % 2](3)


@row("Functions", "generators (`yield`) of device functions")
def generator(x: Any) -> Any:
    total = 0
    for value in _countdown(x):
        total += value
    return total


@hip.jit(device=True)
def _countdown(n):
    while n > 0:
        yield n
        n -= 1


@row("Functions", "several results: tuples and named tuples")
def several(x: Any) -> Any:
    pair = _both(x)
    return pair.first * 10 + pair.second


@hip.jit(device=True)
def _both(x):
    return Pair(x, second=x + 1)


@row("Functions", "closures: numbers, tuples and arrays from around the kernel, as constants")
def closure(x: Any) -> Any:
    return x * SCALES[1] + TABLE[0]


@row("Builtins", "`abs`, `min`, `max`, `pow`, `round`, `divmod`", SIGNED[:4])
def numbers(x: Any) -> Any:
    return abs(x) + min(x, 2.0, 1) + max(x, 0.5) + pow(x, 2) + round(x) + round(x, 1)


@row("Builtins", "`int`, `float`, `bool`, `complex`, and Numba's types: `int8(x)`", FLOATS * 100)
def convert(x: Any) -> Any:
    return int(x) + float(int(x)) + bool(x) + complex(x, 1).imag + int8(int(x) % 100)


@row("Builtins", "`range`, `len`, `enumerate`, `zip`")
def iterate(x: Any) -> Any:
    total = 0
    for i, value in enumerate(SCALES):
        total += i * value
    for a, b in zip(SCALES, (x, 2, 3)):  # noqa: B905 -- Numba's has no `strict`
        total += a * b
    return total


@row("Builtins", "`sum`, `min`, `max` of tuples")
def reduce_tuple(x: Any) -> Any:
    return sum((x, 2, 3)) + min((x, 4)) + max((x, 5))


@row("Builtins", "`isinstance`", FLOATS)
def dispatch(x: Any) -> Any:
    return 1 if isinstance(x, float) else 2


@row("Builtins", "`map` over a tuple of one type")
def mapped(x: Any) -> Any:
    found = 0
    for value in map(_doubled, SCALES):
        found += value
    return found + x


@hip.jit(device=True)
def _doubled(x):
    return 2 * x


@row("Builtins", "`print` of numbers and text, also as f-strings", np.array([3]))
def shown(x: Any) -> Any:
    print("x is", x, f"{x:03d}")
    return x


@row("Types", "integers of 8 to 64 bits, signed and unsigned", np.array([3, 250], np.uint8))
def small(x: Any) -> Any:
    return np.uint16(x) * np.uint16(2)


@row("Types", "float16, float32, float64", np.array([0.5, 3], np.float16))
def half(x: Any) -> Any:
    return x * x + np.float16(1)


@row("Types", "complex64 and complex128", np.array([1j, 2 - 1j], np.complex64))
def small_complex(x: Any) -> Any:
    return x * x + np.complex64(1)


@row("Types", "booleans", np.array([True, False]))
def booleans(x: Any) -> Any:
    return not x


@row(
    "Types",
    '`datetime64` and `timedelta64`, also written down: `np.timedelta64(3, "D")`',
    np.array(["2024-02-29", "1970-01-01"], "M8[D]"),
)
def dates(x: Any) -> Any:
    return x + DAYS + np.timedelta64(3, "D") if x > np.datetime64("2000-01-01") else x


@row("Types", "records: fields of an element of a structured array", np.array([(1, 2.5), (3, 4.5)], "i8, f8"))
def records(x: Any) -> Any:
    return x["f0"] * x["f1"]


@row("Types", "`enum.IntEnum`, `enum.IntFlag` and `enum.Enum`")
def enums(x: Any) -> Any:
    shade = Shade.DARK if x < 2 else Shade.LIGHT
    return (10 if shade is Shade.LIGHT else 20) + (1 if x == Level.HIGH else 0) + (x & Mark.SEEN)


@row("Types", "`None` as a value: `x is None`, optional results")
def nothing(x: Any) -> Any:
    found = _positive(x - 3)
    return 0 if found is None else found


@hip.jit(device=True)
def _positive(x):
    return x if x > 0 else None
