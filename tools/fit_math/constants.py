"""Constants split into sums of numbers of a format."""

from __future__ import annotations

from mpmath import mp, mpf

from tools.fit_math.functions import LN2, LOG2_10
from tools.fit_math.remez import rounded


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
