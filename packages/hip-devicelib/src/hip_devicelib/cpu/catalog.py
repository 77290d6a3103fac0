"""The functions of the CPU device's math, with error bounds.

A bound is in units in the last place of the result, compared with the exact value, over all arguments. Tests check it.
Some functions of float64 have a variant within 4 units (`hip_devicelib.cpu.ulp4`), with a symbol that ends in
``_ulp4``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hip_devicelib.cpu import circular, error_functions, exponentials, hyperbolic, inverse_circular, logarithms, powers
from hip_devicelib.cpu import ulp4 as within_4
from hip_devicelib.cpu.expressions import FORMATS

PREFIX = "__hip_cpu_"
ULP4 = "_ulp4"
"""What the symbols of the variants within 4 units end with."""


@dataclass(frozen=True)
class MathFunction:
    """A function of the C math library for one format, as ``{symbol}`` in bitcode."""

    name: str
    """As in C, without a suffix."""
    bits: int
    """32 for float, 64 for double."""
    parameters: tuple[str, ...]
    """LLVM types; pointers are for results."""
    result: str
    """LLVM type: ``float``, ``double`` or ``void``."""
    ulp: float
    """The largest error in units in the last place."""
    formula: Callable[..., Any]
    """Builds the body from a `Code` and its `Real` arguments."""
    suffix: str = ""
    """Of the symbol; not empty for a variant."""

    @property
    def symbol(self) -> str:
        return f"{PREFIX}{self.name}_f{self.bits}{self.suffix}"


_FORMULAS: tuple[tuple[Callable[..., Any], int, float, float], ...] = (
    # formula, arguments, error for float32 and for float64
    (circular.sin, 1, 1.0, 1.0),
    (circular.cos, 1, 1.0, 1.0),
    (circular.tan, 1, 2.5, 2.5),
    (inverse_circular.asin, 1, 1.25, 1.5),
    (inverse_circular.acos, 1, 1.25, 1.5),
    (inverse_circular.atan, 1, 1.5, 1.5),
    (inverse_circular.atan2, 2, 1.75, 1.75),
    (hyperbolic.sinh, 1, 1.0, 1.0),
    (hyperbolic.cosh, 1, 1.0, 1.0),
    (hyperbolic.tanh, 1, 1.0, 1.0),
    (hyperbolic.asinh, 1, 1.0, 1.0),
    (hyperbolic.acosh, 1, 1.25, 1.25),
    (hyperbolic.atanh, 1, 1.25, 1.25),
    (exponentials.exp, 1, 1.0, 1.0),
    (exponentials.exp2, 1, 1.25, 1.25),
    (exponentials.exp10, 1, 1.25, 1.25),
    (exponentials.expm1, 1, 1.5, 1.5),
    (logarithms.log, 1, 1.0, 1.0),
    (logarithms.log2, 1, 1.25, 1.25),
    (logarithms.log10, 1, 1.25, 1.0),
    (logarithms.log1p, 1, 1.25, 1.0),
    (powers.pow, 2, 0.75, 1.75),
    (powers.cbrt, 1, 0.75, 0.75),
    (powers.rsqrt, 1, 1.5, 1.5),
    (powers.hypot, 2, 0.75, 1.0),
    (error_functions.erf, 1, 1.5, 1.5),
    (error_functions.erfc, 1, 4.0, 4.0),
)

_VARIANTS: tuple[tuple[Callable[..., Any], int, float], ...] = (
    # formula, arguments, error for float64
    (within_4.sin, 1, 4.0),
    (within_4.cos, 1, 4.0),
    (within_4.tan, 1, 4.0),
    (within_4.asin, 1, 4.0),
    (within_4.acos, 1, 4.0),
    (within_4.atan, 1, 4.0),
    (within_4.atan2, 2, 4.0),
    (within_4.tanh, 1, 4.0),
    (within_4.exp, 1, 4.0),
    (within_4.exp2, 1, 4.0),
    (within_4.log, 1, 4.0),
    (within_4.log2, 1, 4.0),
    (within_4.log10, 1, 4.0),
    (within_4.pow, 2, 4.0),
    (within_4.erf, 1, 4.0),
    (within_4.erfc, 1, 4.0),
)


def _functions() -> Mapping[str, MathFunction]:
    found = {}
    for bits in FORMATS:
        kind = {32: "float", 64: "double"}[bits]
        for formula, arguments, *errors in _FORMULAS:
            error = errors[bits == 64]
            entry = MathFunction(formula.__name__, bits, (kind,) * arguments, kind, error, formula)
            found[entry.symbol] = entry
        sine = found[f"{PREFIX}sin_f{bits}"]
        both = MathFunction("sincos", bits, (kind, "ptr", "ptr"), "void", sine.ulp, circular.sincos)
        found[both.symbol] = both
    for formula, arguments, error in _VARIANTS:
        entry = MathFunction(formula.__name__, 64, ("double",) * arguments, "double", error, formula, ULP4)
        found[entry.symbol] = entry
    return MappingProxyType(found)


FUNCTIONS: Mapping[str, MathFunction] = _functions()
"""All functions, by symbol."""
