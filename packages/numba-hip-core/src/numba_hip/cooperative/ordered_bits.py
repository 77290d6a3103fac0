"""Keys as unsigned integers that are in the same order: what a radix sort and a radix selection look at.

Two's complement needs its sign bit turned. Of IEEE 754 numbers the negative ones need all bits turned, the others the
sign bit (Herf, "Radix tricks", 2001). As in NumPy, NaN and NaT come last, and -0.0 equals 0.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from numba_hip.cooperative.operators import kept
from numba_hip.decorators import jit
from numba_hip.errors import AlgorithmError

WORDS = {1: types.uint8, 2: types.uint16, 4: types.uint32, 8: types.uint64}


def word_dtype(dtype: np.dtype[Any], argument: str) -> np.dtype[Any]:
    """The unsigned integer with the bits of *dtype*. Raises `AlgorithmError` for keys that are no numbers with an
    order."""
    if dtype.kind not in "biufmM" or dtype.itemsize not in WORDS:
        raise AlgorithmError(
            f"{argument} has elements of {dtype}, which have no order of their own: pass less=, which compares two"
        )
    return np.dtype(f"u{dtype.itemsize}")


@kept
def ordering(dtype: np.dtype[Any], *, descending: bool, bits: tuple[int, int] | None = None) -> Any:
    """A device function from the bits of a number of *dtype* to an unsigned integer in the wanted order; of *bits*,
    those from the first up to and without the second alone, moved to the lowest places."""
    word = WORDS[dtype.itemsize]
    if bits is not None:
        whole, begin, mask = ordering(dtype, descending=descending), word(bits[0]), word((1 << (bits[1] - bits[0])) - 1)
        return jit(device=True)(lambda key: word((whole(key) >> begin) & mask))
    sign = word(1 << (dtype.itemsize * 8 - 1))
    every = word((1 << (dtype.itemsize * 8)) - 1)
    ordered = _ascending(dtype, word, sign, every)
    return jit(device=True)(lambda bits: word(ordered(bits) ^ every)) if descending else ordered


def _ascending(dtype: np.dtype[Any], word: Any, sign: int, every: int) -> Any:
    if dtype.kind in "bu":
        return jit(device=True)(lambda bits: bits)
    if dtype.kind == "i":
        return jit(device=True)(lambda bits: word(bits ^ sign))
    if dtype.kind in "mM":  # NaT has the bits of the least number
        return jit(device=True)(lambda bits: word(word(bits ^ sign) - word(1)))
    infinity = word(int(np.array(np.inf, dtype).view(f"u{dtype.itemsize}")))

    @jit(device=True)
    def ordered(bits):  # type: ignore[no-untyped-def]  # for kernels alone
        size = word(bits & word(every ^ sign))
        if size > infinity:
            return word(every)
        if size == word(0):
            return word(sign)
        return word(bits ^ every) if bits & sign else word(bits ^ sign)

    return ordered
