"""Fit the polynomials and split the constants of the CPU device's math, and write them as a Python module.

    python tools/fit_math.py [--check]

Every polynomial is a weighted minimax fit by the exchange algorithm of Remez on a grid of Chebyshev points, in 60
digits. Coefficients are rounded to the format that evaluates them one after the other, the lowest first, and what is
left is fitted again after each, so that rounding one is made up for by the rest (the idea behind Brisebarre and
Chevillard, "Efficient polynomial L-infinity approximations", 2007, in its simplest form); of all the points where that
may stop, the best is taken. The result is the same on every machine.

With ``--check`` nothing is written: the exit status tells whether the shipped module says what the fit says. Needs
mpmath.
"""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from mpmath import mp, mpf

TARGET = Path(__file__).parents[1] / "packages/hip-devicelib/src/hip_devicelib/cpu/coefficients.py"

mp.dps = 60
Real = Callable[[mpf], mpf]

LN2 = mp.log(2)
LOG2_10 = mp.log(10, 2)
HALF = mpf(1) / 2
ERFC_POLE = 4
"""erfc maps [0, inf) to [-1, 1) by (x - 4) / (x + 4)."""


class Fit(NamedTuple):
    """P of `terms[bits]` coefficients such that weight(t) * (target(t) - P(t)) is small for t in [low, high]."""

    name: str
    target: Real
    weight: Real
    low: mpf
    high: mpf
    terms: dict[int, int]
    """Number of coefficients for float32 and for float64."""
    formats: dict[int, int] = {}
    """Bits of the format of the coefficients, where it is not that of the function."""


def _logarithm_tail(z: mpf) -> mpf:
    """Q of atanh(s) * 2 = s * (2 + z * Q(z)), z = s * s."""
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2) / z


def _power_tail(z: mpf) -> mpf:
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s / LN2 - 2 / LN2 - 2 / (3 * LN2) * z) / z**2


def _power_single(z: mpf) -> mpf:
    s = mp.sqrt(z)
    return 2 * mp.atanh(s) / s / LN2


def _odd_tail(function: Real) -> Real:
    """P of function(x) = x + x * z * P(z), z = x * x."""

    def tail(z: mpf) -> mpf:
        x = mp.sqrt(z)
        return (function(x) - x) / (x * z)

    return tail


def _odd_weight(function: Real) -> Real:
    def weight(z: mpf) -> mpf:
        x = mp.sqrt(z)
        return x * z / function(x)

    return weight


def _odd(name: str, function: Real, high: mpf, single: int, double: int) -> Fit:
    return Fit(name, _odd_tail(function), _odd_weight(function), mpf(0), mpf(high), {32: single, 64: double})


def _erfc_abscissa(t: mpf) -> mpf:
    return ERFC_POLE * (1 + t) / (1 - t)


def _erfc_scaled(t: mpf) -> mpf:
    """(1 + 2 x) * exp(x * x) * erfc(x)."""
    x = _erfc_abscissa(t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def _quarter(z: mpf) -> mpf:
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


_LN2_HALF = LN2 / 2 * mpf("1.01")
_OCTANT = (mp.pi / 4 * mpf("1.01")) ** 2
_LOG_Z = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.001")

FITS: tuple[Fit, ...] = (
    # e**r = 1 + r + r*r*P(r); the weight is that of expm1, which needs more
    Fit(
        "exp",
        lambda r: (mp.expm1(r) - r) / r**2,
        lambda r: r**2 / abs(mp.expm1(r)),
        -_LN2_HALF,
        _LN2_HALF,
        {32: 6, 64: 11},
    ),
    # 2**r = 1 + r*P(r)
    Fit(
        "exp2",
        lambda r: mp.expm1(r * LN2) / r,
        lambda r: abs(r) / 2**r,
        -HALF * mpf("1.01"),
        HALF * mpf("1.01"),
        {32: 7, 64: 13},
    ),
    Fit(
        "exp10",
        lambda r: mp.expm1(r * mp.log(10)) / r,
        lambda r: abs(r) / mpf(10) ** r,
        -HALF / LOG2_10 * mpf("1.01"),
        HALF / LOG2_10 * mpf("1.01"),
        {32: 7, 64: 13},
    ),
    # log(1 + f) = f + f*f*P(f), for float32
    Fit(
        "log",
        lambda f: (mp.log1p(f) - f) / f**2,
        lambda f: f**2 / abs(mp.log1p(f)),
        mp.sqrt(HALF) - 1,
        mp.sqrt(2) - 1,
        {32: 9},
    ),
    # log(1 + f) = s * (2 + z*P(z)), s = f / (2 + f), z = s*s, for float64
    Fit("log", _logarithm_tail, lambda z: z / 2, mpf(0), _LOG_Z, {64: 7}),
    # log2(m) = s * (2/ln2 + z*2/(3 ln2) + z*z*P(z)) for pow of float64
    Fit("pow_log2", _power_tail, lambda z: z**2 * LN2 / 2, mpf(0), _LOG_Z, {64: 9}),
    # log2(m) = s * P(z) and 2**r = P(r) for pow of float32, in float64
    Fit("pow_log2", _power_single, lambda z: LN2 / 2, mpf(0), _LOG_Z, {32: 5}, {32: 64}),
    Fit("pow_exp2", lambda r: 2**r, lambda r: 1 / 2**r, -HALF * mpf("1.01"), HALF * mpf("1.01"), {32: 8}, {32: 64}),
    _odd("sin", mp.sin, _OCTANT, 4, 6),
    # cos(x) = 1 - z/2 + z*z*P(z)
    Fit("cos", _quarter, lambda z: z**2 / mp.cos(mp.sqrt(z)), mpf(0), _OCTANT, {32: 3, 64: 6}),
    _odd("asin", mp.asin, mpf("0.2501"), 5, 12),
    _odd("atan", mp.atan, mpf(1), 9, 20),
    _odd("asinh", mp.asinh, mpf("0.2501"), 5, 12),
    _odd("sinh", mp.sinh, _LN2_HALF**2, 3, 6),
    # cosh(r) = 1 + z * P(z)
    Fit(
        "cosh",
        lambda z: (mp.cosh(mp.sqrt(z)) - 1) / z,
        lambda z: z,
        mpf(0),
        _LN2_HALF**2,
        {32: 3, 64: 6},
    ),
    # m ** (-1/3), refined afterwards
    Fit("rcbrt", lambda m: m ** (-mpf(1) / 3), lambda m: m ** (mpf(1) / 3), mpf(1), mpf(2), {32: 5, 64: 6}),
    # erf(x) = x + x * P(z)
    Fit(
        "erf",
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
        mpf(0),
        mpf("0.7225"),
        {32: 7, 64: 13},
    ),
    # t = (x - 4) / (x + 4), x up to where erfc underflows
    Fit(
        "erfc",
        _erfc_scaled,
        lambda t: 1 / _erfc_scaled(t),
        mpf(-1),
        mpf("0.5"),
        {32: 12},
    ),
    Fit("erfc", _erfc_scaled, lambda t: 1 / _erfc_scaled(t), mpf(-1), mpf("0.75"), {64: 24}),
)


def rounded(value: mpf, bits: int) -> mpf:
    """*value*, rounded to the nearest float32 or float64."""
    if bits == 64:
        return mpf(float(value))
    with mp.workprec(24):
        return +value


def minimax(values: Sequence[mpf], weights: Sequence[mpf], points: Sequence[mpf], powers: Sequence[int]) -> list[mpf]:
    """Coefficients c of sum(c * t**power) that make the largest weighted error at the points least (Remez)."""
    unknowns = len(powers)
    count = len(points)
    reference = [round((count - 1) * k / unknowns) for k in range(unknowns + 1)]
    solution: list[mpf] = []
    for _ in range(30):
        matrix = mp.matrix(unknowns + 1, unknowns + 1)
        right = mp.matrix(unknowns + 1, 1)
        for row, index in enumerate(reference):
            for column, power in enumerate(powers):
                matrix[row, column] = points[index] ** power
            matrix[row, unknowns] = (-1) ** row / weights[index]
            right[row] = values[index]
        found = mp.lu_solve(matrix, right)
        solution = [found[k] for k in range(unknowns)]
        errors = [
            w * (v - sum(c * t**p for c, p in zip(solution, powers, strict=True)))
            for v, w, t in zip(values, weights, points, strict=True)
        ]
        level = abs(found[unknowns])
        if max(map(abs, errors)) <= level * mpf("1.0001"):
            break
        reference = _extremes(errors, unknowns + 1)
    return solution


def _extremes(errors: Sequence[mpf], count: int) -> list[int]:
    """Indices of *count* extremes of alternating sign, the largest ones."""
    runs: list[int] = []
    for index, error in enumerate(errors):
        if runs and (error >= 0) == (errors[runs[-1]] >= 0):
            if abs(error) > abs(errors[runs[-1]]):
                runs[-1] = index
        else:
            runs.append(index)
    while len(runs) > count:
        if len(runs) - count == 1:
            runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
            continue
        least = min(range(len(runs)), key=lambda k: abs(errors[runs[k]]))
        if least in (0, len(runs) - 1):
            runs.pop(least)
            continue
        # an extreme inside goes together with its smaller neighbour, so that the signs still alternate
        other = min(least - 1, least + 1, key=lambda k: abs(errors[runs[k]]))
        for k in sorted((least, other), reverse=True):
            runs.pop(k)
    if len(runs) < count:
        raise ArithmeticError(f"{count} alternating extremes wanted, {len(runs)} found")
    return runs


def fit(spec: Fit, bits: int) -> tuple[list[mpf], mpf]:
    """The rounded coefficients, lowest first, and the largest weighted error on the grid."""
    terms = spec.terms[bits]
    size = 24 * terms  # even: no point where a weight is zero
    middle, radius = (spec.low + spec.high) / 2, (spec.high - spec.low) / 2
    points = [middle - radius * mp.cos(mp.pi * (k + HALF) / size) for k in range(size)]
    values = [spec.target(t) for t in points]
    weights = [spec.weight(t) for t in points]
    format_bits = spec.formats.get(bits, bits)
    left = list(values)
    fixed: list[mpf] = []
    best: tuple[mpf, list[mpf]] | None = None
    for power in range(terms):
        solution = minimax(left, weights, points, range(power, terms))
        # stop fitting again here, and round the rest as it is: for wide intervals that can be the better choice
        candidate = [*fixed, *(rounded(c, format_bits) for c in solution)]
        error = max(
            abs(w * (v - mp.polyval(candidate[::-1], t))) for w, v, t in zip(weights, values, points, strict=True)
        )
        if best is None or error < best[0]:
            best = error, candidate
        fixed.append(candidate[power])
        left = [v - fixed[power] * t**power for v, t in zip(left, points, strict=True)]
    assert best is not None
    return best[1], best[0]


def words(value: mpf, bits: int, count: int, first: int | None = None) -> list[mpf]:
    """*value* as a sum of *count* numbers of the format, the first cut to *first* significant bits."""
    parts: list[mpf] = []
    for index in range(count):
        part = rounded(value, bits)
        if index == 0 and first is not None:
            with mp.workprec(first):
                part = +value
        parts.append(part)
        value -= part
    return parts


CONSTANTS: dict[str, tuple[mpf, int, dict[int, int | None]]] = {
    # name: value, words, significant bits of the first word (None: all of them)
    "ln2": (LN2, 2, {32: 16, 64: 42}),  # times an exponent it stays exact
    "log10_2": (mp.log10(2), 2, {32: 16, 64: 42}),
    "log2_e": (1 / LN2, 2, {32: None, 64: None}),
    "log10_e": (1 / mp.log(10), 2, {32: None, 64: None}),
    "log2_10": (LOG2_10, 1, {32: None, 64: None}),
    "half_pi": (mp.pi / 2, 3, {32: None, 64: None}),
    "pi": (mp.pi, 2, {32: None, 64: None}),
    "two_over_pi": (2 / mp.pi, 1, {32: None, 64: None}),
    "two_over_ln2": (2 / LN2, 2, {32: None, 64: None}),
    "two_thirds_over_ln2": (2 / (3 * LN2), 2, {32: None, 64: None}),
    "cbrt_2": (mp.cbrt(2), 1, {32: None, 64: None}),
    "cbrt_4": (mp.cbrt(4), 1, {32: None, 64: None}),
}


def two_over_pi_single() -> list[list[mpf]]:
    """For float32: 2/pi as two words of float64, in row k > 0 less its multiples of 2**(1 - 26 k).

    A float32 from 2**(24 + 26 k) on is a multiple of 2**(1 + 26 k), and that times this one of 4.
    """
    rows = []
    with mp.workprec(1600):
        for k in range(4):
            kept = 2 / mp.pi
            if k > 0:
                scale = mpf(2) ** (26 * k - 1)
                kept = (kept * scale - mp.floor(kept * scale)) / scale
            rows.append(words(kept, 64, 2))
    return rows


def two_over_pi_rows() -> list[list[mpf]]:
    """Row k: 2/pi without the digits that count for multiples of 4 where the exponent is 32 k or more.

    As four numbers of float64, times 2**(32 k). The first is a multiple of 2, the others are the nearest to the rest.
    """
    rows = []
    with mp.workprec(1600):
        two_over_pi = 2 / mp.pi
        for k in range(32):
            # a number of this exponent, divided by 2**(32 k), is a multiple of 2**-52: 2**54 times it is one of 4
            kept = two_over_pi * mpf(2) ** (32 * k - 54)
            kept = (kept - mp.floor(kept)) * mpf(2) ** 54
            row = [mp.floor(kept / 2) * 2]
            for _ in range(3):
                row.append(mpf(float(kept - mp.fsum(row))))
            rows.append(row)
    return rows


def literal(value: mpf, bits: int) -> str:
    """The shortest decimal that reads back as the same number of the format."""
    if bits == 64:
        return repr(float(value)).replace("e+", "e")
    for digits in range(6, 10):
        text = mp.nstr(value, digits, min_fixed=-5, max_fixed=9)
        if struct.pack("f", float(text)) == struct.pack("f", float(value)):
            return repr(float(text))
    raise AssertionError(value)


def _block(items: Sequence[str], indent: str) -> str:
    return "".join(f"{indent}{item},\n" for item in items)


def write() -> str:
    """The text of the module."""
    lines = [
        '"""Coefficients and constants of the CPU device\'s math. Written by ``tools/fit_math.py``: do not edit."""\n',
        "from __future__ import annotations\n",
        "POLYNOMIALS: dict[tuple[str, int], tuple[float, ...]] = {",
    ]
    for spec in FITS:
        for bits in spec.terms:
            coefficients, error = fit(spec, bits)
            size = spec.formats.get(bits, bits)
            accuracy = mp.nstr(mp.log(error, 2), 4)
            print(f"{spec.name} {bits}: 2**{accuracy}", file=sys.stderr)
            lines.append(f"    # 2**{accuracy}")
            lines.append(f'    ("{spec.name}", {bits}): (')
            lines.append(_block([literal(c, size) for c in coefficients], " " * 8) + "    ),")
    lines.append("}")
    lines.append(
        '"""By name and bits of the function\'s format, lowest power first; above each its largest error."""\n'
    )
    lines.append("CONSTANTS: dict[tuple[str, int], tuple[float, ...]] = {")
    for name, (value, count, first) in CONSTANTS.items():
        for bits in (32, 64):
            parts = ", ".join(literal(part, bits) for part in words(value, bits, count, first[bits]))
            lines.append(f'    ("{name}", {bits}): ({parts}{"," if count == 1 else ""}),')
    lines.append("}")
    lines.append('"""Numbers as sums of words of the format, largest first."""\n')
    lines.append("TWO_OVER_PI_SINGLE: tuple[tuple[float, ...], ...] = (")
    for row in two_over_pi_single():
        lines.append(f"    ({', '.join(literal(part, 64) for part in row)}),")
    lines.append(")")
    lines.append('"""2/pi in two words of float64; row k > 0 lacks multiples of 2**(1 - 26 k)."""\n')
    lines.append("TWO_OVER_PI_ROWS: tuple[tuple[float, ...], ...] = (")
    for row in two_over_pi_rows():
        lines.append(f"    (\n{_block([literal(part, 64) for part in row], ' ' * 8)}    ),")
    lines.append(")")
    lines.append(
        '"""2/pi times 2**(32 k), less what is a multiple of 2**54: four words of float64, for exponents from 32 k."""'
    )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    text = write()
    if check:
        same = TARGET.read_text() == text
        print(f"{TARGET.name} is {'up to date' if same else 'not what the fit says'}")
        return 0 if same else 1
    TARGET.write_text(text)
    print(f"{TARGET.name}: {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
