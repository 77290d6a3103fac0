"""Random kernels with windows that are clamped or end at the edges, edges told by equality, lists and small private
arrays, against plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import hip

LENGTHS = (1, 2, 5, 16, 31, 32, 33, 63, 64, 65, 100, 128, 200, 257, 500)
BLOCKS = (32, 48, 64, 128, 200, 256)
SQUARES = ((1, 1), (3, 40), (17, 64), (33, 130), (9, 7))
TILES = ((16, 16), (32, 4), (64, 1), (8, 8), (5, 6))
Array = np.ndarray[Any, Any]


class Kernel:
    """A random kernel of threads at *i*, or at *y* and *x* of a square; `source` writes it for the device, or as the
    body of a loop in Python, in which ``APPEND`` is a function that adds one."""

    def __init__(self, seed: int, axes: int) -> None:
        self._choose = random.Random(seed)
        self._axes = axes
        self._lines: list[str] = []
        self._write()

    def source(self, *, on_device: bool) -> str:
        names = "a, out, chosen, origins, count, n, w, r"
        if on_device:
            start = [f"def kernel({names}):", "    i = hip.grid(1)" if self._axes == 1 else "    x, y = hip.grid(2)"]
        else:
            start = [f"def kernel({'i' if self._axes == 1 else 'x, y'}, {names}):"]
        append, local = ("hip.atomic.add", "hip.local.array(9, int64)") if on_device else ("add", "[0] * 9")
        return "\n".join([*start, *(line.replace("APPEND", append).replace("LOCAL", local) for line in self._lines)])

    def _write(self) -> None:
        indent = "    "
        inside = "i < n" if self._axes == 1 else "x < w and y < n"
        outside = "i >= n" if self._axes == 1 else "x >= w or y >= n"
        if self._choose.random() < 0.5:
            self._lines += [f"{indent}if {outside}:", f"{indent}    return"]
        else:
            self._lines.append(f"{indent}if {inside}:")
            indent += "    "
        self._lines.append(f"{indent}s, v = 0, int64({self._place('a')})")
        for _ in range(self._choose.randrange(1, 4)):
            self._lines += [indent + line for line in self._statement()]
        self._lines.append(f"{indent}{self._place('out')} = s + v")

    def _place(self, array: str) -> str:
        return f"{array}[i]" if self._axes == 1 else f"{array}[y, x]"

    def _window(self, index: str, extent: str) -> str:
        choose = self._choose
        before, behind = choose.choice(("1", "2", "r", "7")), choose.choice(("1", "2", "r + 1", "3"))
        low, high = choose.choice((0, 0, 0, 1)), choose.choice((extent, extent, f"{extent} - 1"))
        step = choose.choice(("", "", "", ", 2"))
        return f"range(max({index} - {before}, {low}), min({index} + {behind}, {high}){step})"

    def _clamped(self, index: str, extent: str) -> str:
        by = self._choose.choice(("- 1", "+ 1", "+ 3", "- r", "+ r"))
        return self._choose.choice(
            (f"min(max({index} {by}, 0), {extent} - 1)", f"max(min({index} {by}, {extent} - 1), 0)")
        )

    def _statement(self) -> list[str]:
        kinds = ("truncated", "truncated", "neighbour", "edge", "list", "until", "sorted", "differs")
        return getattr(self, f"_{self._choose.choice(kinds)}")()  # type: ignore[no-any-return]

    def _truncated(self) -> list[str]:
        choose = self._choose
        if self._axes == 1:
            lines, place = [f"for j in {self._window('i', 'n')}:"], "a[j]"
        else:
            lines = [f"for k in {self._window('y', 'n')}:", f"    for j in {self._window('x', 'w')}:"]
            place = "a[k, j]"
        indent = "    " * len(lines)
        body = choose.choice((
            [f"s += {place}"], [f"s += {place}", "v += 1"], [f"if {place} % 3 == 0:", f"    s += {place}"],
            [f"s = max(s, {place})"], [f"if {place} > 90:", "    break", "v += j"],
        ))  # fmt: skip
        return lines + [indent + line for line in body]

    def _clamped_place(self) -> str:
        if self._axes == 1:
            return f"a[{self._clamped('i', 'n')}]"
        return f"a[{self._clamped('y', 'n')}, {self._clamped('x', 'w')}]"

    def _neighbour(self) -> list[str]:
        return [f"s += {self._clamped_place()} * 3"]

    def _edge(self) -> list[str]:
        choose = self._choose
        if self._axes == 1:
            edges, inner = ["i == 0", "i == n - 1", "i == r"], "a[i - 1] + a[(i + 1) % n]"
        else:
            edges, inner = ["x == 0", "y == 0", "x == w - 1", "y == n - 1"], "a[y - 1, x] - a[y, x - 1]"
        if choose.random() < 0.5:
            taken = [choose.choice(("s += 5", f"{self._place('out')} = -7"))]
            taken += ["return"] if choose.random() < 0.5 else []
        else:
            taken = ["v = -v"]
        return [f"if {' or '.join(edges)}:", *(f"    {line}" for line in taken), "else:", f"    s += {inner}"]

    def _list(self) -> list[str]:
        condition = self._choose.choice(("v > 30", "v % 2 == 0", "v < 0", "s > 100"))
        index = "i" if self._axes == 1 else "y * w + x"
        return [
            f"if {condition}:", "    p = APPEND(count, 0, 1)", "    if p < chosen.size:", "        chosen[p] = v",
            f"        origins[p] = {index}",
        ]  # fmt: skip

    def _until(self) -> list[str]:
        index, extent = ("i", "n") if self._axes == 1 else ("x", "w")
        place = "a[j]" if self._axes == 1 else "a[y, j]"
        return [f"j = {index}", f"while j != {extent} and j != {index} + 4:", f"    s += {place} * 2", "    j += 1"]

    def _differs(self) -> list[str]:
        index, extent = ("i", "n") if self._axes == 1 else ("x", "w")
        place = f"a[{index}]" if self._axes == 1 else f"a[y, {extent} - 1 - {index}]"
        return [f"if {index} != {self._choose.choice(('r', '0', extent + ' - 1', '40'))}:", f"    s -= {place}"]

    def _sorted(self) -> list[str]:
        number = self._choose.choice((3, 4, 9))
        return [
            "own = LOCAL", f"for e in range({number}):", f"    own[e] = {self._clamped_place()} * (e % 3 + 1) % 50",
            f"for e in range({number - 1}):", f"    for f in range(e + 1, {number}):", "        if own[f] < own[e]:",
            "            own[e], own[f] = own[f], own[e]", f"s += own[{number // 2}] * 3",
        ]  # fmt: skip


def run_in_python(kernel: Kernel, places: list[tuple[int, ...]], *arguments: Any) -> None:
    def add(array: Array, at: int, value: int) -> int:
        array[at] += value
        return int(array[at] - value)

    names: dict[str, Any] = {"add": add, "int64": int}
    exec(kernel.source(on_device=False), names)
    body: Callable[..., None] = names["kernel"]
    for place in places:
        body(*place, *arguments)


def check(compiled: Any, kernel: Kernel, launch: tuple[Any, Any], a: Array, places: list[tuple[int, ...]]) -> None:
    """*places* are those of the threads, as the kernel names them."""
    reach = 3
    sizes = (a.shape[0], a.shape[-1], reach)
    lists = [np.zeros(4 * a.size, np.int64), np.full(4 * a.size, -1), np.zeros(1, np.int64)]
    expected = [np.zeros(a.shape, np.int64), *(part.copy() for part in lists)]
    found = [np.zeros(a.shape, np.int64), *lists]
    run_in_python(kernel, places, a.astype(np.int64), *expected, *sizes)
    compiled[launch](a, *found, *sizes)
    note = f"{a.shape}, {a.dtype}, {launch}\n{kernel.source(on_device=True)}"
    np.testing.assert_array_equal(found[0], expected[0], note)
    assert found[3] == expected[3], note
    pairs = [sorted(zip(chosen, origins, strict=True)) for _, chosen, origins, _ in (found, expected)]
    assert pairs[0] == pairs[1], note  # in any order


def compiled_of(kernel: Kernel) -> Any:
    names: dict[str, Any] = {"hip": hip, "int64": np.int64}
    exec(kernel.source(on_device=True), names)
    return hip.jit(names["kernel"])


@pytest.mark.parametrize("seed", range(80))
@pytest.mark.sample(3)
def test_rows(seed: int) -> None:
    choose, kernel = random.Random(2000 + seed), Kernel(seed, 1)
    compiled, dtype = compiled_of(kernel), choose.choice((np.int8, np.int32, np.int64))
    for _ in range(6):
        length, block = choose.choice(LENGTHS), choose.choice(BLOCKS)
        a = np.random.default_rng(seed).integers(-20, 100, length).astype(dtype)
        check(compiled, kernel, (length // block + 1, block), a, [(i,) for i in range(length)])


@pytest.mark.parametrize("seed", range(80))
@pytest.mark.sample(2)
def test_squares(seed: int) -> None:
    choose, kernel = random.Random(3000 + seed), Kernel(seed, 2)
    compiled, dtype = compiled_of(kernel), choose.choice((np.uint8, np.int32, np.int64))
    for _ in range(4):
        (height, width), (across, down) = choose.choice(SQUARES), choose.choice(TILES)
        a = np.random.default_rng(seed).integers(0, 100, (height, width)).astype(dtype)
        grid = (width // across + 1, height // down + 1)
        places = [(x, y) for y in range(height) for x in range(width)]
        check(compiled, kernel, (grid, (across, down)), a, places)
