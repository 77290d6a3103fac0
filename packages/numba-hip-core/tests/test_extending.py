"""Functions and types that a user teaches kernels, before and after kernels were compiled."""

import collections
import operator
import subprocess
import sys

import numpy as np
import pytest
from numba import njit, types
from numba.core.errors import NumbaError

import numba_hip as hip
from numba_hip import extending
from numba_hip.targets.context import HipContext
from numba_hip.targets.typing import HipTypingContext

TARGETS = ["gfx90a", "gfx942", "gfx1100", "gfx1201"]


class Interval:
    def __init__(self, low, high):
        self.low, self.high = low, high


class IntervalType(types.Type):
    def __init__(self):
        super().__init__("Interval")


def test_a_type_after_kernels_were_compiled():
    hip.jit(lambda out: None)[1, 1](np.zeros(1))

    @extending.register_model(IntervalType)
    class IntervalModel(extending.models.StructModel):
        def __init__(self, manager, kind):
            super().__init__(manager, kind, [("low", types.float64), ("high", types.float64)])

    extending.make_attribute_wrapper(IntervalType, "low", "low")
    extending.make_attribute_wrapper(IntervalType, "high", "high")

    @extending.type_callable(Interval)
    def _type(context):
        return lambda low, high: IntervalType() if isinstance(low, types.Float) else None

    @extending.lower_builtin(Interval, types.Float, types.Float)
    def _make(context, builder, signature, args):
        interval = context.make_helper(builder, signature.return_type)
        interval.low, interval.high = args
        return interval._getvalue()

    @extending.overload_attribute(IntervalType, "width")
    def _width(interval):
        return lambda interval: interval.high - interval.low

    @extending.overload_method(IntervalType, "contains")
    def _contains(interval, x):
        return lambda interval, x: interval.low <= x < interval.high

    @njit
    def joined(a, b):
        return Interval(min(a.low, b.low), max(a.high, b.high))

    def kernel(x, out):
        i = hip.grid(1)
        both = joined(Interval(x[i], x[i] + 1.0), Interval(2.0, 3.0))
        out[0, i] = both.width
        out[1, i] = both.contains(2.5) + both.low

    x, out = np.arange(5.0), np.zeros((2, 5))
    hip.jit(kernel)[1, 5](x, out)
    np.testing.assert_array_equal(out[0], np.maximum(x + 1, 3) - np.minimum(x, 2))
    np.testing.assert_array_equal(out[1], 1 + np.minimum(x, 2))
    for target in TARGETS:
        image, _ = hip.compile(kernel, "(float64[::1], float64[:,::1])", target=target, output="object")
        assert image[:4] == b"\x7fELF"


def twice(x):
    raise NotImplementedError


def test_a_function_that_holds_in_kernels_alone():
    @extending.overload(twice)
    def _twice(x):
        if isinstance(x, types.Integer):
            return lambda x: x * 2
        if isinstance(x, types.Float):
            return lambda x: x + x + hip.grid(1)
        return None

    def kernel(x, out):
        i = hip.grid(1)
        out[i] = twice(x[i])

    for dtype, extra in ((np.int64, 0), (np.float32, 1)):
        x = np.arange(6).astype(dtype)
        out = np.zeros_like(x)
        hip.jit(kernel)[2, 3](x, out)
        np.testing.assert_array_equal(out, 2 * x + extra * np.arange(6))
    for target in TARGETS:
        hip.compile(kernel, "(float32[::1], float32[::1])", target=target, output="object")
    with pytest.raises(NumbaError, match="cannot find any matches for function.*twice.* for the current target"):
        njit(lambda x: twice(x))(1)
    with pytest.raises(NumbaError, match="twice") as caught:
        hip.compile(kernel, "(complex64[::1], complex64[::1])", target="cpu", output="llvm")
    assert "test_extending.py" in str(caught.value)


def test_an_intrinsic():
    @extending.intrinsic
    def fused(typing_context, a, b, c):
        def lower(context, builder, signature, args):
            return context.call_math(builder, "fma", args)

        return a(a, a, a), lower

    @extending.intrinsic(prefer_literal=True)
    def power(typing_context, n):
        if not isinstance(n, types.Literal):
            return None
        value = 2.0**n.literal_value
        return types.float64(n), lambda context, builder, signature, args: context.get_constant(types.float64, value)

    def kernel(x, out):
        i = hip.grid(1)
        out[i] = fused(x[i], x[i], x[i]) + power(5)

    x, out = np.arange(4.0), np.zeros(4)
    hip.jit(kernel)[1, 4](x, out)
    np.testing.assert_array_equal(out, x * x + x + 32)
    for target in TARGETS:
        hip.compile(kernel, "(float64[::1], float64[::1])", target=target, output="object")


def test_names():
    import numba.hip.extending

    assert numba.hip.extending is extending


SAME_NAMES = """
import numpy as np
from numba import hip, njit, types
import numba.extending as everywhere
from numba_hip import extending as kernels

@everywhere.overload_method(types.Array, "twice", target="cpu")
def of_processors(x):
    return lambda x: x[0] * 2

@kernels.overload_method(types.Array, "twice")
def of_kernels(x, more=0):
    return lambda x, more=0: x[0] * 2 + 100 + more

@everywhere.overload_attribute(types.Array, "second", target="cpu")
def second_of_processors(x):
    return lambda x: x[1]

@kernels.overload_attribute(types.Array, "second")
def second_of_kernels(x):
    return lambda x: x[1] + 100

@kernels.overload_classmethod(types.Array, "five")
def five(cls, x):
    return lambda cls, x: x + 5

@njit(parallel=PARALLEL)
def processor(x):
    made = np.zeros((x.size, 2), np.int32)
    return x.twice() + x.second + made.sum()

@hip.jit
def kernel(x, out):
    out[0] = x.twice()
    out[1] = x.twice(more=x[2])
    out[2] = x.second
    out[3] = types.Array.five(x[0])

x, out = np.array([1.0, 2.0, 3.0]), np.zeros(4)
for step in ORDER:
    if step == "k":
        hip.jit(kernel.py_func)[1, 1](x, out)
        assert out.tolist() == [102, 105, 102, 6], out
    else:
        assert njit(parallel=PARALLEL)(processor.py_func)(x) == 4
print("same names")
"""


@pytest.mark.long
@pytest.mark.parametrize("order", ["pkpk", "kpkp"])
@pytest.mark.parametrize("parallel", [False, True])
def test_members_of_the_same_name_in_kernels_and_elsewhere(order, parallel):
    """Whatever is compiled first: what a member is in kernels is not what it is for ``njit``, which also goes on making
    arrays."""
    program = f"ORDER, PARALLEL = {order!r}, {parallel}\n{SAME_NAMES}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "same names\n"


@pytest.mark.parametrize("opt", [True, False])
def test_a_kernel_is_one_function_however_large_it_is(opt):
    """Otherwise only its entry, which calls the rest, becomes vectors on the CPU device."""

    @extending.intrinsic
    def grind(context, value):
        def lower(context, builder, signature, args):
            (word,) = args
            for number in range(1 if not opt else 4000):
                word = builder.mul(builder.xor(word, word.type(number)), word)
            return word

        return types.int64(types.int64), lower

    @hip.jit(opt=opt)
    def kernel(values):
        values[0] = grind(values[0])

    text, _ = hip.compile(kernel, (types.int64[::1],), target="cpu", output="llvm")
    assert text.count("\ndefine ") == (1 if opt else 2)


def test_an_operator_is_asked_for_once_and_learns_more_later(monkeypatch):
    asked = []
    ask = types.Function.get_call_type

    def note(function, context, args, kws):
        asked.append((function.typing_key, args))
        return ask(function, context, args, kws)

    monkeypatch.setattr(types.Function, "get_call_type", note)

    def often(out, x):
        out[0] = x * x * x * x + x * x * x + x * x + x * x - x
        out[1] = -x * x

    signature = "(float32[::1], float32)"
    hip.compile(often, signature, output="llvm")
    multiplied = [args for operation, args in asked if operation is operator.mul]
    assert len(multiplied) == len(set(multiplied)) <= 1

    @extending.overload(operator.mul)
    def scale(left, right):
        if isinstance(left, types.Float) and isinstance(right, types.BaseNamedTuple):
            return lambda left, right: left * right[0] + left * right[1]
        return None

    Pair = collections.namedtuple("Pair", "first second")

    @hip.jit
    def later(out, x, pair):
        out[0] = x * pair
        out[1] = x * x

    out = np.zeros(2)
    later[1, 1](out, 3.0, Pair(1.0, 4.0))
    np.testing.assert_array_equal(out, [15, 9])


def test_declarations_are_installed_when_there_are_more(monkeypatch):
    installed = []
    for context in (HipTypingContext, HipContext):
        install = context.install_registry
        monkeypatch.setattr(
            context,
            "install_registry",
            lambda self, registry, install=install: installed.append(install(self, registry)),
        )

    def triple(x):
        raise NotImplementedError

    def plain(out, x):
        out[0] = max(x, 2.0) + abs(x)

    def taught(out, x):
        out[0] = triple(x)

    signature = "(float32[::1], float32)"
    hip.compile(plain, signature, output="llvm")  # what it calls is declared now, wherever Numba has it
    installed.clear()
    hip.compile(plain, "(float64[::1], float32)", output="llvm")
    assert installed == []
    extending.overload(triple)(lambda x: lambda x: x * 3)
    out = np.zeros(1, np.float32)
    hip.jit(taught)[1, 1](out, np.float32(5))
    assert out[0] == 15
    assert installed
