"""The forms in which arrays are passed: of the host or the device, with steps and backwards, and as iterators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import numba_hip as hip
from numba_hip import algorithms
from tools.fuzz_algorithms.operators import Values, unchanged

CUTS = {
    "": slice(None),
    "within": slice(3, -2),
    "stepped": slice(1, None, 2),
    "backwards": slice(None, None, -1),
    "backwards by 3": slice(None, None, -3),
}
BETWEEN = 4
ARRAYS = tuple(f"{place} {cut}".strip() for place in ("host", "device") for cut in CUTS)
ITERATORS = ("reversed", "permuted", "transformed", "read once", "zipped")
SOURCES = (*ARRAYS, "host", "device", "device", *ITERATORS[:4])


@dataclass
class Placed:
    """An array as an algorithm gets it: the part *cut* of memory on the device or the host, *base*, which has to
    contain what its *mirror* does."""

    mirror: Values
    base: Any
    cut: slice

    @property
    def view(self) -> Any:
        """The array."""
        return self.base[self.cut]

    @property
    def expected(self) -> Values:
        """The part of the mirror that is the array."""
        found: Values = self.mirror[self.cut]
        return found

    def shifted(self, size: int) -> Placed:
        """Another array of *size* elements that has most of its memory in common with one of `place_between`."""
        start = BETWEEN - 1 if size % 2 else BETWEEN + 2
        return Placed(self.mirror, self.base, slice(start, start + size))


def fetch(array: Any) -> Values:
    """*array*, of the device or the host, on the host."""
    return array.copy_to_host() if hip.is_device_array(array) else np.asarray(array)


def filler(size: int, dtype: np.dtype[Any]) -> Values:
    """*size* elements that nothing computes."""
    return np.full(size * dtype.itemsize, 1 if dtype.kind == "b" else 0x5A, np.uint8).view(dtype)


def place(values: Values, form: str) -> Placed:
    """*values* in an array of the *form*, which is one of `ARRAYS`."""
    where, _, name = form.partition(" ")
    sizes = {"within": values.size + 5, "stepped": 2 * values.size + 1, "backwards by 3": 3 * values.size}
    return _place(values, where, CUTS[name], sizes.get(name, values.size))


def place_between(values: Values, form: str) -> Placed:
    """*values* on the device or the host, as *form* has it, with room for `Placed.shifted`."""
    return _place(values, form.split()[0], slice(BETWEEN, BETWEEN + values.size), values.size + 4 * BETWEEN)


def _place(values: Values, where: str, cut: slice, size: int) -> Placed:
    mirror = filler(size, values.dtype)
    mirror[cut] = values
    return Placed(mirror, hip.to_device(mirror) if where == "device" else mirror.copy(), cut)


def iterate(values: Values, form: str) -> Any:
    """*values* as an iterator of the *form*, which is one of `ITERATORS`: "zipped" for records alone."""
    if form == "zipped":
        return algorithms.ZipIterator(*(hip.to_device(values[name].copy()) for name in values.dtype.names or ()))
    if form == "transformed":
        return algorithms.TransformIterator(hip.to_device(values), unchanged)
    if form == "read once":
        return algorithms.CacheModifiedInputIterator(hip.to_device(values))
    if form == "reversed":
        return algorithms.ReverseIterator(hip.to_device(values[::-1].copy()))
    places = np.arange(values.size) * 7 % max(values.size, 1)
    if len(set(places.tolist())) < values.size:
        places = np.arange(values.size)[::-1].copy()
    kept = np.empty_like(values)
    kept[places] = values
    return algorithms.PermutationIterator(hip.to_device(kept), hip.to_device(places))
