"""Device functions with signatures: which one a call uses, what becomes of arguments and results, and recursion."""

from __future__ import annotations

import operator
import pickle
from typing import NamedTuple

import numpy as np
import pytest
from numba import hip, literal_unroll, njit
from numba.core.errors import TypingError


def add(a, b):
    return a + b


def run(function, result_type, *values):
    @hip.jit
    def kernel(out, arguments):
        out[0] = function(*arguments)

    out = np.zeros(1, result_type)
    kernel[1, 1](out, values)
    return out[0]


class TestSignatures:
    def test_arguments_are_converted_to_the_only_signature(self):
        whole = hip.jit("(int64, int64)", device=True)(add)
        assert run(whole, np.float64, 1.5, 2.5) == 3
        assert whole.nopython_signatures[0].args[0].name == "int64"
        assert len(whole.nopython_signatures) == 1

    def test_the_best_of_several(self):
        function = hip.jit(["(int64, int64)", "(float64, float64)"], device=True)(add)
        assert run(function, np.float64, np.int32(1), 2.5) == 3.5
        single = hip.jit(["(float32, float32)", "(float64, float64)"], device=True)(add)
        assert run(single, np.float64, np.float32(1), np.float32(2**-25)) == 1
        assert run(single, np.float64, 1.0, 2.0**-25) == 1 + 2.0**-25

    def test_what_converts_to_no_signature(self):
        function = hip.jit(["(int64, int64)", "(float64, float64)"], device=True)(add)
        with pytest.raises(TypingError, match=r"with parameters \(complex128, complex128\)"):
            run(function, np.complex128, 1j, 1j)

    @pytest.mark.parametrize(
        ("signature", "value", "expected"),
        [("int32(float64)", 2.75, 2), ("float32(float64)", 0.1, np.float32(0.1)), ("int8(int64)", 300, 44)],
    )
    def test_the_result_is_converted_to_its_type(self, signature, value, expected):
        same = hip.jit(signature, device=True)(lambda a: a)
        assert run(same, np.float64, value) == expected

    def test_a_result_that_does_not_convert(self):
        with pytest.raises(TypingError, match="complex128 to int32"):
            hip.jit("int32(complex128)", device=True)(lambda a: a)

    def test_on_another_target(self):
        function = hip.jit("int32(float64)", device=True)(lambda a: a)
        assert function.device_form("gfx942").overloads == {}

        @hip.jit
        def caller(out, value):
            out[0] = function(value)

        code = caller.compile("void(float64[::1], int64)", "gfx942")
        (compiled,) = function.device_form("gfx942").nopython_signatures
        assert str(compiled) == "(float64,) -> int32"
        assert code.object()

    def test_pickled(self):
        function = pickle.loads(pickle.dumps(hip.jit("int32(float64)", device=True)(add_one)))
        assert run(function, np.float64, 1.75) == 2


def add_one(a):
    return a + 1


@hip.jit("int64(int64)", device=True)
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def make_factorial():
    @hip.jit("float64(int64)", device=True)
    def factorial(n):
        if n < 2:
            return 1
        return n * factorial(n - 1)

    return factorial


@hip.jit("int32(int32)", device=True)
def countdown(n):
    return countdown(n - 1) if n > 0 else n  # n - 1 is an int64, which the call converts


@hip.jit(device=True)
def twice(op, x):
    return op(op(x, x), x)


def test_operators_and_builtins_are_passed_to_device_functions():
    @hip.jit
    def kernel(x):
        x[1] = twice(operator.add, x[0])
        x[2] = twice(operator.mul, x[0])
        x[3] = twice(min, x[0])

    x = np.array([2.0, 0, 0, 0])
    kernel[1, 1](x)
    assert x.tolist() == [2, 6, 8, 2]


@hip.jit(["int32(int32)", "int64(int64)"], device=True)
def steps(n):
    if n <= 0:
        return n
    return steps(n - 1) + 1


@hip.jit(device=True)
def runaway(n):
    return runaway(n)


@hip.jit(device=True)
def growing(n):
    if n <= 0:
        return None
    return (n, growing(n - 1))


class TestRecursion:
    def test_with_a_signature(self):
        assert run(fibonacci, np.int64, 15) == 610

    def test_in_a_closure(self):
        assert run(make_factorial(), np.float64, 20) == 2432902008176640000

    def test_with_several_signatures(self):
        assert run(steps, np.int64, np.int32(9)) == 9
        assert run(steps, np.int64, np.int64(92)) == 92

    def test_arguments_of_the_recursive_call_are_converted(self):
        assert run(countdown, np.int64, 7) == 0

    def test_without_an_end(self):
        with pytest.raises(TypingError, match="cannot type infer runaway recursion"):
            run(runaway, np.int64, 1)

    def test_a_result_of_ever_new_types(self):
        with pytest.raises(TypingError, match="does not converge"):
            run(growing, np.int64, 1)

    def test_a_function_of_njit(self):
        @njit
        def count(n):
            return 0 if n == 0 else 1 + count(n - 1)

        assert run(count, np.int64, 12) == 12


def test_a_device_function_is_not_called_from_python():
    with pytest.raises(TypeError, match="add_one is a device function: it can be called from a kernel only"):
        hip.jit("int32(int32)", device=True)(add_one).device_form()(1)


@hip.jit(device=True)
def part(a, b, which):
    if which:
        return a[1:]
    return b[:2]


@hip.jit(device=True)
def shared_row():
    return hip.shared.array((2, 3), np.float64)[1]


class TestReturnedArrays:
    def test_views(self):
        @hip.jit
        def kernel(a, b):
            i = hip.grid(1)
            part(a, b, i)[0] += 10
            shared_row()[0] = i

        a, b = np.zeros(3), np.zeros(3)
        kernel[1, 2](a, b)
        assert a.tolist() == [0, 10, 0]
        assert b.tolist() == [10, 0, 0]

    @pytest.mark.parametrize(
        "result",
        [
            "x", "x[1:]", "x.reshape((2, 2))", "(x if n else x[1:])", "x.T", "x.view(np.int32)", "(x, n)",
            "(n, (x[1:], 1.0))", "((x, n) if n else (x[1:3], 2))", "(x, n)[0]",
        ],
    )  # fmt: skip
    def test_of_private_memory(self, result):
        namespace = {"hip": hip, "np": np}
        source = f"def function(n):\n    x = hip.local.array(4, np.float32)\n    y = {result}\n    return y\n"
        exec(source, namespace)
        with pytest.raises(
            TypingError, match="returns an array of hip.local.array, whose memory ends with the function"
        ):
            hip.jit("(int64,)", device=True)(namespace["function"])

    def test_tuples_of_what_is_not_private(self):
        @hip.jit(device=True)
        def both(a, n):
            own = hip.local.array(2, np.float64)
            own[0], own[1] = n, a[n]
            return (a[n:], own[0]), (own[1], a)

        @hip.jit
        def kernel(a, out):
            i = hip.grid(1)
            (rest, first), (second, whole) = both(a, i)
            out[i, 0], out[i, 1], out[i, 2], out[i, 3] = rest.size, first, second, whole.size

        a, out = np.arange(8.0) * 10, np.zeros((8, 4))
        kernel[1, 8](a, out)
        i = np.arange(8)
        np.testing.assert_array_equal(out, np.stack([8 - i, i, 10 * i, 0 * i + 8], axis=1))

    def test_for_amd_gpus(self):
        @hip.jit
        def kernel(a, b):
            part(a, b, hip.grid(1))[0] += 10

        assert kernel.compile("void(float64[::1], float64[::1])", "gfx942").object()


def test_inlined_functions_with_more_arguments_than_python_passes_one_by_one():
    names = [f"x{number}" for number in range(32)]
    source = f"def total({', '.join(names)}):\n    return {' + '.join(names)}\n"
    source += f"def kernel(a):\n    a[0] = total({', '.join(f'a[{number}]' for number in range(32))})\n"
    space = {}
    exec(source, space)
    space["total"] = hip.jit(device=True, inline="always")(space["total"])
    a = np.arange(32)
    hip.jit(space["kernel"])[1, 1](a)
    assert a[0] == 31 * 16


def test_the_second_argument_of_jit_makes_a_device_function():
    half = hip.jit("float64(float64)", True)(lambda x: x / 2)

    @hip.jit
    def kernel(numbers):
        numbers[1] = half(numbers[0])

    numbers = np.array([7.0, 0.0])
    kernel[1, 1](numbers)
    assert numbers[1] == 3.5


@pytest.mark.parametrize("options", [{}, {"inline": True}, {"inline": False}, {"forceinline": True}])
def test_an_inlined_function_has_the_types_of_its_signature(options):
    @hip.jit("int32(int32, int32)", device=True, **options)
    def following(number, step):
        return number * 1103515245 + step

    @hip.jit
    def kernel(numbers):
        numbers[1] = following(numbers[0], 12345)

    assert following.options.inline == "never"
    numbers = np.array([7, 0])
    kernel[1, 1](numbers)
    assert numbers[1] == np.int64(7 * 1103515245 + 12345).astype(np.int32)


def test_elements_of_a_tuple_are_passed_to_an_inlined_function():
    @hip.jit(device=True, inline="always")
    def difference(x, y):
        return x - y

    @hip.jit
    def kernel(a):
        pair = (a[0], a[1])
        a[2] = difference(*pair)

    a = np.array([7, 3, 0])
    kernel[1, 1](a)
    assert a[2] == 4


class Semiring(NamedTuple):
    """What a kernel adds and multiplies by, and what adding begins with."""

    add: object
    multiply: object
    neutral: float


def product_over(ring):
    @hip.jit
    def kernel(left, right, out):
        i = hip.grid(1)
        if i < out.size:
            total = ring.neutral
            for k in range(right.size):
                total = ring.add(total, ring.multiply(left[i, k], right[k]))
            out[i] = total

    return kernel


@pytest.mark.parametrize("jit", [hip.jit, hip.jit(device=True), njit, hip.jit(device=True, inline="always")])
def test_a_named_tuple_of_functions(jit):
    """As a constant of a factory: each kernel has the functions of its own."""
    left, right = np.arange(12.0).reshape(4, 3), np.array([2.0, 7.0, 1.0])
    usual = Semiring(jit(add), jit(lambda a, b: a * b), 0.0)
    tropical = Semiring(jit(lambda a, b: min(a, b)), jit(add), np.inf)
    for ring, expected in ((usual, left @ right), (tropical, (left + right).min(axis=1))):
        out = np.zeros(4)
        product_over(ring)[1, 4](left, right, out)
        np.testing.assert_array_equal(out, expected)


def test_tuples_of_functions():
    device = hip.jit(device=True)
    both = device(add), device(lambda a, b: a * b)
    nested = ((both[0], 2.5), (both[1], 3.0))

    @hip.jit
    def kernel(out):
        one, other = both
        out[0] = both[0](2.0, 5.0)
        out[1] = one(1.0, other(2.0, 3.0))
        out[2] = nested[1][0](nested[0][1], nested[1][1])

    out = np.zeros(3)
    kernel[1, 1](out)
    np.testing.assert_array_equal(out, [7.0, 7.0, 7.5])


@hip.jit(device=True)
def double(x):
    return x * 2


@hip.jit(device=True)
def add_two(x):
    return x + 2


FUNCTIONS = (double, add_two)


def test_a_loop_over_functions_that_is_written_out():
    @hip.jit
    def kernel(out):
        for function in literal_unroll(FUNCTIONS):
            out[0] = function(out[0])

    out = np.ones(1)
    kernel[1, 1](out)
    assert out[0] == 4
