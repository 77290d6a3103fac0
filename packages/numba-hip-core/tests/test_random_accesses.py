"""Random kernels that access memory as real ones do - pairs, colours, neighbours at computed places, rows, clamped
pixels, claims and updates by atomic operations, behind conditions and in loops - against plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import hip

LENGTHS = (1, 3, 16, 31, 33, 64, 100, 129, 257)
BLOCKS = (32, 48, 64, 128, 200)
COLUMNS = (0, 1, 3, 4, 5, 8, 11)
PLACES = 40
Array = np.ndarray[Any, Any]

NAMES = "flat, rows, pixels, places, turned, out, pairs, claimed, lows, highs, sums, count, n, k"


class Kernel:
    """A random kernel; `source` writes it for the device, or as the body of a loop in Python, where ``add`` and so on
    are functions."""

    def __init__(self, seed: int) -> None:
        self._choose = random.Random(seed)
        self._lines: list[str] = []
        self._write()

    def source(self, *, on_device: bool) -> str:
        start = [f"def kernel({NAMES}):", "    i = hip.grid(1)"] if on_device else [f"def kernel(i, {NAMES}):"]
        prefix = "hip.atomic." if on_device else ""
        return "\n".join([*start, *(line.replace("ATOMIC.", prefix) for line in self._lines)])

    def _write(self) -> None:
        lines = ["s, v, o = 0, int64(flat[i]), int64(places[i])"]
        for _ in range(self._choose.randrange(1, 5)):
            lines += self._statement(self._choose.random() < 0.4)
        lines.append("out[i] = s + v")
        self._lines = ["    if i < n:", *(f"        {line}" for line in lines)]

    def _statement(self, is_nested: bool) -> list[str]:
        choose = self._choose
        if is_nested:
            head = choose.choice(("if v % 3 == 0:", "if o > 20:", "for t in range(v % 4):", "for t in range(3):"))
            return [head, *(f"    {line}" for line in self._statement(False))]
        kinds = ("between", "between", "apart", "apart", "limit", "row", "row", "pixel", "claim", "update", "store")
        return getattr(self, f"_{choose.choice(kinds)}")()  # type: ignore[no-any-return]

    def _between(self) -> list[str]:
        step = self._choose.choice((2, 3, 4))
        members = self._choose.sample(range(2 * step), self._choose.randrange(1, 2 * step))
        return [f"s += flat[{step} * i + {member}] * {number + 1}" for number, member in enumerate(members)]

    def _apart(self) -> list[str]:
        first = self._choose.choice(("o", "o + 1", "2 * o", "3 * o"))
        members = self._choose.sample(range(5), self._choose.randrange(1, 5))
        return [f"s += flat[{first} + {member}] * {number + 1}" for number, member in enumerate(members)]

    def _limit(self) -> list[str]:
        other = self._choose.choice(("min(o + 1, 30)", "max(o - 1, 0)", "o - 1", "min(o + 1, n - 1)"))
        return [f"s += flat[o] - 2 * flat[{other}]"]

    def _row(self) -> list[str]:
        head = self._choose.choice(("range(k)", "range(k - 1, -1, -1)", "range(1, k)", "range(k // 2)"))
        body = self._choose.choice((
            "s += rows[i, j]", "s += rows[i, j] * rows[n - 1 - i, j]", "s = max(s, rows[i, j] + rows[0, j])",
            "s = s * 3 % 1009 + rows[i, j]", "v += rows[i, j] * (j + 1)",
        ))  # fmt: skip
        return [f"for j in {head}:", f"    {body}"]

    def _pixel(self) -> list[str]:
        choose = self._choose
        by = choose.choice(("- 1", "+ 1", "+ 2", "- k", "+ k"))
        index = choose.choice((f"min(max(i {by}, 0), n - 1)", f"max(min(i {by}, n - 1), 0)"))
        colours = choose.choice((("0",), ("0", "1", "2"), ("2", "0"), ("c",)))
        lines = [f"s += pixels[{index}, {colour}]" for colour in colours]
        return ["for c in range(3):", *(f"    {line}" for line in lines)] if colours == ("c",) else lines

    def _claim(self) -> list[str]:
        expected = self._choose.choice(("-1", "-1", "5"))
        return [f"if ATOMIC.cas(claimed, o, {expected}, 7) == {expected}:", "    ATOMIC.add(count, 0, 1)"]

    def _update(self) -> list[str]:
        place = self._choose.choice(("o", "v % 7", "i % 9", "i // 8 % 11"))
        updates = ("ATOMIC.min(lows, {}, v)", "ATOMIC.max(highs, {}, v)", "ATOMIC.add(sums, {}, v)")
        return [self._choose.choice(updates).format(place)]

    def _store(self) -> list[str]:
        lines = ["pairs[2 * turned[i]] = v", "pairs[2 * turned[i] + 1] = o"]
        return lines[:: self._choose.choice((1, -1))]


def run_in_python(kernel: Kernel, arguments: dict[str, Any]) -> None:
    def update(combine: Callable[[int, int], int]) -> Callable[[Array, int, int], int]:
        def do(array: Array, at: int, value: int) -> int:
            old = int(array[at])
            array[at] = combine(old, value)
            return old

        return do

    def cas(array: Array, at: int, expected: int, value: int) -> int:
        return update(lambda old, _: value if old == expected else old)(array, at, value)

    names: dict[str, Any] = {"cas": cas, "add": update(lambda old, value: old + value), "int64": int}
    # ``min`` and ``max`` of two numbers are those of Python
    names["min"] = lambda *given: update(min)(*given) if len(given) == 3 else min(given)
    names["max"] = lambda *given: update(max)(*given) if len(given) == 3 else max(given)
    exec(kernel.source(on_device=False), names)
    whole = {name: array.astype(np.int64) if name in ("flat", "rows", "pixels") else array
             for name, array in arguments.items()}  # fmt: skip
    for i in range(arguments["n"]):
        names["kernel"](i, **whole)


def make_arguments(seed: int, length: int, columns: int, dtype: type[np.integer]) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "flat": rng.integers(0, 100, max(4 * length + 8, 3 * PLACES + 8)).astype(dtype),
        "rows": rng.integers(0, 20, (length, columns)).astype(dtype),
        "pixels": rng.integers(0, 120, (length, 3)).astype(dtype),
        "places": rng.integers(0, min(PLACES, length), length).astype(np.int32),
        "turned": rng.permutation(length),
        "out": np.zeros(length, np.int64),
        "pairs": np.zeros(2 * length, np.int64),
        "claimed": rng.choice(np.array([-1, -1, 5, 9]), PLACES),
        "lows": np.full(PLACES, 50),
        "highs": np.full(PLACES, 50),
        "sums": np.zeros(PLACES, np.int64),
        "count": np.zeros(1, np.int64),
        "n": length,
        "k": columns,
    }


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.sample(2)
def test_accesses(seed: int) -> None:
    choose, kernel = random.Random(4000 + seed), Kernel(seed)
    names: dict[str, Any] = {"hip": hip, "int64": np.int64}
    exec(kernel.source(on_device=True), names)
    compiled, dtype = hip.jit(names["kernel"]), choose.choice((np.uint8, np.int16, np.int32, np.int64))
    for turn in range(5):
        length, block = choose.choice(LENGTHS), choose.choice(BLOCKS)
        found = make_arguments(100 * seed + turn, length, choose.choice(COLUMNS), dtype)
        expected = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in found.items()}
        run_in_python(kernel, expected)
        compiled[length // block + 1, block](*found.values())
        for name, value in found.items():
            note = f"{name} of {length} {dtype.__name__}, blocks of {block}\n{kernel.source(on_device=True)}"
            np.testing.assert_array_equal(value, expected[name], note)
