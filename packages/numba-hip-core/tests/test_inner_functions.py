"""Functions inside a kernel, which Numba puts in place of their calls: their arguments are as in Python."""

from __future__ import annotations

import numpy as np
import pytest
from numba import hip
from numba.core.errors import TypingError

from numba_hip.errors import UnsupportedSyntaxError


def compiled(body):
    """The function with these lines, and the kernel of it."""
    space = {"apply": apply}
    exec("def kernel(out):\n" + "".join(f"    {line}\n" for line in body.split("\n")), space)
    return space["kernel"], hip.jit(space["kernel"])


@hip.jit(device=True)
def apply(function, x):
    return function(x, c=x)


THREE = "def f(a, b=2, c=3):\n    return a * 100 + b * 10 + c\n"


@pytest.mark.parametrize(
    "body",
    [
        THREE + "out[0] = f(1, 5)\nout[1] = f(1, c=5)\nout[2] = f(c=4, a=5)\nout[3] = f(1)",
        "f = lambda a, b=2: a * 10 + b\nout[0] = f(1, b=5)\nout[1] = f(b=1, a=3)",
        "q = out[1] + 4\ndef f(a, b=q, c=q + 1):\n    return a * 100 + b * 10 + c\nout[0] = f(1, 5)\nout[1] = f(1)",
        "def f(a, b=out[1]):\n    return a * 10 + b\nout[1] = 9\nout[0] = f(1)",
        "def f(a, *, b):\n    return a * 10 + b\nout[0] = f(1, b=3)",
        "def f(a, /, b=None):\n    return a if b is None else b\nout[0] = f(7)\nout[1] = f(7, b=8)",
        "for i in range(3):\n    def f(a, b=i):\n        return a * 10 + b\n    out[i] = f(1) + f(b=2, a=3)",
        "for v in map(lambda q, w=3: q * w, (1, 2)):\n    out[0] += v",
        THREE.replace("a * 100", "a * 100 + (lambda x, y=7: x * y)(a)") + "out[0] = f(1, c=4)",
        THREE + "out[0] = apply(f, 4)",
    ],
)
def test_arguments_are_as_in_python(body):
    function, kernel = compiled(body)
    out, expected = np.zeros(4), np.zeros(4)
    kernel[1, 1](out)
    function.__globals__["apply"] = apply.py_func
    function(expected)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("f(1, 2, 3, 4)", r"the function f\(a, b, c\) inside takes 3 by position, and gets 4"),
        ("f(b=1)", r"the function f\(a, b, c\) inside gets nothing for 'a'"),
        ("f(1, a=2)", "gets 'a' twice"),
        ("f(1, d=2)", "has no parameter 'd' to name"),
    ],
)
def test_calls_that_python_refuses(call, says):
    with pytest.raises(TypingError, match=says):
        compiled(THREE + f"out[0] = {call}")[1][1, 1](np.zeros(1))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "def f(a):\n    def g(x, y=4, z=5):\n        return x + y + z\n    return g(a, 7)\nout[0] = f(1)",
            "g, a function inside of f, which is inside a kernel itself, is called with keywords or without some",
        ),
        ("def f(a, *, b=2):\n    return a + b\nout[0] = f(1)", "no keyword-only parameters with defaults"),
        (
            "q = 1\nif out[0] > 0:\n    q = 2\ndef f(a, b=q):\n    return a + b\nout[0] = f(1)",
            "the default of 'b' in f inside is a variable that is assigned several times",
        ),
    ],
)
def test_what_numba_cannot_inline(body, says):
    with pytest.raises(UnsupportedSyntaxError, match=says):
        compiled(body)[1][1, 1](np.zeros(1))
