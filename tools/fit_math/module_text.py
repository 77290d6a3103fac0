"""The text of the module with the coefficients and constants."""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence

from mpmath import mp, mpf

from tools.fit_math.constants import CONSTANTS, two_over_pi_rows, two_over_pi_single, words
from tools.fit_math.functions import FITS
from tools.fit_math.remez import fit


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
        '"""Coefficients and constants of the CPU device\'s math, written by ``python -m tools.fit_math``."""\n',
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
