"""The variants within 4 units in the last place: hard arguments, special ones, damaged coefficients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from cpu_math_loops import Array, Loop, errors, loop
from cpu_math_reference import precise
from test_cpu_math_accuracy import WITH_AND_WITHOUT_FMA, WORST, arguments_of, exact_cases

from hip_devicelib.cpu import FUNCTIONS, library
from hip_devicelib.cpu.coefficients import POLYNOMIALS

VARIANTS = {entry.name: entry for entry in FUNCTIONS.values() if entry.suffix}
INEXACT = {("log10", (1000.0,)), ("pow", (10.0, 2.0))}
"""What the others give exactly, and these to the last place."""


def random(seed: int = 11) -> np.random.Generator:
    return np.random.default_rng(seed)


def beside(centres: Array, count: int, reach: int) -> Array:
    """*count* numbers around each of *centres*, at most *reach* steps of float64 away."""
    steps = random().integers(-reach, reach, (count, centres.size), endpoint=True)
    return (centres.view(np.int64) + steps).view(np.float64).ravel()


def around(centres: list[float], count: int = 400) -> Array:
    """Numbers around *centres*, from neighbours to a tenth away."""
    spread = 10.0 ** random().uniform(-16, -1, (count, len(centres)))
    near = np.array(centres) * (1 + spread * random(12).choice([-1, 1], spread.shape))
    return np.concatenate([near.ravel(), beside(np.array(centres), 50, 30)])


def turns() -> Array:
    """Next to multiples of pi/2 of all sizes, on both sides of the way for large arguments."""
    exponents = random().uniform(0, 1020, 400)
    large = np.ldexp(random(2).uniform(1, 2, 400), exponents.astype(int))
    multiples = np.concatenate([np.arange(1, 400), 2.0 ** random().uniform(9, 40, 1500)]).round() * (np.pi / 2)
    hardest = [6381956970095103.0 * 2.0**797, 5.319372648326541e255, 2.0**40, 2.0**1023]
    return np.concatenate([beside(multiples, 1, 3), large, beside(np.array(hardest), 9, 4)])


def powers(count: int = 3000) -> list[Array]:
    """Bases next to 1 and elsewhere, exponents that take the result over the whole range, denormal numbers included."""
    base = np.concatenate([np.exp(random().normal(size=count) * spread) for spread in (1e-12, 1e-4, 0.2, 3, 150)])
    base = np.concatenate([base, random(3).uniform(0.70, 1.42, count), np.full(200, 5e-324 * 12345)])
    with np.errstate(all="ignore"):
        exponent = random(4).uniform(-1080, 1030, base.size) / np.log2(base)
    exponent[::7] = random(5).uniform(1020, 1024, exponent[::7].size) / np.log2(base[::7])
    negative = -base[:500], exponent[:500].round()
    return [np.concatenate(parts) for parts in ((base, negative[0]), (exponent, negative[1]))]


def hard_arguments(name: str) -> list[Array]:
    if name in ("sin", "cos", "tan"):
        return [turns()]
    if name.startswith("log"):
        tiny = np.ldexp(random().uniform(1, 2, 500), random(2).integers(-1074, -1015, 500))
        return [np.concatenate([around([1.0, np.sqrt(0.5), np.sqrt(2), 2.0, 2.0**-1022, 1.5e308]), tiny])]
    if name in ("exp", "exp2"):
        one = 1.0 if name == "exp2" else np.log(2.0)
        ends = [one * number for number in (1021, 1022, 1023.9, -1021, -1022, -1073.9, 0.5, 1.5, -0.5, 1e-300)]
        return [np.concatenate([around(ends, 100), random().uniform(-1075 * one, 1024 * one, 4000)])]
    if name == "erfc":
        return [np.concatenate([around([0.65, -0.65, 1.0, 26.0, 26.54, 27.2]), random().uniform(-7, 27.3, 5000)])]
    if name == "pow":
        return powers()
    if name == "atan2":
        y, x = (np.exp(random(seed).normal(size=4000) * 2) * random(seed).choice([-1, 1], 4000) for seed in (1, 2))
        scale = np.ldexp(1.0, random().integers(-1000, 1000, 4000))
        return [np.concatenate([y * scale, around([1.0] * 9)]), np.concatenate([x * scale, around([1.0] * 9)[::-1]])]
    edges = around([0.5, 1.0, np.sqrt(0.5), 0.85, 6.0, 1e-9, 2.4, 1e-300])
    inside = edges[np.abs(edges) <= 1] if name in ("asin", "acos") else np.append(edges, random().uniform(0, 20, 2000))
    return [np.concatenate([inside, -inside, random().uniform(-1, 1, 4000)])]


def largest_error(name: str, inputs: list[Array], compiled: Loop | None = None) -> float:
    """Of *compiled*, or of the functions with and without a fused multiply-add."""
    loops = [compiled] if compiled else [loop(VARIANTS[name].symbol, fused) for fused in WITH_AND_WITHOUT_FMA]
    exact = precise(name, *inputs)
    return max(float(errors(one(*inputs)[0], *exact).max()) for one in loops)


@pytest.mark.parametrize("name", VARIANTS)
def test_hard_arguments(name: str) -> None:
    assert largest_error(name, hard_arguments(name)) <= VARIANTS[name].ulp


@pytest.mark.parametrize("name", [name for name in VARIANTS if name in WORST])
def test_where_the_other_ones_have_their_largest_errors(name: str) -> None:
    low, high = sorted((WORST[name] * (1 - 1e-4), WORST[name] * (1 + 1e-4)))
    assert largest_error(name, [random().uniform(low, high, 2000)]) <= VARIANTS[name].ulp


@pytest.mark.parametrize("fused", WITH_AND_WITHOUT_FMA)
def test_special_values_are_as_before(fused: bool) -> None:
    for name, inputs, _ in exact_cases():
        if name not in VARIANTS or (name, inputs) in INEXACT:
            continue
        arguments = [np.full(37, value) for value in inputs]
        (wanted,) = loop(f"__hip_cpu_{name}_f64")(*arguments)
        (got,) = loop(VARIANTS[name].symbol, fused)(*arguments)
        np.testing.assert_array_equal(got, wanted, err_msg=f"{name}{inputs}")
        if not np.isnan(wanted).any():
            np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted), err_msg=f"sign of {name}{inputs}")


@pytest.mark.parametrize("fused", WITH_AND_WITHOUT_FMA)
def test_special_values_in_all_combinations(fused: bool) -> None:
    """Infinite, zero and NaN where the others are, and of their sign, among lanes that are ordinary."""
    special = [0.0, 1.0, 2.0, 0.5, 3.0, 1e300, 5e-324, 2.0**-1022, 2.0**40, 1e17, 709.9, 745.2, np.inf]
    values = np.array([*special, *(-value for value in special), np.nan, 1.25, -1.25])
    for name, entry in VARIANTS.items():
        inputs = [grid.ravel() for grid in np.meshgrid(*[values] * len(entry.parameters))]
        (wanted,), (got,) = loop(f"__hip_cpu_{name}_f64")(*inputs), loop(entry.symbol, fused)(*inputs)
        kept = np.isfinite(wanted) & (wanted != 0)
        np.testing.assert_array_equal(got[~kept], wanted[~kept], err_msg=name)
        known = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(wanted[known]), err_msg=name)
        np.testing.assert_allclose(got[kept], wanted[kept], rtol=1e-14, atol=1e-323, err_msg=name)


DAMAGES = {
    "sin": "sin_ulp4", "cos": "sin_ulp4", "tan": "cos_ulp4", "asin": "asin", "acos": "asin_ulp4", "atan": "atan_ulp4",
    "atan2": "atan_ulp4", "tanh": "expm1_ulp4", "exp": "exp_ulp4", "exp2": "exp2_ulp4", "log": "log", "log2": "log",
    "log10": "log", "pow": "pow_log2_ulp4", "erf": "erf_far_ulp4", "erfc": "erfc_ulp4",
}  # fmt: skip


@pytest.fixture
def damaged() -> Iterator[dict[tuple[str, int], tuple[float, ...]]]:
    """The polynomials, which may be changed: functions are built anew while the test runs."""
    kept = dict(POLYNOMIALS)
    library._bitcode.cache_clear()
    yield POLYNOMIALS
    POLYNOMIALS.update(kept)
    library._bitcode.cache_clear()


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.sample(3)
def test_a_damaged_coefficient_is_seen(name: str, damaged: dict[tuple[str, int], tuple[float, ...]]) -> None:
    key = DAMAGES[name], 64
    *coefficients, last = damaged[key]
    damaged[key] = (*coefficients, last * 1.1)
    inputs = [
        np.concatenate(parts) for parts in zip(arguments_of(VARIANTS[name], 2000), hard_arguments(name), strict=True)
    ]
    assert largest_error(name, inputs, Loop(VARIANTS[name])) > 4
