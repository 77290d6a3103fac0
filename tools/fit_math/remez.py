"""Weighted minimax fits by the exchange algorithm of Remez, with rounded coefficients.

The grid has Chebyshev points, and the arithmetic 60 digits. Coefficients are rounded to the format that evaluates them,
one after the other, the lowest first. After each, the rest is fitted again to make up for the rounding: the idea of
Brisebarre and Chevillard, "Efficient polynomial L-infinity approximations", 2007, in its simplest form. This may stop
after any coefficient and round the rest as it is; the best of these results is taken. It is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpmath import mp, mpf

from tools.fit_math.functions import HALF, Fit


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
