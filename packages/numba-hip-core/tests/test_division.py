"""Division by zero: an exception where it is asked for, else a number; the process lives on in any case."""

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

import numba_hip as hip
from hip_runtime import config as runtime_config
from numba_hip import config as hip_config
from numba_hip.errors import OptionError

on_the_cpu = pytest.mark.cpu_device("an AMD GPU gives any number")

INTEGERS = [np.dtype(name) for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")]


def floor(a, b, out):
    i = hip.grid(1)
    if i < a.size:
        out[i] = a[i] // b[i]


def remainder(a, b, out):
    i = hip.grid(1)
    if i < a.size:
        out[i] = a[i] % b[i]


def both(a, b, out):
    i = hip.grid(1)
    if i < a.size:
        quotient, rest = divmod(a[i], b[i])
        out[i] = quotient + rest


def true_division(a, b, out):
    i = hip.grid(1)
    if i < a.size:
        out[i] = a[i] / b[i]


def operands(dtype):
    """Seven by two, with both signs where there are two, six by zero, and zero by zero."""
    return np.array([7, 7 if dtype.kind == "u" else -7, 6, 0]).astype(dtype), np.array([2, 2, 0, 0]).astype(dtype)


@pytest.mark.sample(1)
@on_the_cpu
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_give_zero(dtype):
    a, b = operands(dtype)
    quotients, rests = np.zeros((2, 4), dtype)
    hip.jit(floor)[1, 32](a, b, quotients)
    hip.jit(remainder)[1, 32](a, b, rests)
    np.testing.assert_array_equal(quotients[:2], a[:2] // b[:2])
    np.testing.assert_array_equal(rests[:2], a[:2] % b[:2])
    assert not quotients[2:].any()
    assert not rests[2:].any()


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_raise_in_pythons_model(dtype):
    a, b = operands(dtype)
    out = np.zeros(4, dtype)
    kernel = hip.jit(floor, error_model="python")
    with pytest.raises(ZeroDivisionError, match=r"^tid=\[2, 0, 0\] ctaid=\[0, 0, 0\]: integer division by zero \("):
        kernel[1, 32](a, b, out)
    assert not out.any()
    kernel[1, 32](a[:2], b[:2], out[:2])
    np.testing.assert_array_equal(out[:2], a[:2] // b[:2])


@pytest.mark.sample(2)
@pytest.mark.parametrize("function", [floor, remainder, both, true_division])
@pytest.mark.parametrize("dtype", [np.dtype(np.int64), np.dtype(np.float32)], ids=str)
def test_the_place_is_told(function, dtype):
    a, b = operands(dtype)
    line = function.__code__.co_firstlineno + 3
    with pytest.raises(ZeroDivisionError) as caught:
        hip.jit(function, error_model="python")[1, 32](a, b, np.zeros(4))
    assert re.search(rf"by zero \(.*test_division\.py:{line} in {function.__name__}\)$", str(caught.value))


@pytest.mark.parametrize("form", ["loop", "regions", "vectors"])
@on_the_cpu
def test_every_form_raises_and_goes_on(form):
    a, b = operands(np.dtype(np.int32))
    with runtime_config.cpu_form.scope(form):
        kernel = hip.jit(remainder, error_model="python")
        for _ in range(3):
            out = np.zeros(4, np.int32)
            with pytest.raises(ZeroDivisionError, match=r"tid=\[2, 0, 0\].*integer modulo by zero"):
                kernel[1, 32](a, b, out)
            kernel[1, 32](a, b + (b == 0), out)
            np.testing.assert_array_equal(out, [1, 1, 0, 0])


def test_floats_give_what_numpy_gives():
    a, b = operands(np.dtype(np.float32))
    out = np.zeros(4, np.float32)
    hip.jit(true_division)[1, 32](a, b, out)
    np.testing.assert_array_equal(out, [3.5, -3.5, np.inf, np.nan])


SIGNED = ["i1", "i2", "i4", "i8"]
FORMS = ["auto", "loop", "regions", "vectors"]


def every_way(a, b, quotients, rests):
    i = hip.grid(1)
    if i < a.size:
        quotients[i, 0] = a[i] // b[i]
        rests[i, 0] = a[i] % b[i]
        quotients[i, 1], rests[i, 1] = divmod(a[i], b[i])
        quotients[i, 2] = np.floor_divide(a[i], b[i])
        rests[i, 2] = np.remainder(a[i], b[i])
        quotients[i, 3], rests[i, 3] = a[i], a[i]
        quotients[i, 3] //= b[i]
        rests[i, 3] %= b[i]


def pairs(dtype):
    limits = np.iinfo(dtype)
    numbers = {limits.min, limits.min + 1, limits.min // 2, -7, -2, -1, 0, 1, 2, 7, limits.max - 1, limits.max}
    fitting = [number for number in sorted(numbers) if number >= limits.min]
    a, b = np.meshgrid(np.array(fitting, dtype), np.array(fitting, dtype))
    return a.ravel(), b.ravel()


def divided_by_numpy(a, b):
    with np.errstate(all="ignore"):
        return a // b, a % b


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("dtype", "form"), [*((dtype, "auto") for dtype in INTEGERS), *((np.dtype("i8"), form) for form in FORMS[1:])]
)
@on_the_cpu
def test_integers_give_what_numpy_gives(dtype, form):
    """The smallest one by -1, too, for which processors have no quotient and trap."""
    a, b = pairs(dtype)
    quotients, rests = np.full((2, a.size, 4), 77, dtype)
    with runtime_config.cpu_form.scope(form):
        hip.jit(every_way)[3, 50](a, b, quotients, rests)
    for results, expected in zip((quotients, rests), divided_by_numpy(a, b), strict=True):
        for way in range(4):
            np.testing.assert_array_equal(results[:, way], expected, str(way))


@pytest.mark.parametrize("form", FORMS)
@on_the_cpu
@pytest.mark.sample(2)
def test_lanes_that_do_not_divide_do_not_trap(form):
    def divide_some(a, b, out):
        i = hip.grid(1)
        if b[i] != -1 and b[i] != 0:
            out[i] = a[i] // b[i] + a[i] % b[i]

    a, b = np.full(61, -(2**63)), np.resize([-1, 0, 3, 5], 61)
    out = np.zeros(61, np.int64)
    with runtime_config.cpu_form.scope(form):
        hip.jit(divide_some)[1, 61](a, b, out)
    chosen = b > 0
    np.testing.assert_array_equal(out[chosen], (a // np.abs(b + (b == 0)) + a % np.abs(b + (b == 0)))[chosen])
    assert not out[~chosen].any()


SMALLEST = -(2**63)


def by_constants(a, out):
    out[0] = a[0] // -1
    out[1] = a[0] % -1
    out[2] = SMALLEST // a[1]
    out[3] = SMALLEST % a[1]
    out[4] = np.int64(SMALLEST) // np.int64(-1)


@pytest.mark.parametrize("model", ["python", "numpy"])
def test_constants_give_what_numpy_gives(model):
    out = np.full(5, 77)
    hip.jit(by_constants, error_model=model)[1, 1](np.array([SMALLEST, -1]), out)
    assert out.tolist() == [SMALLEST, 0, SMALLEST, 0, SMALLEST]


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("power", [0, 1, 5, 62])
def test_powers_of_two_give_what_numpy_gives(dtype, power):
    number = 1 << min(power, np.iinfo(dtype).bits - 2)
    same = np.dtype(dtype).type(number)

    def divide(a, wide, narrow):
        i = hip.grid(1)
        if i < a.size:
            wide[0, i], wide[1, i] = a[i] // number, a[i] % number
            wide[2, i] = a[i] // 2 if a[i] % 2 == 0 else a[i] * 3  # the two have a division in common
            narrow[0, i], narrow[1, i] = np.floor_divide(a[i], same), np.remainder(a[i], same)

    a = np.unique(pairs(dtype)[0])
    wide, narrow = np.full((3, a.size), 77, np.int64), np.full((2, a.size), 77, dtype)
    if dtype == np.uint64:  # and a signed number make a float
        a = a >> np.uint64(12)
    hip.jit(divide)[1, 64](a, wide, narrow)
    long = a.astype(np.int64)
    with np.errstate(over="ignore"):
        expected = [long // number, long % number, np.where(long % 2 == 0, long // 2, long * 3)]
    np.testing.assert_array_equal(wide, expected)
    np.testing.assert_array_equal(narrow, [a // same, a % same])


def test_a_quotient_and_a_remainder_by_two_are_a_shift_and_a_bit():
    def steps(numbers, out):
        number, count = numbers[0], 0
        while number != 1:
            number = 3 * number + 1 if number % 2 else number // 2
            count += 1
        out[0] = count

    text = hip.jit(steps).inspect_llvm("void(int64[:], int64[:])", target="gfx942")
    assert "ashr" in text
    assert "div" not in text.replace("divergen", "")
    assert "rem i64" not in text


@pytest.mark.parametrize("dtype", SIGNED)
def test_numbers_and_pythons_model_give_what_numpy_gives(dtype):
    smallest, out = np.dtype(dtype).type(np.iinfo(dtype).min), np.zeros(2, dtype)

    def divide(a, b, out):
        out[0] = a // b
        out[1] = a % b

    hip.jit(divide, error_model="python")[1, 1](smallest, np.dtype(dtype).type(-1), out)
    assert out.tolist() == [smallest, 0]


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_the_simulator_gives_what_numpy_gives():
    a, b = pairs(np.dtype(np.int64))
    a, b = a[b != 0], b[b != 0]
    quotients, rests = np.full((2, a.size, 4), 77)
    with hip_config.simulator.scope(True):
        hip.jit(every_way)[1, a.size](a, b, quotients, rests)
    for results, expected in zip((quotients, rests), divided_by_numpy(a, b), strict=True):
        np.testing.assert_array_equal(results, np.stack([expected] * 4, axis=1))


def in_place(a, b, out):
    i = hip.grid(1)
    if i < a.size:
        out[i] = a[i]
        out[i] /= b[i]


@pytest.mark.sample(4)
@pytest.mark.parametrize("function", [floor, remainder, true_division, in_place])
@pytest.mark.parametrize("dtype", [np.dtype(np.int64), np.dtype(np.uint8), np.dtype(np.float32)], ids=str)
@pytest.mark.parametrize("start", [2, 3])
def test_the_simulator_raises_in_pythons_model(function, dtype, start):
    """Six by zero, and zero by zero."""
    a, b = operands(dtype)
    with hip_config.simulator.scope(True):
        kernel = hip.jit(function, error_model="python")
    out = np.zeros(4)
    with pytest.raises(ZeroDivisionError, match=r"^tid=\[0, 0, 0\] ctaid=\[0, 0, 0\]: division by zero$") as caught:
        kernel[1, 1](a[start:], b[start:], out)
    assert isinstance(caught.value, FloatingPointError), "that of Numba CUDA's simulator"
    assert not out.any()
    kernel[1, 2](a[:2], b[:2], out)
    assert out.any()


@pytest.mark.sample(4)
@pytest.mark.parametrize("function", [floor, remainder, both, true_division, in_place])
@pytest.mark.parametrize("dtype", [*INTEGERS, np.dtype(np.float32), np.dtype(np.float64)], ids=str)
@on_the_cpu
def test_the_simulator_gives_the_numbers_of_compiled_kernels(function, dtype):
    a, b = operands(dtype)
    results = np.zeros((2, 4))
    for simulated, out in zip((False, True), results, strict=True):
        with hip_config.simulator.scope(simulated):
            hip.jit(function)[1, 4](a, b, out)
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize("simulated", [False, True])
def test_only_divisions_raise(simulated):
    def kernel(a, b, out):
        out[0], out[1], out[2] = np.log(b[0]), a[0] - a[0], a[0] * b[0]

    out = np.zeros(3)
    with hip_config.simulator.scope(simulated):
        hip.jit(kernel, error_model="python")[1, 1](np.array([np.inf]), np.zeros(1), out)
    np.testing.assert_array_equal(out, [-np.inf, np.nan, np.nan])


def call_of(divide):
    def kernel(b, out):
        out[0] = divide(b[1], b[0])

    return kernel


@pytest.mark.parametrize("simulated", [False, True])
def test_the_models_of_a_kernel_and_of_what_it_calls_are_apart(simulated):
    with hip_config.simulator.scope(simulated):
        strict, lenient = (hip.jit(lambda a, b: a / b, device=True, error_model=model) for model in ("python", "numpy"))
        calls_strict = hip.jit(call_of(strict), exceptions=True)
        calls_lenient = hip.jit(call_of(lenient), error_model="python")
    out = np.zeros(1)
    calls_lenient[1, 1](np.array([0.0, 1.0]), out)
    assert out[0] == np.inf
    with pytest.raises(ZeroDivisionError):
        calls_strict[1, 1](np.array([0.0, 1.0]), out)


def divide_numbers(out, number, real):
    out[0] //= number
    out[1] = 1 / real


def test_numbers_of_a_signature_raise_in_the_simulator_too():
    with hip_config.simulator.scope(True):
        kernel = hip.jit("void(int64[:], int32, float64)", error_model="python")(divide_numbers)
    out = np.zeros(2, np.int64)
    kernel[1, 1](out, 2, 0.5)
    assert out.tolist() == [0, 2]
    for number, real in ((0, 0.5), (2, 0.0)):
        with pytest.raises(ZeroDivisionError):
            kernel[1, 1](out, number, real)


@pytest.mark.sample(5)
@pytest.mark.parametrize("target", ["gfx90a", "gfx1100"])
@pytest.mark.parametrize("function", [floor, remainder, both])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_amd_gpus_divide_by_nothing_that_has_no_quotient(function, dtype, target):
    """LLVM knows no result of such a division, and what is made of it can be anything."""
    text, _ = hip.compile(function, f"({dtype}[::1], {dtype}[::1], {dtype}[::1])", target=target, output="llvm")
    module = llvm.parse_assembly(text)
    instructions = {
        instruction.name: instruction
        for defined in module.functions
        for block in defined.blocks
        for instruction in block.instructions
    }
    divisions = [found for found in instructions.values() if found.opcode in ("sdiv", "srem")]
    assert divisions
    for division in divisions:
        _, divisor = division.operands
        while instructions[divisor.name].opcode == "freeze":
            (divisor,) = instructions[divisor.name].operands
        assert instructions[divisor.name].opcode == "select", str(division)


def test_timedeltas_give_what_numpy_gives():
    def divide(a, b, quotients, rests):
        i = hip.grid(1)
        quotients[i] = np.floor_divide(a[i], b[i])
        rests[i] = np.remainder(a[i], b[i])

    numbers = np.array([-(2**63), 1 - 2**63, -7, -2, -1, 0, 1, 2, 7, 2**63 - 1]).view("m8[s]")
    a, b = (side.ravel() for side in np.meshgrid(numbers, numbers))
    quotients, rests = np.full(100, 77), np.zeros(100, "m8[s]")
    hip.jit(divide)[1, 100](a, b, quotients, rests)
    expected = divided_by_numpy(a, b)
    np.testing.assert_array_equal(quotients, expected[0])
    np.testing.assert_array_equal(rests, expected[1])

    def in_units(a, b, quotients):
        quotients[0] = a // b

    quotient = np.zeros(1)
    hip.jit(in_units)[1, 1](np.timedelta64(-7, "m"), np.timedelta64(40, "s"), quotient)
    assert quotient[0] == -11


def test_debug_is_pythons_model_unless_told_otherwise():
    a, b = operands(np.dtype(np.int32))
    with pytest.raises(ZeroDivisionError):
        hip.jit(floor, debug=True, opt=False)[1, 32](a, b, np.zeros(4, np.int32))
    hip.jit(floor, debug=True, opt=False, error_model="numpy")[1, 32](a, b, np.zeros(4, np.int32))


def test_a_device_function_has_a_model_of_its_own():
    divide = hip.jit(lambda a, b: a // b, device=True, error_model="python")

    @hip.jit(exceptions=True)
    def call(b, out):
        out[hip.grid(1)] = divide(8, b[hip.grid(1)])

    out = np.zeros(2, np.int64)
    call[1, 2](np.array([2, 4]), out)
    np.testing.assert_array_equal(out, [4, 2])
    with pytest.raises(ZeroDivisionError):
        call[1, 2](np.array([2, 0]), out)


def test_there_are_two_models():
    with pytest.raises(OptionError, match="error_model is 'c'; it can be 'python' or 'numpy'"):
        hip.jit(floor, error_model="c")


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32"])
def test_numbers_beyond_32_bits_divide_short_data(kind: str) -> None:
    """What is loaded has few bits, and what it is divided by has more than 32."""

    @hip.jit
    def kernel(a, b, out):
        i = hip.grid(1)
        if i < a.size:
            mixed = (a[i] * 31) ^ b[i]
            out[0, i] = mixed % 4294967291
            out[1, i] = mixed // 4294967297
            out[2, i] = int(a[i] / 4294967295)
            out[3, i] = int(a[i] / 2**32) + 5
            out[4, i] = min(mixed, 2147483648)
            out[5, i] = max(mixed, -2147483649)
            out[6, i] = int(abs(a[i]) / 5e9) % 60

    random = np.random.default_rng(5)
    limits = np.iinfo(kind)
    a = random.integers(limits.min + 1, limits.max + 1, 200).astype(kind)
    b = random.integers(0, 256, 200).astype(np.uint8)
    out = np.zeros((7, 200), np.int64)
    kernel[2, 128](a, b, out)
    mixed = (a.astype(np.int64) * 31) ^ b
    nothing = np.zeros_like(mixed)
    held = np.minimum(mixed, 2147483648), np.maximum(mixed, -2147483649)
    wanted = [mixed % 4294967291, mixed // 4294967297, nothing, nothing + 5, *held, nothing]
    np.testing.assert_array_equal(out, wanted)
