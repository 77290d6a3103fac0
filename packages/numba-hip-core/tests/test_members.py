"""``in`` for tuples and sets in kernels, against Python."""

import enum
from collections import namedtuple

import numpy as np
import pytest

import numba_hip as hip
from numba_hip.errors import UnsupportedCodeError


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Shade(enum.Enum):
    DARK = 1
    LIGHT = 2


Pair = namedtuple("Pair", "first second")
PAIR = Pair(1, 4)
FOUND = {1, 5}
FROZEN = frozenset([2, 2.5])
EMPTY: set[int] = set()
PRIMES = tuple(n for n in range(2, 120) if all(n % d for d in range(2, n)))
WHOLE = np.arange(-2, 9)
HALVES = np.array([1, 2, 2.5, -0.0, np.nan, np.inf])
BYTES = np.arange(256).astype(np.uint8)

CASES = {
    "constants": ("x in (1, 3, 7)", WHOLE),
    "not in": ("x not in (1, 3, 7)", WHOLE),
    "a captured tuple": ("x in PRIMES", BYTES),
    "out of range": ("x in (255, -1, 256)", BYTES),
    "unsigned": ("x in (-1, 5)", np.array([2**64 - 1, 5], np.uint64)),
    "beyond int64": ("x in (2**63, 1)", np.array([2**63, 1, 2], np.uint64)),
    "floats among integers": ("x in (1, 2, 3)", HALVES),
    "integers among floats": ("x in (1.0, 2.5)", WHOLE),
    "several types": ("x in (1, 2.5, True, 2j)", HALVES),
    "float16": ("x in (1, 2.5)", HALVES.astype(np.float16)),
    "complex": ("x in (2, 1j)", np.array([1j, 2, 3 + 1j])),
    "booleans": ("(x > 2) in (True,)", WHOLE),
    "variables": ("x in (x * x, other[3], 5)", WHOLE),
    "a named tuple": ("x in PAIR", WHOLE),
    "tuples": ("(x, 1) in ((1, 1), (2, 2))", WHOLE),
    "tuples of several lengths": ("(x, 1) in ((1, 1), (2.0, 1, 3))", WHOLE),
    "members of an enumeration": ("x in (Level.LOW, Level.HIGH)", WHOLE),
    "of another enumeration": ("(Shade.DARK if x == 1 else Shade.LIGHT) in (Shade.DARK,)", WHOLE),
    "text": ("('a' if x > 2 else 'b') in ('a', 'c')", WHOLE),
    "nothing": ("x in ()", WHOLE),
    "a set": ("x in {1, 3, 7}", WHOLE),
    "not in a set": ("x not in {1, 2.5}", HALVES),
    "a set of variables": ("x in {other[3], 7}", WHOLE),
    "captured sets": ("x in FOUND or x in FROZEN or x in EMPTY", HALVES),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", CASES)
def test_members(name):
    expression, values = CASES[name]
    source = f"def find(x, other):\n    return {expression}\n"
    names = {"Level": Level, "Shade": Shade, "PAIR": PAIR, "PRIMES": PRIMES, "FOUND": FOUND, "FROZEN": FROZEN}
    names["EMPTY"] = EMPTY
    exec(source, names)
    find = names["find"]
    called = hip.jit(device=True)(find)

    @hip.jit
    def kernel(values, out):
        i = hip.grid(1)
        if i < out.size:
            out[i] = called(values[i], values)

    out = np.zeros(values.size, np.bool_)
    kernel[(values.size + 63) // 64, 64](values, out)
    np.testing.assert_array_equal(out, [find(x.item(), values) for x in values])


def test_no_thread_branches():
    @hip.jit
    def kernel(values, out):
        i = hip.grid(1)
        out[i] = values[i] in (97, 101, 105, 111, 117)

    out = np.zeros(256, np.bool_)
    kernel[2, 128](BYTES, out)
    np.testing.assert_array_equal(out, [chr(x) in "aeiou" for x in BYTES])
    if hip.get_current_device().target == "cpu":
        (text,) = kernel.inspect_llvm().values()
        assert "switch" not in text


@pytest.mark.parametrize("statement", ["out[0] = len({1, x}) > 1", "s = {1, x}; out[0] = x in s or 2 in s"])
def test_other_sets_are_refused(statement):
    names = {}
    exec(f"def kernel(values, out):\n    x = values[0]\n    {statement}\n", names)
    with pytest.raises(UnsupportedCodeError, match="a kernel has no sets"):
        hip.jit(names["kernel"])[1, 1](WHOLE, np.zeros(1, np.bool_))
