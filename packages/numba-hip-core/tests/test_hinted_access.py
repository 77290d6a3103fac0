"""Loads and stores with hints, masks of lanes, alignment of private arrays, atomics on float16."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import hip
from numba.core import types
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


def test_masks_of_lanes() -> None:
    @hip.jit
    def kernel(out: Any) -> None:
        i = hip.laneid
        out[i, 0], out[i, 1], out[i, 2] = hip.lanemask_lt(), hip.lanemask_le(), hip.lanemask_eq()
        out[i, 3], out[i, 4] = hip.lanemask_ge(), hip.lanemask_gt()

    waves = int(hip.get_current_device().WARP_SIZE)
    out = np.zeros((waves, 5), np.uint64)
    kernel[1, waves](out)
    every = (1 << waves) - 1
    for lane, (lt, le, eq, ge, gt) in enumerate(out.tolist()):
        assert eq == 1 << lane
        assert lt == eq - 1
        assert le == lt | eq
        assert ge == every & ~lt
        assert gt == every & ~le


def test_private_arrays_are_aligned() -> None:
    @hip.jit
    def kernel(out: Any) -> None:
        part = hip.local.array(3, types.float32, alignment=64)
        part[1] = hip.grid(1)
        out[hip.grid(1)] = part[1]

    out = np.zeros(4)
    kernel[1, 4](out)
    assert out.tolist() == [0, 1, 2, 3]
    (args,) = kernel.signatures
    unoptimised = hip.jit(kernel.py_func, opt=False).compile(args).llvm()
    assert "[3 x float], align 64" in unoptimised
    with pytest.raises(ValueError, match="Alignment must be a power of two, got 3"):

        @hip.jit("void(float64[:])")
        def odd(out: Any) -> None:
            hip.local.array(3, types.float32, alignment=3)


def test_atomics_on_float16() -> None:
    @hip.jit
    def kernel(values: Any) -> None:
        hip.atomic.add(values, 0, 0.5)
        hip.atomic.sub(values, 1, 1)
        hip.atomic.max(values, 2, hip.grid(1))
        hip.atomic.min(values, 3, -hip.grid(1))
        hip.atomic.nanmax(values, 4, hip.grid(1))
        hip.atomic.exch(values, 5, 7)
        hip.atomic.cas(values, 6, np.float16(2), np.float16(3))

    values = np.array([0, 0, 0, 0, np.nan, 1, 2], np.float16)
    kernel[2, 8](values)
    assert values.tolist() == [8, -16, 15, -15, 15, 7, 3]
    assert "s_endpgm" in hip.compile(kernel, "void(float16[::1])", target="gfx1100")[0]
