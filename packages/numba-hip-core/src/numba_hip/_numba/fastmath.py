"""Numba's value of the option ``fastmath``, which may also ask for math functions within 4 units in the last place."""

from __future__ import annotations

from typing import Any

from numba.core.cpu_options import FastMathOptions

ULP4 = "ulp4"
"""The word for all of LLVM's fast-math flags and such functions; in a set of flags, for such functions alone."""


class MathOptions(FastMathOptions):
    """LLVM's fast-math flags, and whether math functions may be those within 4 units."""

    def __init__(self, value: Any) -> None:
        words = {"fast", ULP4} if isinstance(value, str) and value == ULP4 else value
        self.ulp4 = getattr(value, "ulp4", False)
        if isinstance(words, (set, frozenset)):
            self.ulp4 = ULP4 in words
            words = set(words) - {ULP4}
        super().__init__(words)

    def __bool__(self) -> bool:
        return self.ulp4 or super().__bool__()

    def encode(self) -> str:
        """What tells functions apart that are compiled with other options."""
        return f"{super().encode()}{ULP4 if self.ulp4 else ''}"

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and self.ulp4 == getattr(other, "ulp4", False)

    __hash__ = None  # type: ignore[assignment]  # as Numba's
