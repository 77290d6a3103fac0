"""Fields of a record that share some of their bytes: the last store counts."""

from __future__ import annotations

import linecache
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numba import hip

from hip_runtime import config
from numba_hip.dispatch.dispatcher import Dispatcher

LAYOUTS = {
    "uint16 and half of the next": ("u2", (0, 2, 3)),
    "uint32 and half of the next": ("u4", (0, 4, 6)),
    "uint32 and halves of two": ("u4", (0, 2, 4)),
    "uint8 behind one another": ("u1", (0, 1, 2)),
    "uint64 and a byte of the next": ("u8", (0, 8, 15)),
}
RECORDS = 150


def storing(fields: tuple[str, ...], masked: bool) -> Dispatcher:
    """A kernel that stores a number of each thread to *fields*, in this order; if *masked*, not all of them do."""
    stores = "\n".join(f"        records[place].{field} = number * {3 + k}" for k, field in enumerate(fields))
    condition = "i < places.size and numbers[i] % 3" if masked else "i < places.size"
    text = f"""
def store(records, places, numbers):
    i = hip.grid(1)
    if {condition}:
        place, number = places[i], numbers[i]
{stores}
"""
    name = f"<stores to {''.join(fields)} {masked}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    names: dict[str, Any] = {"hip": hip}
    exec(compile(text, name, "exec"), names)
    return hip.jit(names["store"])


def expected(
    records: np.ndarray, places: np.ndarray, numbers: np.ndarray, fields: tuple[str, ...], masked: bool
) -> Any:
    result = records.copy()
    for place, number in zip(places, numbers, strict=True):
        for k, field in enumerate(fields):
            if number % 3 or not masked:
                result[field][place] = int(number) * (3 + k) % 256 ** result[field].dtype.itemsize
    return result


@pytest.mark.parametrize("form", ["auto", "vectors"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.sample(6)
def test_the_last_store_counts(layout: str, scattered: bool, masked: bool, form: str) -> None:
    kind, offsets = LAYOUTS[layout]
    size = np.dtype(kind).itemsize
    dtype = np.dtype({"names": [*"abc"], "formats": [kind] * 3, "offsets": offsets, "itemsize": offsets[-1] + size + 1})
    generator = np.random.default_rng(len(layout))
    places = generator.permutation(RECORDS) if scattered else np.arange(RECORDS)
    numbers = generator.integers(0, 2**30, RECORDS).astype(kind)
    records = np.frombuffer(generator.bytes(RECORDS * dtype.itemsize), dtype)
    for fields in permutations("abc"):
        found = records.copy()
        with config.cpu_form.scope(form):
            storing(fields, masked)[3, 64](found, places, numbers)
        wanted = expected(records, places, numbers, fields, masked)
        for field in fields:
            np.testing.assert_array_equal(found[field], wanted[field], f"{field} of {fields}")
