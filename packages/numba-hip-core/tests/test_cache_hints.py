"""Loads and stores with cache hints: `hip.ldcg`, `hip.stcs` and their like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import hip
from numba.core.errors import TypingError

LOADS = ["ldca", "ldcg", "ldcs", "ldcv", "ldlu"]
STORES = ["stcg", "stcs", "stwb", "stwt"]


@pytest.mark.parametrize("dtype", [np.uint64, np.float16])
@pytest.mark.parametrize(("load", "store"), [(LOADS[n], STORES[n % 4]) for n in range(5)])
def test_hints_change_nothing(load: str, store: str, dtype: Any) -> None:
    read, write = getattr(hip, load), getattr(hip, store)

    @hip.jit
    def kernel(table: Any, out: Any) -> None:
        i = hip.grid(1)
        write(out, (i, 1), read(table, (i, -1)))
        write(out, (i, 0), read(table[i], 0))

    table, out = np.arange(6).reshape(2, 3).astype(dtype), np.zeros((2, 2), dtype)
    kernel[1, 2](table, out)
    assert out.tolist() == [[0, 2], [3, 5]]


def test_hinted_accesses_are_made_for_amd_gpus() -> None:
    def kernel(out: Any) -> None:
        hip.stwt(out, 0, hip.ldcv(out, 1))

    assembly, _ = hip.compile(kernel, "void(float32[::1])", target="gfx942")
    assert "_load_dword" in assembly
    assert "_store_dword" in assembly


@pytest.mark.parametrize(
    ("index", "array", "message"),
    [(1.5, np.zeros(2), "cannot be indexed with"), ((0, 0), np.zeros(2), "1 dimensions"),
     (0, np.zeros(2, complex), "integers or floats")],
)  # fmt: skip
def test_what_cannot_be_hinted_is_refused(index: Any, array: Any, message: str) -> None:
    @hip.jit
    def kernel(values: Any, place: Any) -> None:
        hip.ldca(values, place)

    before = array.copy()
    with pytest.raises(TypingError, match=message):
        kernel[1, 1](array, index)
    np.testing.assert_array_equal(array, before)
