"""What ``fastmath`` allows reaches the code, on every target, and only where it was asked for."""

import cmath
import math

import numpy as np
import pytest

import numba_hip as hip
from hip_devicelib import cpu
from numba_hip import config
from numba_hip.errors import OptionError


def total(values, out):
    i = hip.grid(1)
    result = np.float32(0)
    for k in range(values.shape[1]):
        result += values[i, k] * values[i, k]
    out[i] = result


SIGNATURE = "(float32[:, ::1], float32[::1])"


@pytest.mark.parametrize("target", ["cpu", "gfx942", "gfx1100"])
@pytest.mark.sample(2)
def test_flags_of_operations(target):
    plain = hip.compile(total, SIGNATURE, target=target, output="llvm")[0]
    fast = hip.compile(total, SIGNATURE, target=target, output="llvm", fastmath=True)[0]
    chosen = hip.compile(total, SIGNATURE, target=target, output="llvm", fastmath={"contract"})[0]
    assert "fadd fast" not in plain
    assert "fadd fast" in fast
    assert "fadd contract" in chosen


def test_results_stay_close():
    values = np.random.default_rng(2).random((64, 500), np.float32)
    out = np.zeros(64, np.float32)
    hip.jit(fastmath=True)(total)[1, 64](values, out)
    np.testing.assert_allclose(out, (values.astype(np.float64) ** 2).sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize(
    ("fastmath", "raises"), [(False, True), ({"contract"}, True), ({"ninf"}, False), (True, False)]
)
@pytest.mark.sample(2)
def test_divisions_that_raise_nothing(fastmath, raises):
    @hip.jit(fastmath=fastmath, debug=True, opt=False)
    def divide(out, by):
        out[0] = out[0] / by
        out[1] /= by

    out = np.full(2, 6, np.float32)
    divide[1, 1](out, np.float32(4))
    assert out.tolist() == [1.5, 1.5]
    if raises:
        with pytest.raises(ZeroDivisionError):
            divide[1, 1](out, np.float32(0))
    else:
        divide[1, 1](out, np.float32(0))
    with pytest.raises(ZeroDivisionError):  # of float64, where speed is not that of a GPU's own instruction
        divide[1, 1](out.astype(np.float64), 0.0)


def calling(function, at=1):
    """A kernel that calls *function* for each number."""

    def kernel(values, out):
        i = hip.grid(1)
        if i < values.size:
            out[i] = function(values[i] * at)

    return kernel


def run(kernel, values):
    out = np.zeros_like(values)
    kernel[-(-values.size // 64), 64](values, out)
    return out


@pytest.fixture
def linked(monkeypatch):
    """Compiles for the CPU device, and says which of its math functions were linked."""
    asked = []
    supply = cpu.bitcode_of

    def supply_and_note(symbols, often, **processor):
        asked.append(set(symbols))
        return supply(symbols, often, **processor)

    monkeypatch.setattr(cpu, "bitcode_of", supply_and_note)

    def compiled(function, fastmath):
        asked.clear()
        text = hip.compile(function, "(float64[::1],) * 2", target="cpu", output="llvm", fastmath=fastmath)[0]
        (symbols,) = asked
        return text, {symbol.removeprefix(cpu.catalog.PREFIX) for symbol in symbols}

    return compiled


VALUES = np.random.default_rng(3).uniform(-30, 30, 4000)


CPU = pytest.mark.cpu_device("device libraries of AMD GPUs have one function each")


@CPU
@pytest.mark.parametrize("words", ["ulp4", {"ulp4"}], ids=["all flags", "no flags"])
@pytest.mark.parametrize("ulp4_first", [False, True])
@pytest.mark.sample(1)
def test_functions_within_4_units_are_for_those_who_ask(linked, words, ulp4_first):
    """Both in one process, whichever is compiled first, and again afterwards."""
    function = calling(math.sin, 3)
    forms = [words, False] if ulp4_first else [False, words]
    results = []
    for fastmath in (*forms, *forms):
        text, symbols = linked(function, fastmath)
        assert symbols == {"sin_f64_ulp4" if fastmath else "sin_f64"}
        assert ("fmul fast" in text) == (fastmath == "ulp4")
        results.append(run(hip.jit(fastmath=fastmath)(function), VALUES))
        np.testing.assert_array_max_ulp(results[-1], np.sin(VALUES * 3), 4 if fastmath else 1)
    np.testing.assert_array_equal(results[:2], results[2:])
    assert (results[0] != results[1]).any()


@CPU
@pytest.mark.parametrize("ulp4_first", [False, True])
@pytest.mark.sample(1)
def test_what_numba_compiles_for_both_is_compiled_for_each(linked, ulp4_first):
    """e to the power of a complex number is a function of Numba's own, which it keeps by its types alone."""

    def kernel(values, out):
        i = hip.grid(1)
        if i < values.size:
            out[i] = cmath.exp(complex(values[i], 1.0)).real

    for fastmath in ("ulp4", False) if ulp4_first else (False, "ulp4"):
        _, symbols = linked(kernel, fastmath)
        assert symbols == {f"{name}_f64{'_ulp4' * bool(fastmath)}" for name in ("sin", "cos", "exp")}


@pytest.mark.parametrize("at", [np.float32(1), 1.0])
@pytest.mark.sample(1)
def test_functions_of_float32_stay_as_they_are(at):
    values = VALUES.astype(np.float32)
    function = calling(math.exp, at)
    plain, fast = (run(hip.jit(fastmath=words)(function), values) for words in (False, {"ulp4"}))
    if isinstance(at, np.float32):
        np.testing.assert_array_equal(fast, plain)
    else:  # computed in float64
        np.testing.assert_array_max_ulp(fast, plain, 1)


@CPU
def test_each_function_has_its_own_choice(linked):
    @hip.jit(device=True, fastmath="ulp4")
    def short(x):
        return math.log(x)

    @hip.jit(device=True)
    def long(x):
        return math.exp(x)

    def kernel(values, out):
        i = hip.grid(1)
        out[i] = short(values[i]) + long(values[i]) + math.sin(values[i])

    assert linked(kernel, False)[1] == {"log_f64_ulp4", "exp_f64", "sin_f64"}


@CPU
def test_what_is_called_often_is_called_there_too():
    lines = "".join(f"        a = math.sin(a + {number})\n" for number in range(9))
    names = {"hip": hip, "math": math}
    exec(
        f"def kernel(x, out):\n    i = hip.grid(1)\n    if i < x.size:\n        a = x[i]\n{lines}        out[i] = a\n",
        names,
    )
    kernel = hip.jit("void(float64[::1], float64[::1])", fastmath="ulp4")(names["kernel"])
    out, wanted = run(kernel, VALUES), VALUES
    for number in range(9):
        wanted = np.sin(wanted + number)
    np.testing.assert_allclose(out, wanted, rtol=1e-12, atol=1e-14)
    (code,) = kernel.overloads.values()
    assert code.llvm().count("@__hip_cpu_sin_f64_ulp4(") == 10


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
@pytest.mark.sample(1)
def test_on_amd_gpus_it_means_the_flags(target):
    def made(fastmath):
        return hip.compile(total, SIGNATURE, target=target, output="llvm", fastmath=fastmath)[0]

    assert made("ulp4") == made(True) != made(False)
    assert made({"ulp4"}) == made(False)


def test_options_of_functions_within_4_units():
    values = VALUES[:64]
    expected = np.exp(values)
    np.testing.assert_array_max_ulp(run(hip.jit(fastmath="ulp4")(calling(math.exp)), values), expected, 4)
    assert hip.jit(fastmath="ulp4")(total).options.fastmath == "ulp4"
    unfused = hip.jit(fastmath="ulp4", fma=False)(total).options.fastmath
    assert unfused == {"nnan", "ninf", "nsz", "arcp", "afn", "reassoc", "ulp4"}
    assert hip.jit(fastmath="ulp4", fma=True)(total).options.fastmath == "ulp4"
    with config.simulator.scope(True):
        out = np.zeros(64)
        hip.jit(fastmath="ulp4")(calling(math.exp))[1, 64](values, out)
    np.testing.assert_array_equal(out, [math.exp(value) for value in values])


@pytest.mark.parametrize("word", ["ulp3", "fast", ""])
@pytest.mark.parametrize("simulated", [False, True])
def test_other_words_are_errors(word, simulated):
    with config.simulator.scope(simulated), pytest.raises(OptionError, match=f"fastmath is '{word}'; .*'ulp4'.*'nnan'"):
        hip.jit(fastmath=word)(total)
