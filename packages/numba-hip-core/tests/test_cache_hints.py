"""Loads and stores with cache hints: `hip.ldcg`, `hip.stcs` and their like."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numba import hip, types
from numba.core.errors import TypingError
from numba.np.numpy_support import from_dtype

from numba_hip import algorithms

LOADS = ["ldca", "ldcg", "ldcs", "ldcv", "ldlu"]
STORES = ["stcg", "stcs", "stwb", "stwt"]


@pytest.mark.parametrize("dtype", [np.uint64, np.float16])
@pytest.mark.parametrize(("load", "store"), [(LOADS[n], STORES[n % 4]) for n in range(5)])
@pytest.mark.sample(4)
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


@pytest.mark.parametrize("dtype", [np.uint64, np.float32])
@pytest.mark.parametrize(("load", "store"), [(LOADS[n], STORES[n % 4]) for n in range(5)])
@pytest.mark.sample(4)
def test_elements_behind_pointers(load: str, store: str, dtype: Any) -> None:
    read, write = getattr(hip, load), getattr(hip, store)
    pointer = types.CPointer(from_dtype(np.dtype(dtype)))

    @hip.jit(types.void(pointer, pointer))
    def kernel(table: Any, out: Any) -> None:
        place = np.uint8(hip.grid(1) + 200)  # no sign
        write(out, hip.grid(1), read(table, place) + 1)

    table, out = hip.to_device(np.arange(204).astype(dtype)), hip.to_device(np.zeros(4, dtype))
    kernel[1, 4](table.address, out.address)
    assert out.copy_to_host().tolist() == [201, 202, 203, 204]


def test_hinted_accesses_are_made_for_amd_gpus() -> None:
    def kernel(out: Any) -> None:
        hip.stwt(out, 0, hip.ldcv(out, 1))

    assembly, _ = hip.compile(kernel, "void(float32[::1])", target="gfx942")
    assert "_load_dword" in assembly
    assert "_store_dword" in assembly


@pytest.mark.parametrize(
    ("target", "marks", "of_store"),
    [("gfx90a", "glc slc", "glc slc"), ("gfx942", "nt", "nt"), ("gfx1100", "slc dlc", "glc slc dlc"),
     ("gfx1201", "th:TH_LOAD_NT", "th:TH_STORE_NT")],
)  # fmt: skip
@pytest.mark.sample(2)
def test_what_is_read_once_leaves_the_caches_of_amd_gpus_to_others(target: str, marks: str, of_store: str) -> None:
    def hinted(out: Any, x: Any) -> None:
        i = hip.grid(1)
        hip.stcs(out, i, hip.ldcs(x, i) + hip.ldlu(x, 2 * i))

    def plain(out: Any, x: Any) -> None:
        i = hip.grid(1)
        hip.stwb(out, i, hip.ldca(x, i) + hip.ldcg(x, 2 * i))

    hints, others = (
        [
            " ".join(re.findall(r"(?<= )(?:glc|slc|dlc|nt|th:\w+)", line))
            for line in hip.compile(function, "void(float32[::1],float32[::1])", target=target)[0].splitlines()
            if re.search(r"global_(load|store)_", line)
        ]
        for function in (hinted, plain)
    )
    assert hints == [marks, marks, of_store]
    assert others == ["", "", ""]


@pytest.mark.parametrize("modifier", ["stream", "global", "volatile"])
@pytest.mark.parametrize("dtype", ["i4", "f2", "?", "M8[s]"])
@pytest.mark.parametrize("reader", ["sort", "count", "max"])
@pytest.mark.sample(1)
def test_arrays_are_read_past_the_caches(reader: str, dtype: str, modifier: str) -> None:
    x = (np.arange(3001) % 2).astype(dtype)
    source = algorithms.CacheModifiedInputIterator(hip.to_device(x)[::-1], modifier)
    if reader == "sort":
        np.testing.assert_array_equal(algorithms.sort(source).copy_to_host(), np.sort(x))
    elif reader == "count":
        same = algorithms.TransformIterator(source + 1, lambda value: value == value)
        assert algorithms.reduce(same, init=np.int64(0)) == 3000
    else:
        assert algorithms.reduce(algorithms.CacheModifiedInputIterator(x, modifier), max) == x.max()


def test_records_are_read_past_the_caches() -> None:
    x = np.zeros(100, [("a", "i4"), ("b", "f4")])
    x["a"] = np.arange(100)
    source = algorithms.CacheModifiedInputIterator(x)
    assert algorithms.reduce(source, lambda p, q: (p.a + q.a, p.b))["a"] == 4950
    with pytest.raises(
        algorithms.AlgorithmError, match="modifier is 'none'; pass one of 'stream', 'global', 'volatile'"
    ):
        algorithms.CacheModifiedInputIterator(x, "none")


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


@pytest.mark.parametrize(
    ("element", "index", "message"),
    [(types.int32, types.float64, "a pointer cannot be indexed with float64"),
     (types.int32, types.UniTuple(types.int64, 1), "a pointer cannot be indexed with"),
     (types.complex64, types.int64, "integers or floats, or a pointer to them, got complex64")],
)  # fmt: skip
def test_what_cannot_be_hinted_behind_pointers(element: Any, index: Any, message: str) -> None:
    def kernel(pointer: Any, place: Any) -> None:
        hip.ldca(pointer, place)

    with pytest.raises(TypingError, match=message):
        hip.jit(types.void(types.CPointer(element), index))(kernel)
