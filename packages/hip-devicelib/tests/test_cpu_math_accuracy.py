"""The stated error bounds: float32 against float64 on many arguments, float64 against mpmath on fewer.

All hold for processors with a fused multiply-add as well as for those without: the functions that are made for the
latter give the same results here as there.
"""

from __future__ import annotations

import numpy as np
import pytest
from cpu_math_loops import Array, errors, loop, points
from cpu_math_reference import double, precise

from hip_devicelib.cpu import FUNCTIONS, MathFunction

PARTS = {"sincos": ("sin", "cos")}
WITH_AND_WITHOUT_FMA = (True, False)


def arguments_of(entry: MathFunction, count: int) -> list[Array]:
    inputs = sum(p != "ptr" for p in entry.parameters)
    if inputs == 1:
        return [points(entry.bits, count, seed=1)]
    first, second = points(entry.bits, count, seed=1), points(entry.bits, count, seed=2)
    edges = first[:21]
    grid = [part.ravel() for part in np.meshgrid(edges, np.append(edges, [3, -3, 4, 0.25, -0.25]).astype(first.dtype))]
    random = np.random.default_rng(3)
    base = np.exp(random.normal(size=count // 2) * 3).astype(first.dtype)
    # powers over the whole range of results
    power = (random.uniform(-1.02, 1.02, base.size) * (150 if entry.bits == 32 else 1075) / np.log2(base)).astype(
        base.dtype
    )
    second = second[random.permutation(second.size)]
    return [np.concatenate(parts) for parts in ((grid[0], first, base), (grid[1], second, power))]


def assert_within(entry: MathFunction, name: str, inputs: list[Array], got: Array, high: Array, low: Array) -> None:
    wrong = errors(got, high, low)
    worst = int(np.argmax(wrong))
    assert wrong[worst] <= entry.ulp, (
        f"{name}{tuple(float(x[worst]) for x in inputs)} = {got[worst]!r}, exactly {high[worst]!r} + {low[worst]!r}"
    )


@pytest.mark.parametrize("symbol", [s for s in FUNCTIONS if s.endswith("f32")])
@pytest.mark.sample(14)
def test_float32(symbol: str) -> None:
    entry = FUNCTIONS[symbol]
    inputs = arguments_of(entry, 50_000)
    found = [loop(symbol, fused)(*inputs) for fused in WITH_AND_WITHOUT_FMA]
    for name, *results in zip(PARTS.get(entry.name, (entry.name,)), *found, strict=True):
        high = double(name, *inputs)
        for got in results:
            assert_within(entry, name, inputs, got, high, np.zeros_like(high))


@pytest.mark.parametrize("symbol", [s for s in FUNCTIONS if "f64" in s])
def test_float64(symbol: str) -> None:
    entry = FUNCTIONS[symbol]
    inputs = arguments_of(entry, 2_000)
    found = [loop(symbol, fused)(*inputs) for fused in WITH_AND_WITHOUT_FMA]
    for name, *results in zip(PARTS.get(entry.name, (entry.name,)), *found, strict=True):
        exact = precise(name, *inputs)
        for got in results:
            assert_within(entry, name, inputs, got, *exact)


WORST = {
    "acos": 0.5447005, "acosh": 1.0302651, "asin": 0.526666, "asinh": 1.1636623, "atan": 1.0273477, "atanh": 0.12253992,
    "cos": 13.355001, "cosh": 7.975142, "erf": 0.86725169, "erfc": 1.5264617, "exp": -5.837563, "exp10": -27.217995,
    "exp2": -0.49406430, "expm1": 17.08704, "log": 1.2831439, "log10": 1.3274003, "log1p": 0.4285272, "log2": 1.4071368,
    "sin": 2.3600266, "sinh": 0.34938914, "tan": 3.9209394, "tanh": 0.34976935,
}  # fmt: skip
"""Where float32 has its largest errors among all numbers from 2^-12 to 2^7: random numbers do not meet such places."""


@pytest.mark.parametrize("name", WORST)
@pytest.mark.parametrize("bits", [32, 64])
def test_where_errors_are_largest(name: str, bits: int) -> None:
    """All float32 around the place, and random float64 there: the formulas are the same, or alike."""
    entry = FUNCTIONS[f"__hip_cpu_{name}_f{bits}"]
    place = np.float32(WORST[name])
    inputs = (place.view(np.uint32) + np.arange(-20_000, 20_000)).astype(np.uint32).view(np.float32)
    if bits == 64:
        inputs = np.random.default_rng(4).uniform(inputs.min(), inputs.max(), 500)
    high, low = precise(name, inputs) if bits == 64 else (double(name, inputs), np.zeros(inputs.size))
    for fused in WITH_AND_WITHOUT_FMA:
        assert_within(entry, name, [inputs], loop(entry.symbol, fused)(inputs)[0], high, low)


@pytest.mark.parametrize("fused", WITH_AND_WITHOUT_FMA)
def test_arguments_closest_to_multiples_of_half_pi(fused: bool) -> None:
    """Where reduction loses most: the hardest argument of float64 and some of float32, and their neighbours."""
    hardest = np.array([6381956970095103.0 * 2.0**797, 5.319372648326541e255], np.float64)
    for name in ("sin", "cos", "tan"):
        entry = FUNCTIONS[f"__hip_cpu_{name}_f64"]
        assert_within(entry, name, [hardest], loop(entry.symbol, fused)(hardest)[0], *precise(name, hardest))
        single = np.array([16367173.0 * 2.0**72, 12775215.0, 5.1, 4.2166e8, 3.4e38], np.float32)
        entry = FUNCTIONS[f"__hip_cpu_{name}_f32"]
        high, low = precise(name, single.astype(np.float64))
        assert_within(entry, name, [single], loop(entry.symbol, fused)(single)[0], high, low)


@pytest.mark.parametrize("fused", WITH_AND_WITHOUT_FMA)
def test_multiples_of_half_pi_of_all_sizes(fused: bool) -> None:
    """Their neighbours, up to where multiples of pi/2 are no longer subtracted, and beyond."""
    multiples = (2.0 ** np.random.default_rng(7).uniform(0, 41, 600)).round() * (np.pi / 2)
    inputs = np.concatenate([multiples, np.nextafter(multiples, 0), np.nextafter(multiples, np.inf)])
    for name in ("sin", "cos", "tan"):
        entry = FUNCTIONS[f"__hip_cpu_{name}_f64"]
        assert_within(entry, name, [inputs], loop(entry.symbol, fused)(inputs)[0], *precise(name, inputs))


def exact_cases() -> list[tuple[str, tuple[float, ...], float]]:
    inf, nan = float("inf"), float("nan")
    cases: list[tuple[str, tuple[float, ...], float]] = [
        ("pow", (x, 0.0), 1.0) for x in (0.0, -0.0, inf, -inf, nan, 2.0, -3.0)
    ]
    cases += [("pow", (1.0, y), 1.0) for y in (inf, -inf, nan, 1e30, -0.5)]
    cases += [
        ("pow", (-1.0, inf), 1.0),
        ("pow", (-1.0, -inf), 1.0),
        ("pow", (-8.0, 1 / 3), nan),
        ("pow", (nan, 1.0), nan),
    ]
    cases += [
        ("pow", (-0.0, -3.0), -inf),
        ("pow", (-0.0, -2.0), inf),
        ("pow", (-0.0, 3.0), -0.0),
        ("pow", (0.0, 0.5), 0.0),
    ]
    cases += [
        ("pow", (-inf, 3.0), -inf),
        ("pow", (-inf, -3.0), -0.0),
        ("pow", (-inf, 0.5), inf),
        ("pow", (0.5, -inf), inf),
    ]
    cases += [("pow", (-2.0, 3.0), -8.0), ("pow", (10.0, 2.0), 100.0), ("pow", (2.0, -126.0), 2.0**-126)]
    cases += [
        ("hypot", (inf, nan), inf),
        ("hypot", (nan, -inf), inf),
        ("hypot", (3.0, -4.0), 5.0),
        ("hypot", (0.0, -0.0), 0.0),
    ]
    cases += [("atan2", (0.0, -0.0), np.pi), ("atan2", (-0.0, 0.0), -0.0), ("atan2", (-0.0, -1.0), -np.pi)]
    cases += [("atan2", (inf, -inf), 3 * np.pi / 4), ("atan2", (1.0, -inf), np.pi), ("atan2", (-1.0, 0.0), -np.pi / 2)]
    for name in ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p", "cbrt", "erf"):
        cases += [(name, (0.0,), 0.0), (name, (-0.0,), -0.0), (name, (nan,), nan)]
    cases += [(name, (0.0,), 1.0) for name in ("cos", "cosh", "exp", "exp2", "exp10", "erfc")]
    cases += [(name, (-0.0,), -inf) for name in ("log", "log2", "log10", "rsqrt")]
    cases += [(name, (-1.0,), nan) for name in ("log", "log2", "log10", "rsqrt", "acosh")]
    cases += [(name, (x,), nan) for name in ("sin", "cos", "tan") for x in (inf, -inf)]
    cases += [("exp2", (float(k),), 2.0**k) for k in (-149, -126, -1, 1, 10, 127)]
    cases += [("log2", (2.0**k,), float(k)) for k in (-149, -126, -1, 0, 1, 127)]
    cases += [("acos", (1.0,), 0.0), ("acos", (-1.0,), np.pi), ("acosh", (1.0,), 0.0), ("atanh", (-1.0,), -inf)]
    cases += [("erfc", (-inf,), 2.0), ("erfc", (inf,), 0.0), ("tanh", (-inf,), -1.0), ("erf", (inf,), 1.0)]
    cases += [
        ("cbrt", (-27.0,), -3.0),
        ("cbrt", (2.0**-147,), 2.0**-49),
        ("log1p", (-1.0,), -inf),
        ("log10", (1000.0,), 3.0),
    ]
    return cases


@pytest.mark.parametrize("fused", WITH_AND_WITHOUT_FMA)
@pytest.mark.parametrize("bits", [32, 64])
def test_results_that_are_exact(bits: int, fused: bool) -> None:
    for name, inputs, expected in exact_cases():
        function = loop(f"__hip_cpu_{name}_f{bits}", fused)
        kind = np.dtype(f"f{bits // 8}").type
        # an odd number of elements runs through the vector loop and what is left over
        (got,) = function(*(np.full(37, value, kind) for value in inputs))
        wanted = np.full(37, expected, kind)
        np.testing.assert_array_equal(got, wanted, err_msg=f"{name}{inputs}")
        if not np.isnan(expected):
            np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted), err_msg=f"sign of {name}{inputs}")
