"""Functions that ``vectorize`` decorated, which kernels call for numbers."""

from __future__ import annotations

import numpy as np
import pytest
from numba import guvectorize, hip, njit, vectorize
from numba.core.errors import TypingError

from numba_hip.caching.fingerprint import Fingerprint


@vectorize
def half(x):
    return x / 2


@vectorize(["int32(int32)", "float64(float64)"])
def whole_half(x):
    return x / 2


@hip.vectorize(["float32(float32)"])
def third(x):
    return x / 3


@hip.vectorize
def sum_of_halves(x, y):
    return half(x) + half(y)


@njit
def half_and_one(x):
    return half(x) + 1


@hip.jit
def calls(out, x):
    i = hip.grid(1)
    out[i, 0] = half(x[i])
    out[i, 1] = whole_half(np.int32(x[i]))
    out[i, 2] = third(x[i])
    out[i, 3] = sum_of_halves(y=x[i], x=1)
    out[i, 4] = half_and_one(x[i])


def test_in_a_kernel():
    x = np.arange(50.0)
    out = np.zeros((50, 5))
    calls[1, 50](out, x)
    expected = np.stack([x / 2, x // 2, (x / 3).astype(np.float32), 0.5 + x / 2, x / 2 + 1], axis=1)
    np.testing.assert_array_equal(out, expected)
    code, _ = hip.compile(calls, "(float64[:,::1], float64[::1])", target="gfx942", output="object")
    assert code[:4] == b"\x7fELF"


def test_in_a_kernel_that_is_kept():
    """What is called is part of the kernel's fingerprint, with its signatures."""

    def kernel_of(function):
        def kernel(out):
            out[0] = function(out[0])

        return kernel

    def fingerprint(function):
        made = Fingerprint()
        made.add(kernel_of(function))
        return made.hexdigest()

    def plus(number):
        return lambda x: x + number

    made = (
        vectorize(plus(1)), vectorize(plus(2)), vectorize(["float64(float64)"])(plus(1)),
        hip.vectorize(plus(1)), hip.vectorize(["float64(float64)"])(plus(1)),
    )  # fmt: skip
    assert len(set(map(fingerprint, made))) == len(made)
    assert fingerprint(made[0]) == fingerprint(vectorize(plus(1)))
    out = np.ones(1)
    hip.jit(cache=True)(kernel_of(half))[1, 1](out)
    assert out[0] == 0.5


@guvectorize(["(float64[:], float64[:])"], "(n)->(n)")
def copied(x, out):
    out[0] = x[0]


product = hip.reduce(lambda a, b: a * b)
in_parallel = vectorize(["float64(float64)"], target="parallel")(lambda x: x + 1)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("half(x)", r"half was made by vectorize, and is called with array\(float64.*write a loop over the elements"),
        ("third(x[:2])", "third was made by vectorize, and is called with array"),
        ("copied(x, x)", "copied takes whole arrays, and is called from the host: for kernels, put @hip.jit"),
        ("product(x)", "product reduces an array from the host: call it before the launch"),
        ("in_parallel(x[0])", "in_parallel is machine code of the host's: call it before the launch"),
    ],
)
def test_what_takes_arrays(call, says):
    space = dict(globals())
    exec(f"def kernel(x):\n    {call}\n", space)
    with pytest.raises(TypingError, match=says):
        hip.jit(space["kernel"])[1, 1](np.ones(3))
